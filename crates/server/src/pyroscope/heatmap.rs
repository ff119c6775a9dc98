//! Profiles or spans by time and cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use spanflame_proto::pyroscope as wire;
use spanflame_query::{Engine, Item, ItemKind};
use wire::{ExemplarType, HeatmapQueryType};

use super::series::{Wanted, exemplar};
use crate::app::App;
use crate::connect::Call;
use crate::failure::Failure;
use crate::question::ask;

/// Rows of a heatmap, of equal height over all series.
const ROWS: usize = 20;

/// `SelectHeatmap`.
pub(super) async fn select(app: Arc<App>, call: Call<wire::SelectHeatmapRequest>) -> Result<Response, Failure> {
    let Call { question, headers, manner } = call;
    let (kind, own_exemplars) = match question.query_type() {
        HeatmapQueryType::Span => (ItemKind::Span, ExemplarType::Span),
        HeatmapQueryType::Individual | HeatmapQueryType::Unspecified => (ItemKind::Profile, ExemplarType::Individual),
    };
    let with_exemplars = match question.exemplar_type() {
        ExemplarType::Unspecified | ExemplarType::None => false,
        asked if asked == own_exemplars => true,
        other => {
            let message = format!("exemplar_type is {}, expected that of query_type or none", other.as_str_name());
            return Err(Failure::invalid("exemplar_type", message));
        }
    };
    let limit = question
        .limit
        .and_then(|limit| usize::try_from(limit).ok())
        .filter(|limit| *limit > 0);
    let wanted = Wanted::new(
        &headers,
        (&question.profile_type_id, &question.label_selector),
        (question.start, question.end),
        question.step,
        question.group_by,
    )?;
    let asked = async move |engine: Engine| {
        let items = match wanted.is_empty {
            true => Vec::new(),
            false => engine.profile_items(kind, &wanted.request).await?,
        };
        let mut series = write(&wanted, &items, with_exemplars);
        series.truncate(limit.unwrap_or(usize::MAX));
        Ok(wire::SelectHeatmapResponse { series })
    };
    ask(&app, "pyroscope_heatmap", asked, move |answer: &wire::SelectHeatmapResponse, _| {
        manner.answer(answer)
    })
    .await
}

/// Linear rows from the smallest to the largest value of the answer.
struct Rows {
    smallest: i64,
    height: f64,
}

impl Rows {
    fn of(items: &[Item]) -> Rows {
        let smallest = items.iter().map(|item| item.value).min().unwrap_or(0);
        let largest = items.iter().map(|item| item.value).max().unwrap_or(0);
        let height = (largest as f64 - smallest as f64) / ROWS as f64;
        Rows {
            smallest,
            height: if height > 0.0 { height } else { 1.0 },
        }
    }

    fn row(&self, value: i64) -> usize {
        (((value as f64 - self.smallest as f64) / self.height) as usize).min(ROWS - 1)
    }

    fn bounds(&self) -> Vec<f64> {
        (0..ROWS).map(|row| self.smallest as f64 + self.height * row as f64).collect()
    }
}

#[derive(Default)]
struct Slot<'a> {
    counts: [i32; ROWS],
    dearest: [Option<&'a Item>; ROWS],
}

/// By labels; slots by time, only those with something in them.
fn write(wanted: &Wanted, items: &[Item], with_exemplars: bool) -> Vec<wire::HeatmapSeries> {
    let rows = Rows::of(items);
    let mut series: BTreeMap<&[(String, String)], BTreeMap<usize, Slot<'_>>> = BTreeMap::new();
    for item in items {
        let step = wanted.request.steps.of(item.at);
        let slot = series.entry(&item.labels).or_default().entry(step).or_default();
        let row = rows.row(item.value);
        slot.counts[row] = slot.counts[row].saturating_add(1);
        if slot.dearest[row].is_none_or(|best| item.value > best.value) {
            slot.dearest[row] = Some(item);
        }
    }
    let slot = |(step, slot): (usize, Slot<'_>)| {
        let dearest = slot.dearest.into_iter().flatten().filter(|_| with_exemplars);
        wire::HeatmapSlot {
            timestamp: wanted.point_ms(step),
            y_min: rows.bounds(),
            counts: slot.counts.to_vec(),
            exemplars: dearest.map(|item| exemplar(wanted, item)).collect(),
        }
    };
    let one = |(labels, slots): (&[(String, String)], BTreeMap<usize, Slot<'_>>)| wire::HeatmapSeries {
        labels: wanted.labels(labels),
        slots: slots.into_iter().map(slot).collect(),
    };
    series.into_iter().map(one).collect()
}
