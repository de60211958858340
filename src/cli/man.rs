//! `atlas man`.

use std::path::PathBuf;

use clap_mangen::Man;

use super::output::write_stderr;
use super::save;

/// Write man pages.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas man ~/.local/share/man/man1     then: man atlas, man atlas-optimize")]
pub struct Args {
    /// Output directory
    pub dir: PathBuf,
}

/// Writes a page for the program and one for each subcommand.
pub fn run(args: Args) -> color_eyre::Result<()> {
    save::create_directory(&args.dir)?;
    let mut root = super::definition();
    root.build();
    let mut commands: Vec<(String, clap::Command)> = Vec::new();
    gather(&root, "atlas".to_owned(), &mut commands);
    for (name, command) in &commands {
        let mut page = Vec::new();
        Man::new(command.clone()).title(name.to_uppercase()).render(&mut page)?;
        save::write(&args.dir.join(format!("{name}.1")), &page)?;
    }
    write_stderr(&format!("wrote {} pages to {}", commands.len(), args.dir.display()));
    Ok(())
}

/// Collects a command and all its subcommands, each with the name of its page: `atlas-config-show`.
fn gather(command: &clap::Command, name: String, commands: &mut Vec<(String, clap::Command)>) {
    commands.push((name.clone(), command.clone()));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        gather(sub, format!("{name}-{}", sub.get_name()), commands);
    }
}
