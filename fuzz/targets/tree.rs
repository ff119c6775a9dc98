#![no_main]

use spanflame_formats::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| spanflame_fuzz::check_format(bytes, Format::Tree));
