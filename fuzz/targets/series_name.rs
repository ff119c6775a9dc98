#![no_main]

use spanflame_formats::pyroscope::Series;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = Series::from_name(text);
});
