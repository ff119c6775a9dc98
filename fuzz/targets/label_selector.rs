#![no_main]

use spanflame_query::LabelSelector;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = LabelSelector::parse(text);
});
