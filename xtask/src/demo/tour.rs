//! What a user is shown: from the slowest requests to the functions that made one slow.

use super::ask::Ask;
use super::record::Record;
use crate::Failure;

/// Runs the commands a user would type, and shows them.
pub(super) fn show(ask: &Ask, records: &[Record], since_unix_nano: u128) -> Result<(), Failure> {
    let since = since_unix_nano.to_string();
    println!("\nThe slowest requests:");
    ask.show(&["spans", SLOWEST, "--order", "duration", "--limit", "8", "--start", &since])?;
    let slowest = records
        .iter()
        .max_by_key(|record| record.latency_ms)
        .ok_or("no request was answered")?;
    println!("\nOne of them, where its time went, and what the code was doing in its slow span:");
    ask.show(&["why", &slowest.trace_id])?;
    println!("\nAll requests together point elsewhere, to what every request pays for:");
    ask.show(&["profile", "{ }", "--start", &since, "--rows", "10"])
}

/// Requests as the user of the shop sees them.
const SLOWEST: &str = r#"{ resource.service.name = "frontend" && kind = server }"#;
