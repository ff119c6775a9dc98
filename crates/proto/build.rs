//! Compiles every file of `proto/` without a `protoc`.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let mut files: Vec<PathBuf> = std::fs::read_dir("proto")?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "proto"));
    files.sort();
    let descriptors = protox::compile(&files, ["proto"])?;
    // Services are served on raw messages (`server/src/grpc.rs` says why), so only messages are generated.
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
        .compile_fds(descriptors)?;
    Ok(())
}
