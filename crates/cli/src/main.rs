//! The binary `spanflame`.
fn main() {}
