//! Text entered by users: knobs, conditions and axes; and text that is escaped for other programs.

use std::sync::LazyLock;

use atlas_core::escape;
use atlas_plan::knob::{KnobValues as _, Overrides, Setting, assignment};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::{Axis, Condition};

use super::targets::{figures, library, text};

const PAIRS: [(&str, &str); 8] = [
    ("h100-sxm-8", "llama3.1-8b-serve"),
    ("h100-sxm-64", "llama3.1-8b-train"),
    ("mi300x-8", "llama3.1-70b-serve"),
    ("h100-sxm-128", "llama3.1-70b-train"),
    ("tpu-v5p-128", "deepseek-v3-train"),
    ("gb10-1", "resnet50-train"),
    ("h200-sxm-8", "qwen2.5-7b-compare"),
    ("h100-sxm-8", "gpt5_1t_inference"),
];

fn parts(index: usize) -> &'static Parts {
    static ALL: LazyLock<[Parts; PAIRS.len()]> = LazyLock::new(|| {
        PAIRS.map(|(target, workload)| {
            let library = library();
            Parts::of(library, library.target(target).unwrap(), library.workload(workload).unwrap()).unwrap()
        })
    });
    &ALL[index % PAIRS.len()]
}

/// A value of a knob, a condition, or an axis of a sweep is parsed or rejected, and values of a parsed axis can be set.
pub(super) fn setting(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let _ = Condition::parse(&text);
    if let Ok((knob, value)) = assignment(&text) {
        let _ = knob.parse(&value, &[]);
    }
    static SCENARIO: LazyLock<Scenario> = LazyLock::new(|| Scenario::from_files(parts(3)));
    let Ok(axis) = Axis::parse(&text, &SCENARIO, &[]) else { return Ok(()) };
    let is_sound = |value: &Setting| !matches!(value, Setting::Number(number) if !number.is_finite());
    let few = &axis.values[..axis.values.len().min(200)];
    let distinct = few.iter().enumerate().all(|(at, value)| !few[..at].contains(value));
    match (axis.values.is_empty(), axis.values.iter().all(is_sound), distinct) {
        (false, true, true) => Ok(()),
        _ => Err(format!("an axis of {:?}", axis.values)),
    }
}

/// Each line names a knob and its value; the first byte selects target and workload.
pub(super) fn answer(input: &[u8]) -> Result<(), String> {
    let Some((first, lines)) = input.split_first() else { return Ok(()) };
    let mut overrides = Overrides::new();
    for line in text(lines).lines().take(24) {
        if let Ok((knob, value)) = assignment(line)
            && let Ok(value) = knob.parse(&value, &[])
        {
            overrides.insert(knob, value);
        }
    }
    match Scenario::resolve(parts(usize::from(*first)), &overrides) {
        Ok(scenario) => figures(&scenario),
        Err(_) => Ok(()),
    }
}

/// The result of a POSIX shell for a word that is plain or in single quotes; `None` if it is not a single word.
fn word(quoted: &str) -> Option<String> {
    let (mut out, mut chars, mut within) = (String::new(), quoted.chars(), false);
    while let Some(c) = chars.next() {
        match (within, c) {
            (_, '\'') => within = !within,
            (true, c) => out.push(c),
            (false, '\\') => out.push(chars.next()?),
            (false, c) if c.is_whitespace() || "\"$`;&|<>(){}*?[]~#!\0".contains(c) => return None,
            (false, c) => out.push(c),
        }
    }
    (!within).then_some(out)
}

/// The text that an HTML parser reads from escaped text.
fn shown(html: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    entities.iter().fold(html.to_owned(), |text, (entity, c)| text.replace(entity, c))
}

pub(super) fn escapes(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let steers = |shown: &str| shown.chars().any(|c| escape::is_control_or_bidi(c) && !matches!(c, '\n' | '\t'));
    let html = escape::html(&text);
    let block = escape::markdown_block("", &text);
    let fence = block.chars().take_while(|c| *c == '`').count();
    let csv = escape::csv(&text);
    let bare = csv.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let field = bare.map_or(csv.to_string(), |bare| bare.replace("\"\"", "\""));
    let name = escape::file_name(&text);
    for (what, holds) in [
        ("terminal", !escape::terminal(&text).chars().any(|c| escape::is_control_or_bidi(c) && c != '\n')),
        ("shell", word(&escape::shell(&text)) == Some(text.replace('\0', ""))),
        ("HTML", !html.contains(['<', '>', '"', '\'']) && !steers(&html)),
        ("text in HTML", steers(&text) || text.contains(['\u{fffe}', '\u{ffff}']) || shown(&html) == text),
        ("Markdown", !escape::markdown(&text).contains(['\n', '\r']) && !steers(&escape::markdown(&text))),
        ("Markdown code", block.matches(&"`".repeat(fence)).count() == 2),
        ("CSV quotes", bare.is_some() || !csv.contains([',', '"', '\n', '\r'])),
        ("CSV", field == text || field.strip_prefix('\'') == Some(&text)),
        ("CSV formula", !field.starts_with(['=', '@', '\t', '\r'])),
        ("file name", !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != ".."),
    ] {
        if !holds {
            return Err(format!("{what} of {text:?}"));
        }
    }
    Ok(())
}
