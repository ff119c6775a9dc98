//! `spanflame inspect`

use std::time::SystemTime;

use clap::Args;

use super::verification;
use crate::client::answer::{ProfileTypes, Services};
use crate::client::{Answer, Source, TableSize};
use crate::error::Error;
use crate::render::quantity;
use crate::render::table::{Column, Table};
use crate::render::terminal::{Ink, Terminal};
use crate::session::{Outcome, Session};
use crate::time::TimeWindow;

/// Show what is stored: services with their coverage, profile types, tables and their sizes
///
/// Coverage is the share of samples that name a span, and what the spans of a service rest on. Services and
/// profile types are those of the time asked about, the last hour by default; tables hold all time and all tenants,
/// without what waits in memory for its first file.
///
/// With --verify it reads every file of a directory instead and says what the medium lost or changed: exit code 0
/// if all is as it was written, 2 if something is damaged.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame inspect                               what a server has of the last hour
  spanflame inspect --since 14d
  spanflame inspect --data ./spanflame-data       what a directory holds that no server has open
  spanflame inspect --verify --data ./spanflame-data   whether all of it can still be read")]
pub(crate) struct Inspect {
    /// Print JSON: {\"services\", \"profile_types\", \"tables\"}
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Read every file and check that it is as it was written; changes nothing
    #[arg(long, requires = "data", conflicts_with_all = ["tenant", "since"])]
    verify: bool,
    #[command(flatten)]
    window: TimeWindow,
    #[command(flatten)]
    source: Source,
}

impl Inspect {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        if let Some(data) = self.source.data.as_deref().filter(|_| self.verify) {
            return verification::verify(session, data, self.json);
        }
        let window = self.window.query(SystemTime::now())?;
        let (services, types, tables) = session.wait(async {
            let client = self.source.client().await?;
            let services = client.services(window.clone()).await?;
            let types = client.profile_types(window).await?;
            Ok::<_, Error>((services, types, client.tables().await?))
        })?;
        let rows: u64 = tables.iter().map(|table| table.rows).sum();
        let is_found = !services.value.services.is_empty() || !types.value.profile_types.is_empty() || rows > 0;
        if self.json {
            session.print(&[json(&services, &types, &tables)])?;
            return Ok(Outcome::found(is_found));
        }
        let terminal = session.terminal;
        let mut lines = service_lines(&services.value, &terminal);
        lines.extend(type_lines(&types.value, &terminal));
        lines.extend(table_lines(&tables, &terminal));
        session.print(&lines)?;
        if services.value.services.is_empty() {
            session.note("nothing in this time; look further back with --since 24h");
        }
        Ok(Outcome::found(is_found))
    }
}

fn json(services: &Answer<Services>, types: &Answer<ProfileTypes>, tables: &[TableSize]) -> String {
    let tables: Vec<serde_json::Value> = tables
        .iter()
        .map(|part| {
            serde_json::json!({
                "table": part.table, "tier": part.tier, "files": part.files, "rows": part.rows, "size_bytes": part.size_bytes,
            })
        })
        .collect();
    let tables = serde_json::Value::from(tables);
    format!(
        "{{\"services\":{},\"profile_types\":{},\"tables\":{tables}}}",
        services.text(),
        types.text()
    )
}

fn service_lines(services: &Services, terminal: &Terminal) -> Vec<String> {
    let mut table = Table::new(&[
        ("service", Column::Text),
        ("spans", Column::Right),
        ("requests", Column::Right),
        ("errors", Column::Right),
        ("samples", Column::Right),
        ("linked", Column::Right),
        ("CPU", Column::Right),
    ]);
    for service in &services.services {
        table.row([
            service.name.clone(),
            quantity::count(service.spans as i64),
            quantity::count(service.requests as i64),
            quantity::count(service.errors as i64),
            quantity::count(service.samples as i64),
            linked(service.linked_samples, service.samples),
            quantity::duration(service.cpu_ns),
        ]);
    }
    table.lines(terminal)
}

/// The share of samples that name a span. These are all there are, so it needs no interval.
fn linked(linked: u64, samples: u64) -> String {
    match samples {
        0 => "-".to_owned(),
        _ => format!("{:.0} %", linked as f64 / samples as f64 * 100.0),
    }
}

fn type_lines(types: &ProfileTypes, terminal: &Terminal) -> Vec<String> {
    let mut table = Table::new(&[
        ("profile type", Column::Left),
        ("samples", Column::Right),
        ("services", Column::Text),
    ]);
    for info in &types.profile_types {
        table.row([
            info.profile_type.clone(),
            quantity::count(info.samples as i64),
            info.services.join(", "),
        ]);
    }
    let mut lines = vec![String::new()];
    lines.extend(table.lines(terminal));
    lines
}

fn table_lines(tables: &[TableSize], terminal: &Terminal) -> Vec<String> {
    let mut table = Table::new(&[
        ("table", Column::Left),
        ("tier", Column::Left),
        ("files", Column::Right),
        ("rows", Column::Right),
        ("size", Column::Right),
        ("per row", Column::Right),
    ]);
    let (mut files, mut size) = (0, 0);
    for part in tables {
        files += part.files;
        size += part.size_bytes;
        let per_row = part.size_bytes.checked_div(part.rows);
        table.row([
            part.table.clone(),
            part.tier.clone(),
            quantity::count(part.files as i64),
            quantity::count(part.rows as i64),
            quantity::bytes(part.size_bytes as i64),
            per_row.map_or("-".to_owned(), |size| quantity::bytes(size as i64)),
        ]);
    }
    if tables.is_empty() {
        return vec![
            String::new(),
            "no table files yet: what arrived is in the log and in memory".to_owned(),
        ];
    }
    let mut lines = vec![String::new()];
    lines.extend(table.lines(terminal));
    let sum = format!("{} in {}", quantity::bytes(size as i64), quantity::counted(files, "file"));
    lines.push(terminal.paint(Ink::Faint, &sum));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_is_the_share_of_samples_with_a_span() {
        let services: Services = serde_json::from_str(
            r#"{"services": [{"name": "cart", "spans": 1204, "samples": 300, "linked_samples": 291}, {"name": "db"}]}"#,
        )
        .expect("an answer");
        let lines = service_lines(&services, &Terminal::PLAIN);
        assert_eq!(lines[1], "cart     1,204         0       0      300    97 %  0 ns");
        assert_eq!(lines[2], "db           0         0       0        0       -  0 ns");
    }

    #[test]
    fn tables_are_summed() {
        let part = |table: &str, size_bytes| TableSize {
            table: table.to_owned(),
            tier: "flush".to_owned(),
            files: 2,
            size_bytes,
            rows: 10,
        };
        let lines = table_lines(&[part("spans", 2048), part("samples", 1024)], &Terminal::PLAIN);
        assert_eq!(lines.last().map(String::as_str), Some("3.00 KiB in 4 files"));
    }
}
