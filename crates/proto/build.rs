//! Compiles every file of `proto/` without a `protoc`.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let mut files: Vec<PathBuf> = std::fs::read_dir("proto")?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "proto"));
    files.sort();
    let descriptors = protox::compile(&files, ["proto"])?;
    // JSON of messages is read and written by their descriptors.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // Services are served on raw messages (`server/src/grpc.rs` says why), so only messages are generated.
    let mut config = tonic_prost_build::Config::new();
    config.enable_type_names();
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
        .compile_fds_with_config(descriptors, config)?;
    Ok(())
}
