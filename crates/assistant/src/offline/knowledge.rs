//! Lists of names, and sections of the guide.

use atlas_catalog::software;
use atlas_plan::estimate::METRICS;
use atlas_plan::knob::KNOBS;

use super::case::Context;
use super::reply::{Block, ReplyKind};
use super::subject::ParsedQuestion;
use super::{Refusal, Reply};

/// The built-in guide.
const GUIDE: &str = include_str!("../../guide.md");
/// Maximum names listed.
const NAMES: usize = 60;
/// Maximum lines of a section that are shown.
const LINES: usize = 30;
/// Words without significance for the search in the guide.
const COMMON: [&str; 30] = [
    "how", "do", "i", "can", "to", "a", "an", "the", "my", "in", "on", "of", "for", "with", "does", "you", "where",
    "it", "and", "is", "work", "use", "using", "get", "from", "own", "file", "files", "atlas", "see",
];

/// Lists what a question can name.
pub(super) fn list(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::List);
    let words = &question.words;
    let any = |names: &[&str]| names.iter().any(|name| words.has(name));
    let catalog = context.library.catalog();
    let (what, command, names): (&str, Option<&str>, Vec<String>) = if any(&["workload", "workloads"]) {
        let names = context.library.workloads().iter().map(|workload| workload.name.to_string());
        ("workloads", Some("workloads"), names.collect())
    } else if any(&["target", "targets"]) {
        let names = context.library.targets().iter().map(|target| target.name.to_string());
        ("targets", Some("targets"), names.collect())
    } else if any(&["accelerator", "accelerators", "gpu", "gpus", "hardware", "chips", "cards", "tpus", "devices"]) {
        ("accelerators", Some("accelerators"), catalog.accelerators().iter().map(|sheet| sheet.id.clone()).collect())
    } else if any(&["model", "models", "llms", "networks"]) {
        ("models", Some("models"), catalog.models().iter().map(|model| model.id.clone()).collect())
    } else if any(&["software", "framework", "frameworks", "engines", "releases"]) {
        ("software", Some("software"), software::families().iter().map(|family| family.id.clone()).collect())
    } else if any(&["knob", "knobs", "settings", "parameters"]) {
        ("knobs", None, KNOBS.iter().map(|knob| knob.name.to_owned()).collect())
    } else if any(&["metric", "metrics", "figures", "figure"]) {
        ("figures", None, METRICS.iter().map(|metric| metric.name.to_owned()).collect())
    } else {
        return Err(Refusal::Unknown {
            reason: "list what? Known lists: targets, workloads, accelerators, models, software, knobs, figures".into(),
        });
    };
    let shown: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    reply.push_text(format!("{} {what}: {}{more}.", names.len(), shown.join(", ")));
    match command {
        Some(what) => reply.command(&["list", what], context.flags.clone()),
        None => reply.command(&["run", "--help"], Vec::new()),
    }
    Ok(reply)
}

/// A section of the guide.
struct Section<'g> {
    title: &'g str,
    text: String,
}

fn sections() -> Vec<Section<'static>> {
    let mut all: Vec<Section<'_>> = Vec::new();
    let mut code = false;
    for line in GUIDE.lines() {
        code ^= line.starts_with("```");
        match line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")).filter(|_| !code) {
            Some(title) => all.push(Section { title, text: String::new() }),
            None => {
                if let Some(section) = all.last_mut() {
                    section.text.push_str(line);
                    section.text.push('\n');
                }
            }
        }
    }
    all
}

/// Answers with the section of the guide that matches most words of the question.
pub(super) fn guide(question: &ParsedQuestion) -> Result<Reply, Refusal> {
    let wanted: Vec<&String> = question.words.all().iter().filter(|word| !COMMON.contains(&word.as_str())).collect();
    // Compares the first letters only, so that `calibrate` matches `calibration`.
    let stem = |word: &str| word.chars().take(6).collect::<String>();
    let holds = |text: &str, word: &str| {
        let stem = stem(word);
        text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|known| known.starts_with(&stem))
    };
    let score = |section: &Section<'_>| {
        let title = wanted.iter().filter(|word| holds(section.title, word)).count();
        let body = wanted.iter().filter(|word| holds(&section.text, word)).count();
        (title, body)
    };
    let all = sections();
    let best = all.iter().max_by_key(|section| score(section));
    let found = best.filter(|section| {
        let (title, body) = score(section);
        // If fewer than half of the words occur, the section is about something else.
        title > 0 || (body > 0 && 2 * body > wanted.len())
    });
    let Some(section) = found else {
        let reason = format!("the guide has no section about `{}`", question.words.line());
        return Err(Refusal::Unknown { reason });
    };
    let mut reply = Reply::new(ReplyKind::Guide);
    reply.push_text(format!("From the guide, section \"{}\":", section.title));
    let lines: Vec<&str> = section.text.trim().lines().filter(|line| !line.starts_with("```")).take(LINES).collect();
    reply.answer.push(Block::Lines(lines.join("\n")));
    for name in subcommands(&section.text) {
        reply.command(&[name.as_str(), "--help"], Vec::new());
    }
    if reply.commands.is_empty() {
        reply.command(&["--help"], Vec::new());
    }
    Ok(reply)
}

/// Subcommands mentioned in a text as `atlas calibrate`, in order.
fn subcommands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c == '`').collect();
    for pair in words.windows(2) {
        if let [atlas, name] = pair
            && *atlas == "atlas"
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_lowercase())
            && !found.iter().any(|known| known == name)
        {
            found.push((*name).to_owned());
        }
    }
    found.truncate(3);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guide_has_sections_and_code_comments_are_not_headings() {
        let all = sections();
        assert!(all.len() > 10 && all.iter().any(|section| section.title == "Calibration"));
        assert!(all.iter().all(|section| !section.title.contains("yaml")), "comments in code are not headings");
    }

    #[test]
    fn subcommands_are_extracted_from_text_without_duplicates() {
        assert_eq!(
            subcommands("`atlas calibrate` fits; run `atlas check x`, `atlas calibrate`"),
            ["calibrate", "check"]
        );
    }
}
