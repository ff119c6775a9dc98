#![no_main]

use spanflame_formats::zipkin;
use spanflame_fuzz::{check, limits};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(zipkin::decode(bytes, &limits())));
