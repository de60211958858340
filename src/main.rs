//! The `atlas` binary.

fn main() -> std::process::ExitCode {
    atlas_fabric::cli::main()
}
