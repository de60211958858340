//! `atlas ask --online`: the configured endpoint answers with read-only tools.

use std::io::{self, Write as _};
use std::path::Path;

use color_eyre::eyre::{WrapErr as _, eyre};
use serde::Serialize;

use super::Args;
use crate::cli::explain::Format;
use crate::cli::failure::Failure;
use crate::cli::output::{self, write_stderr};
use crate::cli::save;
use atlas_assistant::endpoint::{Conversation, Event, NumberOrigins, Settings, Toolbox, ask, request};
use atlas_assistant::offline::Context;
use atlas_core::escape;
use atlas_document::sources::read_text;
use atlas_plan::search::Gauge;
use atlas_report::to_json;

/// JSON form of the answer.
#[derive(Serialize)]
struct Answer<'a> {
    question: &'a str,
    model: &'a str,
    answer: &'a str,
    figures: &'a NumberOrigins,
    conversation: &'a Conversation,
}

/// Asks the question, or shows what would be sent.
pub(super) fn run(args: &Args, question: &str, context: &Context<'_>) -> color_eyre::Result<()> {
    let settings = Settings::load().map_err(|error| Failure::usage([error.to_string()]))?;
    let mut conversation = match &args.resume {
        None => Conversation::begin(&settings.model, context),
        Some(path) => {
            let text = read_text(path).map_err(|error| eyre!("{}: {error}", path.display()))?;
            Conversation::read(&text).wrap_err_with(|| format!("{} is not a saved conversation", path.display()))?
        }
    };
    conversation.question(question);
    if args.preview {
        output::print(&escape::terminal(&request(&settings, &conversation).preview()))?;
        return Ok(());
    }
    let toolbox = Toolbox { context, gauge: &Gauge::default() };
    let table = args.format == Format::Table;
    let mut broken = false;
    let outcome = ask(&settings, &mut conversation, &toolbox, &|| false, &mut |event| match event {
        Event::Text(piece) if table => {
            let mut out = io::stdout().lock();
            broken |= out.write_all(escape::terminal(piece).as_bytes()).and_then(|()| out.flush()).is_err();
        }
        Event::Text(_) => {}
        Event::Tool(call) => write_stderr(&format!("tool {}: {}", call.name, call.arguments)),
        Event::Retry(error, pause) => write_stderr(&format!("{error}; next attempt in {:.1} s", pause.as_secs_f64())),
    });
    if table && !broken {
        output::print("\n")?;
    }
    // The conversation is saved even if the answer was interrupted.
    if let Some(path) = &args.save {
        save(&conversation, path, args.resume.as_deref())?;
    }
    let marks = outcome.map_err(|error| eyre!("{}", escape::terminal(&error.to_string())))?;
    if table {
        let lines = marks.lines().join("\n");
        output::print(&format!("\n{}\n", escape::terminal(&lines)))?;
        return Ok(());
    }
    let answer = Answer {
        question,
        model: &conversation.model,
        answer: conversation.answer().unwrap_or_default(),
        figures: &marks,
        conversation: &conversation,
    };
    output::print(&to_json(&answer)?)?;
    Ok(())
}

/// Writes the conversation as JSON, which `--continue` reads, or as Markdown. Only the file that is being continued may
/// be overwritten.
fn save(conversation: &Conversation, path: &Path, resumed: Option<&Path>) -> color_eyre::Result<()> {
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => conversation.json()?,
        Some("md") => conversation.markdown(),
        _ => return Err(Failure::usage([format!("--save {}: expected .json or .md", path.display())]).into()),
    };
    if resumed == Some(path) {
        save::write(path, &text)?;
    } else {
        save::write_new(path, &text, save::OTHER_NAME)?;
    }
    write_stderr(&format!("wrote {}", path.display()));
    Ok(())
}
