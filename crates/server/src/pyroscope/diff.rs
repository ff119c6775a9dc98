//! Two merged profiles side by side.

use std::sync::Arc;

use axum::response::Response;
use http::HeaderMap;
use spanflame_proto::pyroscope as wire;
use spanflame_query::{Engine, ProfileAnswer};

use super::flamegraph::{Merged, nodes};
use super::profile::{self, Wanted};
use crate::app::App;
use crate::connect::Call;
use crate::failure::Failure;
use crate::question::ask;

/// `Diff`.
pub(super) async fn diff(app: Arc<App>, call: Call<wire::DiffRequest>) -> Result<Response, Failure> {
    let Call { question, headers, manner } = call;
    let side = |side: Option<wire::SelectMergeStacktracesRequest>, name: &str| {
        side.ok_or_else(|| Failure::invalid(name, format!("{name} is missing, expected what to compare")))
    };
    let (left, right) = (side(question.left, "left")?, side(question.right, "right")?);
    let max_nodes = left.max_nodes.or(right.max_nodes);
    let sides = [profile::of_stacktraces(left)?, profile::of_stacktraces(right)?];
    compare(&app, sides, &headers, move |[left, right]| {
        let merged = Merged::of([&left.tree, &right.tree]).cut(nodes(max_nodes));
        manner.answer(&wire::DiffResponse {
            flamegraph: Some(merged.into_diff()),
        })
    })
    .await
}

/// Asks for both sides and writes them; they must measure the same.
pub(super) async fn compare<W>(app: &Arc<App>, sides: [Wanted; 2], headers: &HeaderMap, write: W) -> Result<Response, Failure>
where
    W: FnOnce(&[ProfileAnswer; 2]) -> Result<Response, Failure> + Send + 'static,
{
    let [left, right] = &sides;
    if left.profile_type != right.profile_type {
        let message = format!(
            "left is {:?} and right {:?}, expected one profile type",
            left.profile_type, right.profile_type
        );
        return Err(Failure::invalid("profile_typeID", message));
    }
    let requests = [left.request(headers)?, right.request(headers)?];
    let asked = async move |engine: Engine| {
        let [left, right] = &sides;
        Ok([
            profile::merged(&engine, requests[0].as_ref(), &left.call_site).await?,
            profile::merged(&engine, requests[1].as_ref(), &right.call_site).await?,
        ])
    };
    ask(app, "pyroscope_diff", asked, move |both: &[ProfileAnswer; 2], _| write(both)).await
}
