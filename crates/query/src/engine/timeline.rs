//! Fetching for samples one by one.

use super::Engine;
use super::fetch::check_tenants;
use crate::scoped::Keep;
use crate::timeline::{Moments, Timeline, TimelineRequest};
use crate::{Error, Scope, Selection};

impl Engine {
    /// When what ran in a span or trace.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a trace or span that neither span nor sample names, [`Error::Invalid`] for a selection
    /// that is neither.
    pub async fn timeline(&self, request: &TimelineRequest) -> Result<Timeline, Error> {
        let profile = &request.profile;
        check_tenants(&profile.tenants)?;
        if !(1..=TimelineRequest::LIMIT_MAX).contains(&request.limit) {
            return Err(invalid(
                "limit",
                format!("limit is {}, expected 1 to {}", request.limit, TimelineRequest::LIMIT_MAX),
            ));
        }
        let asked = (profile, Keep::Moments(request.limit));
        let (scope, mut draft) = match profile.selection {
            Selection::Span {
                trace_id,
                span_id,
                scope: Scope::Window,
            } => (Scope::Window, self.window_draft(asked, trace_id, span_id).await?),
            Selection::Span { trace_id, span_id, scope } => (scope, self.scoped_draft(asked, trace_id, Some(span_id), scope).await?),
            Selection::Trace { trace_id } => (Scope::Trace, self.scoped_draft(asked, trace_id, None, Scope::Trace).await?),
            _ => {
                return Err(invalid(
                    "selection",
                    "samples one by one are asked of a span or a trace only".to_owned(),
                ));
            }
        };
        let none = || Moments::new(profile.profile_type.clone(), profile.range, request.limit);
        let moments = draft.moments.take().unwrap_or_else(none);
        let answer = self.complete((&profile.tenants, &profile.profile_type), Some(scope), draft).await?;
        Ok(moments.finish(answer))
    }
}

fn invalid(field: &'static str, message: String) -> Error {
    Error::Invalid { field, message }
}
