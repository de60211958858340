//! `atlas tui`, and plain `atlas` on a terminal.

use std::path::PathBuf;
use std::time::Duration;

use super::args::{Globals, Screen};
use super::failure::Failure;
use super::import;
use super::output::Charset;
use crate::demo::View;
use crate::theme::Themes;
use crate::theme::color::ColorDepth;
use crate::tui::Options;
use crate::tui::session::SessionMode;
use crate::tui::session::store::session_name;

/// Open the terminal interface.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Args {
    /// Screen flags.
    #[command(flatten)]
    pub screen: Screen,
    /// Use plain text lines instead of a full screen: for screen readers, dumb terminals and scripts
    #[arg(long, conflicts_with_all = ["theme", "no_mouse", "poll"])]
    pub plain: bool,
    /// Target to open
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Workload to open
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Start a new session instead of resuming the last one of this directory
    #[arg(long, help_heading = "Session")]
    pub fresh: bool,
    /// Open and save the session with this name [default: one session per directory]
    #[arg(long, value_name = "NAME", value_parser = session_name, help_heading = "Session")]
    pub session: Option<String>,
    /// Measured runs to show next to predictions: FILE, or FILE:NAME=VALUE,… [default: everything under measurements/]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub measured: Vec<String>,
    /// Watch these logs of a job, or the Slurm job with this id
    #[arg(long, value_name = "LOG|JOBID", num_args = 1.., help_heading = "Start")]
    pub watch: Vec<String>,
    /// Open the job defined by these launch scripts and configuration files, as read by `atlas import`
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "target", help_heading = "Start")]
    pub import: Vec<PathBuf>,
    /// Directory for saved records [default: out]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl Args {
    /// These flags, falling back to those of `other`.
    #[must_use]
    pub fn or(self, other: Args) -> Args {
        Args {
            screen: self.screen.or(other.screen),
            plain: self.plain || other.plain,
            target: self.target.or(other.target),
            workload: self.workload.or(other.workload),
            fresh: self.fresh || other.fresh,
            session: self.session.or(other.session),
            measured: if self.measured.is_empty() { other.measured } else { self.measured },
            watch: if self.watch.is_empty() { other.watch } else { self.watch },
            import: if self.import.is_empty() { other.import } else { self.import },
            out: self.out.or(other.out),
        }
    }

    /// Rejects TUI flags before a subcommand that has flags of the same name, since they would be silently ignored.
    /// `screen` says whether the subcommand accepts screen flags in that position.
    pub fn refuse_before_subcommand(&self, screen: bool) -> Result<(), Failure> {
        let given = [
            ("--plain", self.plain),
            ("--target", self.target.is_some()),
            ("--workload", self.workload.is_some()),
            ("--out", self.out.is_some()),
            ("--fresh", self.fresh),
            ("--session", self.session.is_some()),
            ("--measured", !self.measured.is_empty()),
            ("--watch", !self.watch.is_empty()),
            ("--import", !self.import.is_empty()),
            ("--theme", !screen && self.screen.theme.is_some()),
            ("--no-mouse", !screen && self.screen.no_mouse),
            ("--poll", !screen && self.screen.poll.is_some()),
        ];
        let problems: Vec<String> = given
            .iter()
            .filter(|(_, given)| *given)
            .map(|(flag, _)| format!("{flag} must follow the subcommand"))
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(Failure::usage(problems)) }
    }
}

/// Opens the TUI.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    let start = |args: Args, globals: &Globals, view: Option<View>| {
        let plain = args.plain;
        let mut options = options(args, globals);
        options.view = view.or(options.view);
        if plain { crate::tui::plain::run(options) } else { crate::tui::run(options) }
    };
    if args.import.is_empty() {
        return start(args, globals, None);
    }
    let imported = import::folder(&args.import, globals)?;
    // The directory must exist until the TUI ends, which may read the files again.
    let globals = Globals { workload_dir: Some(imported.folder.path().to_owned()), ..globals.clone() };
    let args =
        Args { target: Some(imported.target.clone()), workload: Some(imported.workload.clone()), fresh: true, ..args };
    start(args, &globals, Some(View::Explain))
}

/// Opens the TUI with a tour. The session is neither read nor saved.
pub fn play(demo: Option<String>, auto: Option<Duration>, out: PathBuf, globals: &Globals) -> color_eyre::Result<()> {
    let args = Args { screen: globals.screen.clone(), out: Some(out), ..Args::default() };
    crate::tui::run(Options { demo, demo_auto: auto, keep: SessionMode::Nothing, ..options(args, globals) })
}

/// Rejects an unknown theme where nothing is drawn.
pub fn check_theme(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let Some(name) = &args.screen.theme else { return Ok(()) };
    let (themes, _) = Themes::load(globals.sources().config_dir.as_deref(), ColorDepth::TrueColor);
    let known: Vec<&str> = themes.iter().map(|theme| theme.name()).collect();
    if known.contains(&name.as_str()) {
        return Ok(());
    }
    Err(Failure::usage([format!("unknown theme `{name}`; known themes: {}", known.join(", "))]))
}

/// Start parameters of the TUI.
fn options(args: Args, globals: &Globals) -> Options {
    Options {
        sources: globals.sources(),
        theme: args.screen.theme,
        ascii: globals.charset() == Charset::Ascii,
        mouse: !args.screen.no_mouse,
        poll: args.screen.poll,
        demo: None,
        demo_auto: None,
        target: args.target,
        workload: args.workload,
        out: args.out.unwrap_or_else(|| PathBuf::from("out")),
        keep: SessionMode::Session { name: args.session, fresh: args.fresh },
        measured: args.measured,
        view: (!args.watch.is_empty()).then_some(View::Watch),
        watch: args.watch,
    }
}
