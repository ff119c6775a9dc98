//! Lets profilers outside the process see the spans of a server that watches itself (docs/sdk.md).

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1");
    println!("cargo:rerun-if-changed=build.rs");
}
