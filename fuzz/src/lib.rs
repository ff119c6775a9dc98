//! What the targets share.

use spanflame_formats::{Decoded, Error, Format, Limits, Upload};

/// Small, so that reaching a limit is cheap.
pub fn limits() -> Limits {
    Limits {
        decoded_bytes_max: 4 << 20,
        expanded_bytes_max: 16 << 20,
        ..Limits::default()
    }
}

/// Decodes a file of a format, and checks what must hold of whatever came out.
pub fn check_format(bytes: &[u8], format: Format) {
    check(format.decode(bytes, &Upload::default(), &limits()));
}

/// An error is a fine answer; what is decoded has to be whole.
pub fn check(decoded: Result<Decoded, Error>) {
    let Ok(decoded) = decoded else { return };
    for profile in &decoded.batch.profiles {
        assert!(
            profile.is_complete(&decoded.batch.stacks),
            "a sample names a stack that is not there"
        );
        for sample in &profile.samples {
            assert!(sample.times.is_sorted(), "times are not in order");
        }
    }
}
