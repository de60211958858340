//! Effects on files, with or without a screen.

use std::path::Path;
use std::process::Command;

use color_eyre::eyre::{Result, eyre};

use crate::theme::color::ColorDepth;
use crate::tui::Options;
use crate::tui::app::App;
use crate::tui::dialogs::export::{self, Export};
use crate::tui::dialogs::write_back::WritePlan;
use crate::tui::message::{Effect, Message, RecordToSave};
use crate::tui::runtime::loading::reload;
use crate::tui::views::measurements::Proposal;
use atlas_catalog::shipped;
use atlas_document::files;
use atlas_document::sources::read_text;
use atlas_evidence::calibrate::document;
use atlas_plan::record::now;

/// Performs effects that need no screen: reading and writing files, and opening an editor.
pub(in crate::tui) fn without_screen(effect: Effect, app: &App, options: &Options) -> Vec<Message> {
    let reloaded = || reload(options, ColorDepth::Mono, &app.library).1;
    match effect {
        Effect::Reload => vec![reloaded()],
        Effect::WriteProfile(proposal) => {
            let described = write_profile(&proposal);
            vec![reloaded(), described]
        }
        Effect::Save(saving) => vec![save(&saving)],
        Effect::Export(dialog) => vec![write_view(app, dialog)],
        Effect::WriteBack(plan) => {
            let described = rewrite(&plan);
            vec![reloaded(), described]
        }
        Effect::CopyAndEdit { path, .. } => vec![copy_shipped_message(&path), reloaded()],
        Effect::Edit { path, line } => match edit(&path, line) {
            Ok(()) => vec![reloaded()],
            Err(error) => vec![Message::Failed(format!("{error:#}"))],
        },
        _ => Vec::new(),
    }
}

/// Writes a profile after it was shown. A new profile must not exist yet.
pub(in crate::tui) fn write_profile(proposal: &Proposal) -> Message {
    let date = now().get(..10).unwrap_or_default().to_owned();
    let text = document::profile(&proposal.outcome, &proposal.start, &proposal.vendor, &date);
    let write = if proposal.replaces { files::write } else { files::write_new };
    let path = proposal.path.display();
    match write(&proposal.path, &text) {
        Ok(()) => Message::Done(format!("wrote {path}; now in effect")),
        Err(error) => Message::Failed(format!("cannot write to {path}: {error}")),
    }
}

pub(in crate::tui) fn save(saving: &RecordToSave) -> Message {
    let path = saving.dir.join(&saving.name);
    let written =
        files::write(&path, &saving.json).and_then(|()| files::write(&saving.dir.join("last_run.json"), &saving.json));
    match written {
        Ok(()) => Message::Done(format!("saved {}", path.display())),
        Err(error) => Message::Failed(format!("cannot write to {}: {error}", path.display())),
    }
}

/// Exports the view. An existing file is replaced only after confirmation.
pub(in crate::tui) fn write_view(app: &App, dialog: Box<Export>) -> Message {
    let path = dialog.path();
    if path.exists() && !dialog.overwrite {
        let why = format!("{} already exists; press Enter again to overwrite it", path.display());
        return Message::NotExported { dialog, why, exists: true };
    }
    let Some(document) = export::document(app, &now()) else {
        return Message::Failed("nothing to export: no estimate".to_owned());
    };
    match files::write(&path, document.write(dialog.kind())) {
        Ok(()) => Message::Done(format!("wrote {}", path.display())),
        Err(error) => {
            let why = format!("cannot write to {}: {error}", path.display());
            Message::NotExported { dialog, why, exists: false }
        }
    }
}

/// Writes the files of a change that was shown, each only if it has not changed on disk since.
pub(in crate::tui) fn rewrite(plan: &WritePlan) -> Message {
    for file in &plan.files {
        let path = file.path.display();
        // A new file must not exist yet.
        if file.before.is_empty() && !file.path.exists() {
            if let Err(error) = files::write_new(&file.path, &file.after) {
                return Message::Failed(format!("cannot write to {path}: {error}"));
            }
            continue;
        }
        match read_text(&file.path) {
            Ok(text) if text == file.before => {}
            Ok(_) => return Message::Failed(format!("{path} has changed on disk; press S to review the change again")),
            Err(error) => return Message::Failed(error),
        }
        if let Err(error) = files::write(&file.path, &file.after) {
            return Message::Failed(format!("cannot write to {path}: {error}"));
        }
    }
    let names: Vec<String> = plan.files.iter().map(|file| file.path.display().to_string()).collect();
    Message::Done(format!("wrote {}", names.join(", ")))
}

/// Copies a shipped file into the working directory unless it exists.
pub(in crate::tui) fn copy_shipped_file(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let text = path.to_str().and_then(shipped::document).map(shipped::Document::text);
    files::write(path, text.ok_or_else(|| std::io::Error::other("it is not built in"))?)
}

pub(in crate::tui) fn copy_shipped_message(path: &Path) -> Message {
    match copy_shipped_file(path) {
        Ok(()) => Message::Done(format!("copied to {}; your copy takes precedence", path.display())),
        Err(error) => Message::Failed(format!("cannot write to {}: {error}", path.display())),
    }
}

/// Opens `$VISUAL`, `$EDITOR` or vi at a line.
pub(in crate::tui) fn edit(path: &Path, line: u32) -> Result<()> {
    let chosen =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()));
    let chosen = chosen.unwrap_or_else(|| "vi".to_owned());
    let program = chosen.split_whitespace().next().unwrap_or("vi");
    let stem = Path::new(program).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // Runs through the shell, as git does, because the variable may contain quotes and arguments.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{chosen} \"$@\"")).arg(program);
    match stem.as_str() {
        "code" | "codium" | "cursor" => command.arg("--goto").arg(format!("{}:{line}", path.display())),
        "subl" | "hx" | "helix" | "zed" => command.arg(format!("{}:{line}", path.display())),
        // vi, emacs, nano and most others accept this form.
        _ => command.arg(format!("+{line}")).arg(path),
    };
    let status = command.status().map_err(|error| eyre!("cannot start {program}: {error}; set EDITOR"))?;
    if status.success() { Ok(()) } else { Err(eyre!("{program} ended with {status}")) }
}
