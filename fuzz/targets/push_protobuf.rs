#![no_main]

use spanflame_formats::pyroscope;
use spanflame_fuzz::{check, limits};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(pyroscope::push::decode_protobuf(bytes, &limits())));
