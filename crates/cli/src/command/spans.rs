//! `spanflame spans`

use std::time::SystemTime;

use clap::{Args, ValueEnum};

use crate::client::answer::{self, FoundSpan};
use crate::client::{Answer, Source};
use crate::error::Error;
use crate::render::quantity;
use crate::render::table::{Column, Table};
use crate::render::terminal::{Ink, Terminal};
use crate::session::{Outcome, Session};
use crate::time::TimeWindow;

/// Most spans the API gives in one page.
const PAGE_ROWS_MAX: usize = 10_000;

/// Find spans by a TraceQL query: the slowest or the newest
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame spans '{ duration > 500ms }'
  spanflame spans '{ resource.service.name = \"cart\" && status = error }' --order start --since 6h
  spanflame spans '{ name =~ \"GET /.*\" }' --start 2026-11-30T22:00:00Z --end 2026-11-30T22:10:00Z --limit 100
  spanflame spans '{ }' --json | jq -r '.spans[0].trace_id'")]
pub(crate) struct Spans {
    /// TraceQL, one spanset filter: { condition && condition }
    #[arg(value_name = "QUERY", default_value = "{ }")]
    query: String,
    /// Longest or newest first
    #[arg(long, value_enum, default_value_t)]
    order: Order,
    /// Most spans to show, all pages together
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Go on where an earlier answer ended: its next page
    #[arg(long, value_name = "PAGE")]
    page: Option<String>,
    /// Print the server's answers as JSON, one page a line
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    window: TimeWindow,
    #[command(flatten)]
    source: Source,
}

/// Which spans come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Longest first.
    #[default]
    Duration,
    /// Newest first.
    Start,
}

impl Spans {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        let pages = session.wait(self.pages()).map_err(|error| error.with_query(&self.query))?;
        let found: Vec<&FoundSpan> = pages.iter().flat_map(|page| &page.value.spans).collect();
        if self.json {
            let lines: Vec<String> = pages.iter().map(|page| page.text().to_owned()).collect();
            session.print(&lines)?;
            return Ok(Outcome::found(!found.is_empty()));
        }
        if found.is_empty() {
            session.note(&format!(
                "nothing found: no span matches {} in this time; look further back with --since 24h, or in another tenant with --tenant",
                self.query
            ));
            return Ok(Outcome::Nothing);
        }
        let mut lines = span_lines(&found, &session.terminal);
        if let Some(last) = pages.last() {
            lines.push(session.terminal.paint(Ink::Faint, &self.summary(found.len(), &last.value)));
        }
        session.print(&lines)?;
        Ok(Outcome::Found)
    }

    /// Pages until the limit is reached or there are no more.
    async fn pages(&self) -> Result<Vec<Answer<answer::Spans>>, Error> {
        let order = match self.order {
            Order::Duration => "duration",
            Order::Start => "start",
        };
        let mut query = vec![("q", self.query.clone()), ("order", order.to_owned())];
        query.extend(self.window.query(SystemTime::now())?);
        let client = self.source.client().await?;
        let mut pages: Vec<Answer<answer::Spans>> = Vec::new();
        let mut next = self.page.clone();
        let mut left = usize::try_from(self.limit).unwrap_or(usize::MAX);
        while left > 0 {
            let mut query = query.clone();
            query.push(("limit", left.min(PAGE_ROWS_MAX).to_string()));
            query.extend(next.take().map(|page| ("page", page)));
            let page = client.spans(query).await?;
            left = left.saturating_sub(page.value.spans.len());
            next = page.value.next_page.clone().filter(|_| !page.value.spans.is_empty());
            pages.push(page);
            if next.is_none() {
                break;
            }
        }
        Ok(pages)
    }

    fn summary(&self, shown: usize, last: &answer::Spans) -> String {
        let matched = last
            .matched
            .map_or_else(String::new, |matched| format!(" of {}", quantity::count(matched as i64)));
        let more = last
            .next_page
            .as_ref()
            .map_or_else(String::new, |page| format!("; more: the same with --page {page}"));
        format!(
            "{}{matched} spans{more}\nexplain one: spanflame why TRACE/SPAN",
            quantity::count(shown as i64)
        )
    }
}

fn span_lines(spans: &[&FoundSpan], terminal: &Terminal) -> Vec<String> {
    let mut table = Table::new(&[
        ("start (UTC)", Column::Left),
        ("duration", Column::Right),
        ("CPU", Column::Right),
        ("samples", Column::Right),
        ("status", Column::Left),
        ("service", Column::Text),
        ("span", Column::Text),
        ("trace/span", Column::Left),
    ]);
    for span in spans {
        table.row([
            quantity::instant(span.start_unix_nano.0).trim_end_matches(" UTC").to_owned(),
            quantity::duration(span.duration_ns),
            span.cpu_ns
                .filter(|_| span.samples != Some(0))
                .map_or("-".to_owned(), quantity::duration),
            span.samples
                .filter(|samples| *samples > 0)
                .map_or("-".to_owned(), |samples| quantity::count(samples as i64)),
            if span.status == "unset" {
                "-".to_owned()
            } else {
                span.status.clone()
            },
            span.service.clone(),
            span.name.clone(),
            format!("{}/{}", span.trace_id, span.span_id),
        ]);
    }
    table.lines(terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_never_cut() {
        let span: FoundSpan = serde_json::from_value(serde_json::json!({
            "trace_id": "5732450b54c5f9e85941cd3567d0ee56", "span_id": "f29bbc09d7f2d757", "service": "a-service-with-a-long-name",
            "name": "GET /a/long/path/of/an/operation", "start_unix_nano": "1796076315462194529", "duration_ns": 58_700_000, "status": "ok",
        }))
        .expect("a span");
        let lines = span_lines(&[&span], &Terminal::PLAIN);
        assert!(lines[1].ends_with("5732450b54c5f9e85941cd3567d0ee56/f29bbc09d7f2d757"), "{lines:?}");
        assert!(lines[1].contains("58.7 ms    -        -"), "{lines:?}");
    }
}
