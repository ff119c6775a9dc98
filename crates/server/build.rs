//! Puts the built page into the binary: `page/built` where `cargo xtask ui` has made it, else a placeholder that says how.
//!
//! Writes `$OUT_DIR/assets.rs`, a list of `Asset`s whose bytes are gzip. Cargo watches the folder `page`, which is always
//! there, so a page that is built later is noticed, and a checkout without Node builds as well.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    println!("cargo::rerun-if-changed=build.rs");
    let page = Path::new("page");
    let built = page.join("built");
    let mut assets = Vec::new();
    if built.join("index.html").is_file() {
        collect(&built, &mut assets)?;
    } else {
        assets.push(page.join("placeholder.html"));
    }
    assets.sort();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut list = String::from("[\n");
    for (number, asset) in assets.iter().enumerate() {
        let content = std::fs::read(asset)?;
        let packed = out.join(format!("asset-{number}.gz"));
        std::fs::write(&packed, gzip(&content)?)?;
        let name = match asset.strip_prefix(&built) {
            Ok(name) => format!("/{}", name.display()),
            Err(_) => "/index.html".to_owned(),
        };
        let (len, tag) = (content.len(), fnv1a(&content));
        writeln!(
            list,
            "Asset {{ path: {name:?}, len: {len}, tag: \"\\\"{tag:016x}\\\"\", gzip: include_bytes!({packed:?}) }},"
        )
        .expect("text grows");
    }
    list.push(']');
    std::fs::write(out.join("assets.rs"), list)
}

/// The files below a folder, without the build's own notes.
fn collect(folder: &Path, assets: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_note = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        match (is_note, path.is_dir()) {
            (true, _) => {}
            (false, true) => collect(&path, assets)?,
            (false, false) => assets.push(path),
        }
    }
    Ok(())
}

fn gzip(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}

/// 64-bit FNV-1a: tells versions of a file apart, nothing more.
fn fnv1a(content: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    content.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
