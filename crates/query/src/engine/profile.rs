//! Fetching for the profile of a selection.

use std::ops::ControlFlow;

use spanflame_model::{Claim, Link, Span, SpanId, Tenant, TimeRange, TraceId};
use spanflame_store::{SampleScan, SpanFields, StoredSample};

use super::Engine;
use super::fetch::check_tenants;
use crate::expired::Wanted;
use crate::links::{Precision, TraceIndex};
use crate::measure::TypeSelector;
use crate::reasons::{AROUND_NS, Reason, ReasonCode, Surroundings, explain};
use crate::scoped::{Draft, Keep, ScopedQuestion, skew_to_parent};
use crate::selector::LabelSelector;
use crate::tree::CallTree;
use crate::window::WindowCount;
use crate::{Error, ProfileAnswer, ProfileRequest, Scope, Selection, StackTotal};

/// The most different stacks of one answer.
const STACKS_MAX: usize = 2_000_000;

/// How many samples around a span are looked at to tell why it has none: enough to tell, whatever is left.
const SURROUNDING_SAMPLES_MAX: usize = 200_000;

/// Whose profile is asked for, and of which type.
type Asked<'a> = (&'a [Tenant], &'a TypeSelector);

/// What is asked for, and what to keep of it.
pub(super) type Kept<'a> = (&'a ProfileRequest, Keep);

impl Engine {
    /// The profile of a selection. [`Error::NotFound`] for a trace or span that neither span nor sample names.
    pub async fn profile(&self, request: &ProfileRequest) -> Result<ProfileAnswer, Error> {
        check_tenants(&request.tenants)?;
        let (scope, draft) = match &request.selection {
            Selection::Span {
                trace_id,
                span_id,
                scope: Scope::Window,
            } => {
                let draft = self.window_draft((request, request.rows.into()), *trace_id, *span_id).await?;
                (Some(Scope::Window), draft)
            }
            Selection::Span { trace_id, span_id, scope } => {
                let draft = self
                    .scoped_draft((request, request.rows.into()), *trace_id, Some(*span_id), *scope)
                    .await?;
                (Some(*scope), draft)
            }
            Selection::Trace { trace_id } => {
                let draft = self
                    .scoped_draft((request, request.rows.into()), *trace_id, None, Scope::Trace)
                    .await?;
                (Some(Scope::Trace), draft)
            }
            Selection::Named {
                span_ids,
                trace_ids,
                selector,
            } => self.named_draft(request, span_ids, trace_ids, selector).await?,
            Selection::Profiles { ids, selector } => (None, self.profiles_draft(request, ids, selector).await?),
            Selection::Services { selector } => (None, self.services_draft(request, selector).await?),
        };
        self.complete((&request.tenants, &request.profile_type), scope, draft).await
    }

    pub(super) async fn scoped_draft(&self, asked: Kept<'_>, trace: TraceId, span: Option<SpanId>, scope: Scope) -> Result<Draft, Error> {
        let (request, keep) = asked;
        let mut data = self.fetch_named(&request.tenants, trace, SpanFields::ALL).await?;
        let relevant = TraceIndex::new(trace, &data.spans).relevant(span, scope);
        self.add_loose(&request.tenants, &relevant, &mut data).await?;
        if let Some(span) = span.filter(|span| !data.spans.iter().any(|stored| stored.span.span_id == *span)) {
            self.add_samples_by_span(&request.tenants, &[span], TimeRange::ALL, &mut data)
                .await?;
        }
        let mut draft = data.draft(ScopedQuestion {
            span,
            scope,
            selector: &request.profile_type,
            range: request.range,
            keep,
        })?;
        for span in std::mem::take(&mut draft.unexplained) {
            let reasons = self.explain((&request.tenants, &request.profile_type), &span, scope).await?;
            draft.evidence.reasons.extend(reasons);
        }
        Ok(draft)
    }

    pub(super) async fn window_draft(&self, asked: Kept<'_>, trace: TraceId, span_id: SpanId) -> Result<Draft, Error> {
        let (request, keep) = asked;
        let mut data = self.fetch_named(&request.tenants, trace, SpanFields::ALL).await?;
        if !data.spans.iter().any(|stored| stored.span.span_id == span_id) {
            self.add_samples_by_span(&request.tenants, &[span_id], TimeRange::ALL, &mut data)
                .await?;
        }
        let index = TraceIndex::new(trace, &data.spans).assuming(span_id);
        data.check_known(&index, Some(span_id))?;
        let Some(stored) = index.get(span_id).first() else {
            let mut draft = Draft::new(&request.profile_type, request.range, keep);
            let text = format!("span {span_id} was not received, so its time and place are unknown");
            draft
                .evidence
                .reasons
                .push(Reason::new(ReasonCode::SpanNotReceived, text, "ask for scope span"));
            return Ok(draft);
        };
        let span = &stored.span;
        let range = request.range.map_or(Some(span.range()), |range| range.overlap(span.range()));
        let range = range.ok_or_else(|| Error::Invalid {
            field: "start",
            message: format!("the range does not overlap span {span_id}, expected a range that does"),
        })?;
        let mut count = WindowCount::new(span, &request.profile_type, range, keep);
        let mut scan = sample_scan(&request.tenants, range, Some(vec![count.service().to_owned()]));
        scan.unlinked_only = true;
        self.visit_samples(&scan, |stored| {
            count.add(stored);
            ControlFlow::Continue(())
        })
        .await?;
        if count.may_be_closer_elsewhere() {
            let own = scan.services.take().unwrap_or_default();
            let is_own = |stored: &StoredSample| own.iter().any(|service| service == stored.info.resource.service());
            self.visit_samples(&scan, |stored| {
                if !is_own(stored) {
                    count.add(stored);
                }
                ControlFlow::Continue(())
            })
            .await?;
        }
        let mut draft = count.finish();
        if draft.gather.facts.samples == 0 {
            draft.evidence.reasons = self.explain((&request.tenants, &request.profile_type), span, Scope::Window).await?;
            draft.evidence.reasons.extend(skew_to_parent(&index, span));
        }
        Ok(draft)
    }

    async fn services_draft(&self, request: &ProfileRequest, selector: &LabelSelector) -> Result<Draft, Error> {
        let range = request.range.unwrap_or(TimeRange::ALL);
        let scan = sample_scan(&request.tenants, range, selector.services());
        let mut draft = Draft::new(&request.profile_type, Some(range), request.rows);
        let mut selected = selector.remembering();
        // A gauge is an average over profiles and an export holds what was sent: the rollup knows neither.
        let can_be_summed = !request.profile_type.is_gauge() && !request.rows;
        let wanted = Wanted {
            profile_type: Some(request.profile_type.clone()),
            labels: selector.clone(),
            by_stack: true,
            by_minute: false,
        };
        let older = self.expired(wanted, range);
        let is_lost = older.is_some() && !can_be_summed && self.clock.retention_ns.is_some();
        let mut expired = older.filter(|_| can_be_summed);
        self.visit_samples_and_expired(&scan, &mut expired, |stored| {
            if selected.selects(&stored.info) {
                draft.add(stored, claimed_precision(&stored.sample.link));
            }
            match draft.gather.stack_count() > STACKS_MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .await?;
        if let Some(expired) = &expired {
            draft.add_expired(expired);
        }
        draft.settle();
        if draft.gather.facts.samples == 0 {
            draft.evidence.reasons = nothing_selected(&draft);
        }
        if is_lost {
            draft.evidence.reasons.insert(0, lost());
        }
        Ok(draft)
    }

    /// Looks at how the span's service is profiled around it.
    pub(super) async fn explain(&self, asked: Asked<'_>, span: &Span, scope: Scope) -> Result<Vec<Reason>, Error> {
        let (tenants, profile_type) = asked;
        let services = Some(vec![span.resource.service().to_owned()]);
        let scan = sample_scan(tenants, span.range().widened(AROUND_NS), services);
        let mut around = Surroundings::of(span);
        let mut visited = 0;
        self.visit_samples(&scan, |stored| {
            around.add(stored, profile_type);
            visited += 1;
            match visited < SURROUNDING_SAMPLES_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })
        .await?;
        Ok(explain(scope, &around, self.clock))
    }

    /// Looks up the stacks and builds the tree.
    pub(super) async fn complete(&self, asked: Asked<'_>, scope: Option<Scope>, draft: Draft) -> Result<ProfileAnswer, Error> {
        let (tenants, profile_type) = asked;
        if draft.gather.stack_count() > STACKS_MAX {
            return Err(Error::TooLarge {
                message: format!("more than {STACKS_MAX} different stacks, expected a shorter range or a narrower selection"),
            });
        }
        let totals = draft.gather.totals();
        let ids: Vec<_> = totals.iter().map(|total| total.stack).collect();
        let stacks = match ids.is_empty() {
            true => Default::default(),
            false => self.snapshot.stacks(tenants, &ids).await?,
        };
        let tree = CallTree::build(&totals, &stacks);
        let mut evidence = draft.evidence;
        evidence.unresolved_frames = tree.unresolved_frames();
        evidence.reasons.extend(overflow(&totals));
        let facts = &draft.gather.facts;
        Ok(ProfileAnswer {
            profile_type: facts.profile_type.clone().unwrap_or_else(|| profile_type.nominal()),
            scope,
            total: tree.total[0],
            samples: facts.samples,
            tree,
            totals,
            stacks,
            rows: draft.rows.map(|rows| rows.finish()).transpose()?,
            range: draft.range,
            evidence,
        })
    }
}

/// Sums end at the largest value there is, and must not do so unseen.
fn overflow(totals: &[StackTotal]) -> Option<Reason> {
    let sum: i128 = totals.iter().map(|total| i128::from(total.value)).sum();
    let is_cut = sum > i128::from(i64::MAX) || totals.iter().any(|total| total.value == i64::MAX);
    let text = format!("the values add up to more than {}, which is shown instead", i64::MAX);
    is_cut.then(|| {
        Reason::new(
            ReasonCode::ValueOverflow,
            text,
            "look for a sender that counts in a wrong unit, or ask for fewer samples",
        )
    })
}

/// A part of the range is older than what is kept, and sums do not help.
pub(super) fn lost() -> Reason {
    let text = "samples of a part of the range are no longer kept, and sums by minute hold neither averages nor labels and links";
    let hint = "ask for a younger range, or for a flow in another format";
    Reason::new(ReasonCode::Expired, text, hint)
}

fn sample_scan(tenants: &[Tenant], range: TimeRange, services: Option<Vec<String>>) -> SampleScan {
    SampleScan {
        tenants: tenants.to_vec(),
        range,
        services,
        unlinked_only: false,
        received_before: None,
    }
}

/// Precision as far as the claim alone tells: which spans there are does not matter to a profile of services.
pub(super) fn claimed_precision(link: &Link) -> Precision {
    match link {
        Link::One { span_id: None, .. } => Precision::Trace,
        Link::One {
            claim: Claim::LocalRoot, ..
        } => Precision::LocalRoot,
        Link::One { .. } => Precision::Span,
        Link::None | Link::Candidates { .. } => Precision::Window,
    }
}

pub(super) fn nothing_selected(draft: &Draft) -> Vec<Reason> {
    let facts = &draft.gather.facts;
    if facts.other_type_samples > 0 {
        let types: Vec<String> = facts.other_types.iter().map(ToString::to_string).collect();
        let text = format!(
            "the selected profiles hold {} samples, of {}",
            facts.other_type_samples,
            types.join(", ")
        );
        return vec![Reason::new(ReasonCode::TypeNotCollected, text, "ask for one of these types")];
    }
    let text = "no profile in this range has the selected labels";
    let hint = "list the services and labels that were received in this range";
    vec![Reason::new(ReasonCode::ServiceNotProfiled, text, hint)]
}
