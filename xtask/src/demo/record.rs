//! What the load says it did: the truth that answers are judged by.

use std::path::Path;

use serde_json::Value;

use crate::Failure;

/// What was planted into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    Nothing,
    LargeCart,
    OddCoupon,
}

/// One request that was answered.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) trace_id: String,
    pub(super) plant: Plant,
    pub(super) latency_ms: u64,
}

/// All records so far, in the order of their answers; none if the load has not begun.
pub(super) fn read(path: &Path) -> Result<Vec<Record>, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    // The last line may still be in the making.
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().map(parse).collect()
}

fn parse(line: &str) -> Result<Record, Failure> {
    let value: Value = serde_json::from_str(line)?;
    let plant = match value["plant"].as_str() {
        Some("nothing") => Plant::Nothing,
        Some("large_cart") => Plant::LargeCart,
        Some("odd_coupon") => Plant::OddCoupon,
        other => return Err(format!("the load recorded plant {other:?}, expected nothing, large_cart or odd_coupon").into()),
    };
    let trace_id = value["trace_id"]
        .as_str()
        .ok_or("the load recorded a request without trace_id")?
        .to_owned();
    Ok(Record {
        trace_id,
        plant,
        latency_ms: value["latency_ms"].as_u64().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_was_planted() {
        let record = parse(r#"{"trace_id":"0af7","plant":"odd_coupon","latency_ms":812}"#).expect("a record");
        assert_eq!(
            (record.trace_id.as_str(), record.plant, record.latency_ms),
            ("0af7", Plant::OddCoupon, 812)
        );
    }

    #[test]
    fn an_unknown_plant_is_an_error() {
        let failure = parse(r#"{"trace_id":"0af7","plant":"weeds","latency_ms":1}"#).expect_err("weeds were not planted");
        assert!(failure.to_string().contains("weeds"), "{failure}");
    }
}
