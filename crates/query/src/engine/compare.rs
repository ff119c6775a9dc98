//! Fetching for comparisons.

use super::Engine;
use super::selected::SetProfile;
use crate::compare::{CompareRequest, CompareSet, CompareSide, Comparison};
use crate::{Error, ProfileRequest, Selection};

impl Engine {
    /// What costs more in one set of spans or profiles than in another.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where one side is spans and the other profiles, and as for the profile of each side.
    pub async fn compare(&self, request: &CompareRequest) -> Result<Comparison, Error> {
        let scope = match (&request.base, &request.target) {
            (CompareSet::Spans(_), CompareSet::Spans(_)) => Some(request.scope),
            (CompareSet::Profiles { .. }, CompareSet::Profiles { .. }) => None,
            _ => {
                return Err(Error::Invalid {
                    field: "target_labels",
                    message: "one side is spans and the other profiles, expected labels of both or of none".to_owned(),
                });
            }
        };
        let (base, target) = futures::try_join!(self.side(request, &request.base), self.side(request, &request.target))?;
        Ok(Comparison::new(scope, base, target))
    }

    async fn side(&self, request: &CompareRequest, set: &CompareSet) -> Result<CompareSide, Error> {
        match set {
            CompareSet::Spans(set) => {
                let asked = SetProfile {
                    tenants: &request.tenants,
                    profile_type: &request.profile_type,
                    scope: request.scope,
                    rows: false,
                };
                let selected = self.profile_of_set(asked, set).await?;
                Ok(CompareSide {
                    units: selected.spans.spans as f64,
                    profile: selected.profile,
                    spans: Some(selected.spans),
                })
            }
            CompareSet::Profiles { selector, range } => {
                let asked = ProfileRequest {
                    tenants: request.tenants.clone(),
                    selection: Selection::Services {
                        selector: selector.clone(),
                    },
                    profile_type: request.profile_type.clone(),
                    range: Some(*range),
                    rows: false,
                };
                Ok(CompareSide {
                    profile: self.profile(&asked).await?,
                    spans: None,
                    units: range.duration_ns() as f64 / 1e9,
                })
            }
        }
    }
}
