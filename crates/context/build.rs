//! Compiles the one symbol that stable Rust cannot name, and exports it from our own test binaries.

fn main() {
    println!("cargo:rerun-if-changed=src/slot.c");
    cc::Build::new()
        .file("src/slot.c")
        // Readers understand TLS descriptors best; on aarch64 they are the default and the flag is unknown.
        .flag_if_supported("-mtls-dialect=gnu2")
        .compile("spanflame_thread_slot");
    // What every final binary needs (docs/sdk.md), here for the tests of this crate.
    println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1");
}
