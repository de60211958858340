//! `atlas completions`.

use clap_complete::Shell;

use super::output;

/// Print a completion script.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas completions bash > ~/.local/share/bash-completion/completions/atlas
  atlas completions zsh  > ~/.zfunc/_atlas
  atlas completions fish > ~/.config/fish/completions/atlas.fish")]
pub struct Args {
    /// The shell to complete in
    pub shell: Shell,
}

/// Prints the script.
pub fn run(args: Args) -> color_eyre::Result<()> {
    // The generator panics where it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::definition(), "atlas", &mut script);
    Ok(output::print(&String::from_utf8_lossy(&script))?)
}
