//! Measures a release server.
fn main() {}
