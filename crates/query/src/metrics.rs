//! Metrics of spans over time: what a metrics query computes.
//!
//! A span counts at the step in which it began. Steps are whole multiples of their length since the epoch, so that two
//! questions about neighbouring ranges agree where they meet; the value of a step stands at its end.

use std::collections::{BTreeMap, HashMap};

use spanflame_model::{Span, Tenant, TimeRange, Timestamp, TraceId, Value};

use crate::Error;
use crate::tags::text_of;
use crate::traceql::{Function, MetricsQuery, Then};

/// What to compute.
#[derive(Clone, Debug)]
pub struct MetricsRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Of which spans, and what.
    pub query: MetricsQuery,
    /// Spans that began in it.
    pub range: TimeRange,
    /// The length of a step in nanoseconds; `None` is one value for the whole range.
    pub step_ns: Option<u64>,
    /// Most examples of one series.
    pub exemplars: usize,
}

impl MetricsRequest {
    /// The most steps of one answer.
    pub const STEPS_MAX: u64 = 11_000;
    /// The most series of one answer.
    pub const SERIES_MAX: usize = 1_000;
}

/// What was computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsAnswer {
    /// The end of every step.
    pub times: Vec<Timestamp>,
    /// By labels.
    pub series: Vec<MetricSeries>,
    /// Spans that count.
    pub spans: u64,
    /// Spans of series beyond the limits: they are in no series.
    pub left_out: u64,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSeries {
    /// Name and value; `None` where spans have no value.
    pub labels: Vec<(String, Option<Value>)>,
    /// Parallel to [`MetricsAnswer::times`]; `None` where there is nothing to compute of.
    pub values: Vec<Option<f64>>,
    /// Spans that are examples, by time.
    pub exemplars: Vec<Exemplar>,
}

/// A span that contributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exemplar {
    /// Its trace.
    pub trace_id: TraceId,
    /// When it began.
    pub time: Timestamp,
    /// What it measures; the value of its step where spans are counted.
    pub value: f64,
}

/// Groups of spans that are told apart while counting.
const GROUPS_MAX: usize = 20_000;
/// Cells (a group at a step) that are kept.
const CELLS_MAX: usize = 1_000_000;
/// The ratio of the bounds of buckets for quantiles: a middle is at most 1 % off.
const BUCKET_RATIO: f64 = 1.02;

/// Cuts a range into steps.
#[derive(Clone, Copy)]
struct Grid {
    start_ns: u64,
    step_ns: u64,
    count: usize,
}

impl Grid {
    fn new(request: &MetricsRequest) -> Result<Grid, Error> {
        let (start, end) = (request.range.start().unix_nanos() as u64, request.range.end().unix_nanos() as u64);
        let Some(step_ns) = request.step_ns.map(|step| step.max(1)) else {
            return Ok(Grid {
                start_ns: start,
                step_ns: end - start,
                count: 1,
            });
        };
        let start_ns = start - start % step_ns;
        let count = (end - start_ns).div_ceil(step_ns);
        if count > MetricsRequest::STEPS_MAX {
            return Err(Error::Invalid {
                field: "step",
                message: format!(
                    "the range has {count} steps of {step_ns} ns, expected at most {} by a longer step",
                    MetricsRequest::STEPS_MAX
                ),
            });
        }
        Ok(Grid {
            start_ns,
            step_ns,
            count: count as usize,
        })
    }

    fn step(&self, time: Timestamp) -> usize {
        let step = (time.unix_nanos() as u64).saturating_sub(self.start_ns) / self.step_ns;
        (step as usize).min(self.count - 1)
    }

    fn times(&self) -> Vec<Timestamp> {
        let end = |step: usize| Timestamp::from_unix_nanos(self.start_ns + (step as u64 + 1) * self.step_ns);
        (0..self.count).map(|step| end(step).unwrap_or(Timestamp::MAX)).collect()
    }
}

/// What is known of the spans of a group at a step.
#[derive(Default)]
struct Cell {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    /// Of quantiles: powers of [`BUCKET_RATIO`]; of histograms: powers of 2. Not kept for others.
    buckets: BTreeMap<i32, u64>,
    example: Option<Exemplar>,
}

/// One group of spans.
struct Group {
    values: Vec<Option<Value>>,
    cells: BTreeMap<usize, Cell>,
    spans: u64,
}

/// Computes while spans come by.
pub(crate) struct Meter<'a> {
    request: &'a MetricsRequest,
    grid: Grid,
    groups: HashMap<Vec<String>, Group>,
    cells: usize,
    spans: u64,
    left_out: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(request: &'a MetricsRequest) -> Result<Meter<'a>, Error> {
        Ok(Meter {
            request,
            grid: Grid::new(request)?,
            groups: HashMap::new(),
            cells: 0,
            spans: 0,
            left_out: 0,
        })
    }

    /// Counts a span that is selected.
    pub(crate) fn add(&mut self, span: &Span) {
        if !self.request.range.contains(span.start) {
            return;
        }
        let function = &self.request.query.function;
        let number = match function.operand() {
            Some(operand) => match operand.number(span) {
                Some(number) => number,
                None => return,
            },
            None => span.duration_ns as f64,
        };
        self.spans += 1;
        let values = self.request.query.group(span);
        let key: Vec<String> = values.iter().map(key_of).collect();
        let is_full = self.groups.len() >= GROUPS_MAX || self.cells >= CELLS_MAX;
        if is_full && !self.groups.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let new = || Group {
            values,
            cells: BTreeMap::new(),
            spans: 0,
        };
        let group = self.groups.entry(key).or_insert_with(new);
        let step = self.grid.step(span.start);
        if !group.cells.contains_key(&step) {
            self.cells += 1;
        }
        group.spans += 1;
        group.cells.entry(step).or_default().add(number, bucket_of(function, number), span);
    }

    pub(crate) fn finish(self) -> MetricsAnswer {
        let Meter {
            request,
            grid,
            groups,
            spans,
            mut left_out,
            ..
        } = self;
        let mut groups: Vec<(Vec<String>, Group)> = groups.into_iter().collect();
        // The largest stay; what is answered is in order of labels.
        groups.sort_by(|(a_key, a), (b_key, b)| (b.spans, a_key).cmp(&(a.spans, b_key)));
        let beyond = groups.split_off(groups.len().min(MetricsRequest::SERIES_MAX));
        left_out += beyond.iter().map(|(_, group)| group.spans).sum::<u64>();
        groups.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut series = Vec::new();
        for (_, group) in &groups {
            series.extend(series_of(group, request, grid));
        }
        for then in &request.query.then {
            apply(*then, &mut series, grid.count);
        }
        series.retain(|series| series.values.iter().any(Option::is_some));
        MetricsAnswer {
            times: grid.times(),
            series,
            spans,
            left_out,
        }
    }
}

impl Cell {
    fn add(&mut self, number: f64, bucket: Option<i32>, span: &Span) {
        let is_first = self.count == 0;
        self.count += 1;
        self.sum += number;
        self.min = if is_first { number } else { self.min.min(number) };
        if is_first || number >= self.max {
            self.max = number;
            self.example = Some(Exemplar {
                trace_id: span.trace_id,
                time: span.start,
                value: number,
            });
        }
        if let Some(bucket) = bucket {
            *self.buckets.entry(bucket).or_default() += 1;
        }
    }

    fn quantile(&self, quantile: f64) -> f64 {
        let rank = (self.count as f64 * quantile).ceil().max(1.0) as u64;
        if rank >= self.count {
            return self.max;
        }
        let mut below = 0;
        for (bucket, count) in &self.buckets {
            below += count;
            if below >= rank {
                let middle = BUCKET_RATIO.powf(f64::from(*bucket) - 0.5);
                return middle.clamp(self.min, self.max);
            }
        }
        self.max
    }
}

fn bucket_of(function: &Function, number: f64) -> Option<i32> {
    let exponent = |base: f64| match number > 0.0 {
        true => (number.ln() / base.ln()).ceil() as i32,
        false => i32::MIN / 2,
    };
    match function {
        Function::Quantiles(..) => Some(exponent(BUCKET_RATIO)),
        Function::Histogram(_) => Some(exponent(2.0)),
        _ => None,
    }
}

/// Tells values of equal text and other type apart.
fn key_of(value: &Option<Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Str(text)) => format!("s{text}"),
        Some(other) => format!("o{}", text_of(other)),
    }
}

/// The series that a group becomes: one, or one for each quantile or bucket.
fn series_of(group: &Group, request: &MetricsRequest, grid: Grid) -> Vec<MetricSeries> {
    let query = &request.query;
    // Durations are nanoseconds here and seconds in the answer.
    let unit = match query.function.operand() {
        Some(operand) if operand.is_duration() => 1e9,
        _ => 1.0,
    };
    let mut labels: Vec<(String, Option<Value>)> = query.labels().map(str::to_owned).zip(group.values.clone()).collect();
    let one = |further: Option<(String, Value)>, value: &dyn Fn(&Cell) -> Option<f64>, absent: Option<f64>| {
        let mut labels = labels.clone();
        labels.extend(further.map(|(name, value)| (name, Some(value))));
        let values = (0..grid.count).map(|step| group.cells.get(&step).map_or(absent, value));
        MetricSeries {
            labels,
            values: values.collect(),
            exemplars: Vec::new(),
        }
    };
    let mut series = match &query.function {
        Function::Rate => {
            let seconds = grid.step_ns as f64 / 1e9;
            vec![one(None, &|cell| Some(cell.count as f64 / seconds), Some(0.0))]
        }
        Function::Count => vec![one(None, &|cell| Some(cell.count as f64), Some(0.0))],
        Function::Min(_) => vec![one(None, &|cell| Some(cell.min / unit), None)],
        Function::Max(_) => vec![one(None, &|cell| Some(cell.max / unit), None)],
        Function::Sum(_) => vec![one(None, &|cell| Some(cell.sum / unit), None)],
        Function::Avg(_) => vec![one(None, &|cell| Some(cell.sum / cell.count as f64 / unit), None)],
        Function::Quantiles(_, quantiles) => quantiles
            .iter()
            .map(|quantile| {
                let label = ("p".to_owned(), Value::Double(*quantile));
                one(Some(label), &|cell| Some(cell.quantile(*quantile) / unit), None)
            })
            .collect(),
        Function::Histogram(_) => {
            let mut buckets: Vec<i32> = group.cells.values().flat_map(|cell| cell.buckets.keys().copied()).collect();
            buckets.sort_unstable();
            buckets.dedup();
            let series = buckets.into_iter().map(|bucket| {
                let label = ("__bucket".to_owned(), Value::Double(2f64.powi(bucket) / unit));
                one(
                    Some(label),
                    &|cell| Some(cell.buckets.get(&bucket).copied().unwrap_or(0) as f64),
                    Some(0.0),
                )
            });
            series.collect()
        }
    };
    if labels.is_empty() && series.iter().all(|series| series.labels.is_empty()) {
        labels.push(("__name__".to_owned(), Some(query.function.name().into())));
        series.iter_mut().for_each(|series| series.labels.clone_from(&labels));
    }
    if let Some(first) = series.first_mut() {
        first.exemplars = exemplars(group, request, unit, &first.values);
    }
    series
}

/// One example of each step, those that measure most.
fn exemplars(group: &Group, request: &MetricsRequest, unit: f64, values: &[Option<f64>]) -> Vec<Exemplar> {
    let is_counted = request.query.function.operand().is_none();
    let examples = group.cells.iter().filter_map(|(step, cell)| Some((*step, cell.example?)));
    let mut examples: Vec<(usize, Exemplar)> = examples.collect();
    examples.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    examples.truncate(request.exemplars);
    examples.sort_by_key(|(step, _)| *step);
    let shown = examples.into_iter().map(|(step, example)| Exemplar {
        value: match is_counted {
            true => values[step].unwrap_or_default(),
            false => example.value / unit,
        },
        ..example
    });
    shown.collect()
}

fn apply(then: Then, series: &mut [MetricSeries], steps: usize) {
    let count = match then {
        Then::Top(count) | Then::Bottom(count) => count,
        Then::Filter(..) => {
            let values = series.iter_mut().flat_map(|series| &mut series.values);
            values.for_each(|value| *value = value.filter(|value| then.keeps(*value)));
            return;
        }
    };
    for step in 0..steps {
        let mut ranked: Vec<(f64, usize)> = Vec::new();
        ranked.extend(series.iter().enumerate().filter_map(|(n, series)| Some((series.values[step]?, n))));
        ranked.sort_by(|a, b| match then {
            Then::Bottom(_) => a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)),
            _ => b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)),
        });
        for (_, n) in ranked.into_iter().skip(count) {
            series[n].values[step] = None;
        }
    }
}

#[cfg(test)]
mod tests;
