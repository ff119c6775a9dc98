//! Content codings of request bodies: none, gzip, zstd.
//!
//! The output is bounded while it grows, so a bomb costs at most the bound.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use crate::Error;

/// A content coding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    #[default]
    Identity,
    /// Gzip, one or several members.
    Gzip,
    /// Zstandard, one or several frames.
    Zstd,
}

impl Encoding {
    /// The coding that a `Content-Encoding` or `grpc-encoding` header names; empty means none.
    pub fn from_name(name: &str) -> Result<Encoding, Error> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" | "none" => Ok(Encoding::Identity),
            "gzip" | "x-gzip" => Ok(Encoding::Gzip),
            "zstd" => Ok(Encoding::Zstd),
            _ => Err(Error::UnknownEncoding {
                name: name.chars().take(100).collect(),
            }),
        }
    }

    /// The coding whose magic number the bytes begin with.
    pub fn detect(bytes: &[u8]) -> Encoding {
        match bytes {
            [0x1f, 0x8b, ..] => Encoding::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Encoding::Zstd,
            _ => Encoding::Identity,
        }
    }

    /// The header's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Identity => "identity",
            Encoding::Gzip => "gzip",
            Encoding::Zstd => "zstd",
        }
    }
}

/// Undoes `encoding`. Fails if the result has more than `bytes_max` bytes, having produced no more than that.
pub fn decompress(encoding: Encoding, bytes: &[u8], bytes_max: usize) -> Result<Cow<'_, [u8]>, Error> {
    let failed = |source| Error::Compression {
        encoding: encoding.as_str(),
        source,
    };
    match encoding {
        Encoding::Identity if bytes.len() > bytes_max => Err(too_large(bytes_max)),
        Encoding::Identity => Ok(Cow::Borrowed(bytes)),
        Encoding::Gzip => read_bounded(flate2::read::MultiGzDecoder::new(bytes), bytes.len(), bytes_max, failed),
        Encoding::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(failed)?;
            read_bounded(decoder, bytes.len(), bytes_max, failed)
        }
    }
}

/// Compresses with gzip at the default level.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("writing to a vector does not fail");
    encoder.finish().expect("writing to a vector does not fail")
}

fn too_large(bytes_max: usize) -> Error {
    Error::TooLarge {
        what: "decompressed bytes",
        max: bytes_max,
    }
}

fn read_bounded<'a>(
    reader: impl Read,
    compressed_bytes: usize,
    bytes_max: usize,
    failed: impl Fn(io::Error) -> Error,
) -> Result<Cow<'a, [u8]>, Error> {
    let expected = compressed_bytes.saturating_mul(4).min(bytes_max);
    let mut out = Vec::with_capacity(expected);
    reader.take(bytes_max as u64 + 1).read_to_end(&mut out).map_err(failed)?;
    match out.len() > bytes_max {
        true => Err(too_large(bytes_max)),
        false => Ok(Cow::Owned(out)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn check_bomb(encoding: Encoding, compressed: &[u8]) {
        let error = decompress(encoding, compressed, 1 << 20).expect_err("larger than the bound");
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let whole = decompress(encoding, compressed, 8 << 20).expect("fits");
        assert_eq!(whole.len(), 8 << 20);
    }

    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0; 8 << 20];
        check_bomb(Encoding::Gzip, &gzip(&zeros));
        check_bomb(Encoding::Zstd, &zstd::encode_all(&zeros[..], 1).expect("compresses"));
        check_bomb(Encoding::Identity, &zeros);
    }

    #[test]
    fn truncated_and_foreign_bytes_are_refused() {
        let compressed = gzip(b"some text");
        for end in 0..compressed.len() {
            assert!(decompress(Encoding::Gzip, &compressed[..end], 100).is_err(), "{end}");
        }
        assert!(decompress(Encoding::Zstd, b"hello", 100).is_err());
    }

    #[test]
    fn names_are_those_of_the_headers() {
        assert_eq!(Encoding::from_name(" GZIP").expect("known"), Encoding::Gzip);
        let error = Encoding::from_name("br").expect_err("unknown");
        assert_eq!(error.to_string(), "content encoding is \"br\", expected identity, gzip or zstd");
    }
}
