//! The `atlas` binary.

fn main() {}
