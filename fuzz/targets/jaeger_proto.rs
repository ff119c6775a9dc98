#![no_main]

use spanflame_formats::jaeger;
use spanflame_fuzz::{check, limits};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(jaeger::decode_protobuf(bytes, &limits())));
