//! `atlas man`.

use std::path::PathBuf;

use clap_mangen::Man;

use super::output::complain;
use super::run::writing;
use crate::record::write_atomically;

/// Write man pages.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas man ~/.local/share/man/man1     then: man atlas, man atlas-optimize")]
pub struct Args {
    /// Directory to write the pages to
    pub dir: PathBuf,
}

/// Writes a page for the program and one for every subcommand.
pub fn run(args: Args) -> color_eyre::Result<()> {
    std::fs::create_dir_all(&args.dir).map_err(|error| writing(&args.dir, &error))?;
    let mut root = super::definition();
    root.build();
    let subcommands = root.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set());
    let commands: Vec<clap::Command> = std::iter::once(root.clone()).chain(subcommands.cloned()).collect();
    for command in &commands {
        let name = match command.get_name() {
            "atlas" => "atlas".to_owned(),
            sub => format!("atlas-{sub}"),
        };
        let mut page = Vec::new();
        Man::new(command.clone()).title(name.to_uppercase()).render(&mut page)?;
        let path = args.dir.join(format!("{name}.1"));
        write_atomically(&path, &String::from_utf8_lossy(&page)).map_err(|error| writing(&path, &error))?;
    }
    complain(&format!("wrote {} pages to {}", commands.len(), args.dir.display()));
    Ok(())
}
