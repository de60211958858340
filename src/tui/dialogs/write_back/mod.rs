//! Writes changed knobs into their files: only the values are replaced, so that
//! comments, order and formatting stay. The result is parsed again and rejected unless it has the intended content.

pub mod state;

pub use state::{Rewrite, WritePlan};

use std::path::PathBuf;
use std::sync::Arc;

use crate::tui::app::{App, Overlay};
use crate::tui::message::Effect;
use crate::tui::update::status::{fail, note};
use atlas_config::library::Library;
use atlas_document::parse::parse;
use atlas_document::{Diagnostics, Node, Origin, Value};
use atlas_plan::knob::{FileLocation, Knob, Setting};

/// Shows the planned changes, or reports the reason if nothing would change.
pub(in crate::tui) fn open(app: &mut App, effects: &mut Vec<Effect>) {
    if app.now.setup.overrides.is_empty() {
        return note(app, "nothing to write: all knobs have the saved values", effects);
    }
    match plan(app) {
        Ok(plan) => app.overlay = Some(Overlay::WriteBack { plan: Arc::new(plan), scroll: 0 }),
        Err(Refusal::BuiltIn(path, line)) => {
            fail(app, format!("{} is built in; press e to copy it here and open it, then save again", path.display()));
            app.offer = Some((path, line));
        }
        Err(Refusal::Other(complaint)) => fail(app, complaint),
    }
}

/// Why nothing is written.
enum Refusal {
    /// A file and line of the catalog, which cannot be changed in place.
    BuiltIn(PathBuf, u32),
    Other(String),
}

impl From<String> for Refusal {
    fn from(complaint: String) -> Refusal {
        Refusal::Other(complaint)
    }
}

fn plan(app: &App) -> Result<WritePlan, Refusal> {
    let overrides = &app.now.setup.overrides;
    let (Some(target), Some(workload)) = (&app.answer.target, &app.answer.workload) else {
        return Err("nothing to write: no target or workload".to_owned().into());
    };
    let mut plan = WritePlan::default();
    for (knob, setting) in overrides {
        let (origin, name, path) = match knob.spec().location {
            FileLocation::Workload(path) => (&workload.origin, &workload.name, place(*knob, path, &workload.document)),
            FileLocation::Target(path) => (&target.origin, &target.name, path),
            FileLocation::Nowhere => {
                plan.left.push(knob.name());
                continue;
            }
        };
        let file = rewrite(&app.library, &mut plan.files, origin)?;
        let changed = set(&file.after, name, path, &yaml(setting));
        file.after = changed.ok_or_else(|| {
            format!("{} of {name} cannot be changed safely in {origin}; press e to edit the file", knob.name())
        })?;
    }
    if plan.files.is_empty() {
        return Err(format!("nothing to write: no file contains {}", plan.left.join(", ")).into());
    }
    Ok(plan)
}

/// Path of a knob in the document of a workload. Plans contain the micro-batch next to the global batch, and may contain
/// the layout of decode-only replicas separately.
fn place(knob: Knob, path: &'static [&'static str], document: &Node) -> &'static [&'static str] {
    const MICRO: &[&str] = &["batch", "micro"];
    if knob == Knob::Microbatch && document.at_path(MICRO).is_some() {
        return MICRO;
    }
    match knob.of_decode_pool() {
        Some(own) if document.at_path(own).is_some() => own,
        _ => path,
    }
}

/// The rewrite of a file, created if there is none yet.
fn rewrite<'p>(library: &Library, files: &'p mut Vec<Rewrite>, origin: &Origin) -> Result<&'p mut Rewrite, Refusal> {
    if let Some(path) = origin.file.strip_prefix(Origin::BUILT_IN) {
        return Err(Refusal::BuiltIn(PathBuf::from(path), origin.at.line.max(1)));
    }
    let path = PathBuf::from(&*origin.file);
    let known = files.iter().position(|file| file.path == path);
    let index = match known {
        Some(index) => index,
        None => {
            let text = library.text(&origin.file).ok_or_else(|| format!("{} is not loaded", origin.file))?;
            files.push(Rewrite { path, before: text.to_owned(), after: text.to_owned() });
            files.len() - 1
        }
    };
    files.get_mut(index).ok_or_else(|| String::new().into())
}

/// A setting in YAML syntax.
fn yaml(setting: &Setting) -> String {
    match setting {
        Setting::Toggle(on) => on.to_string(),
        other => other.to_string(),
    }
}

fn document(text: &str) -> Option<Node> {
    parse(&"file".into(), text, &mut Diagnostics::new())
}

/// Finds the entry with this name anywhere in the document.
fn entry<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    if node.get("name").and_then(Node::text) == Some(name) {
        return Some(node);
    }
    let items = node.items().unwrap_or_default().iter();
    let values = node.entries().unwrap_or_default().iter().map(|entry| &entry.value);
    items.chain(values).find_map(|inner| entry(inner, name))
}

/// The text with the entry's value at `path` set; `None` if that cannot be done safely.
fn set(text: &str, name: &str, path: &[&str], value: &str) -> Option<String> {
    let before = document(text)?;
    let found = entry(&before, name)?;
    let depth = (0..=path.len()).rev().find(|depth| found.at_path(path.get(..*depth).unwrap_or_default()).is_some())?;
    let (have, lack) = path.split_at_checked(depth)?;
    let node = found.at_path(have)?;
    let wanted = plain(&document(value)?);
    // The result must have the new value and otherwise the old content.
    let sound = |changed: &String| {
        let after = document(changed)?;
        let now = entry(&after, name)?;
        Some(plain(now.at_path(path)?) == wanted && same_but(&before, &after, found, now, path))
    };
    let mut changed = text.to_owned();
    if lack.is_empty() {
        let begin = offset(text, node.at.line, node.at.column)?;
        changed.replace_range(begin..begin + scalar(text.get(begin..)?)?, value);
        return Some(changed).filter(|changed| sound(changed) == Some(true));
    }
    // Try below the last key, then above it: text of several lines may continue below the last key.
    [Side::Below, Side::Above].into_iter().find_map(|side| {
        let (at, put) = put_in(text, node, lack, value, side)?;
        let mut changed = text.to_owned();
        changed.insert_str(at, &put);
        (sound(&changed) == Some(true)).then_some(changed)
    })
}

/// Position of a new key relative to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// Whether two documents are the same except for an entry's value.
fn same_but(before: &Node, after: &Node, old: &Node, new: &Node, path: &[&str]) -> bool {
    let others = |root: &Node, except: &Node| -> Vec<String> {
        let items = root.items().unwrap_or_default().iter();
        items.filter(|item| item.at != except.at).map(plain).collect()
    };
    let rest = |node: &Node| -> Vec<(String, String)> {
        let entries = node.entries().unwrap_or_default().iter();
        entries
            .filter(|e| Some(&*e.key) != path.first().copied())
            .map(|e| (e.key.to_string(), plain(&e.value)))
            .collect()
    };
    others(before, old) == others(after, new) && rest(old) == rest(new)
}

/// Serializes a node without its positions.
fn plain(node: &Node) -> String {
    serde_json::to_string(node).unwrap_or_default()
}

/// The text to insert for missing keys: after the last entry of the mapping, in its style.
fn put_in(text: &str, node: &Node, lack: &[&str], value: &str, side: Side) -> Option<(usize, String)> {
    let (first, inner) = lack.split_first()?;
    let nested = inner.iter().rev().fold(value.to_owned(), |value, key| format!("{{ {key}: {value} }}"));
    let put = format!("{first}: {nested}");
    let entries = node.entries()?;
    let begin = offset(text, node.at.line, node.at.column)?;
    if text.get(begin..)?.starts_with('{') {
        return Some(match entries.last() {
            Some(last) if matches!(last.value.value, Value::Map(_) | Value::List(_)) => (begin + 1, format!(" {put},")),
            Some(last) => {
                let at = offset(text, last.value.at.line, last.value.at.column)?;
                (at + scalar(text.get(at..)?)?, format!(", {put}"))
            }
            None => (begin + 1, format!(" {put} ")),
        });
    }
    let indent = usize::try_from(entries.first()?.key_at.column).ok()?.checked_sub(1)?;
    let line = match side {
        Side::Below => last_line(node) + 1,
        Side::Above => entries.last()?.key_at.line,
    };
    let end = offset(text, line, 1).unwrap_or(text.len());
    let newline = if text.get(..end)?.ends_with('\n') { ("", "\n") } else { ("\n", "") };
    Some((end, format!("{}{}{put}{}", newline.0, " ".repeat(indent), newline.1)))
}

/// The last line on which a part of a node begins.
fn last_line(node: &Node) -> u32 {
    let items = node.items().unwrap_or_default().iter().map(last_line);
    let values = node.entries().unwrap_or_default().iter().map(|e| e.key_at.line.max(last_line(&e.value)));
    items.chain(values).fold(node.at.line, u32::max)
}

/// Byte offset of a line and a column, both counted from 1, with columns in characters.
fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let mut start = 0;
    for _ in 1..line {
        start += text.get(start..)?.find('\n')? + 1;
    }
    let rest = text.get(start..)?;
    let skip = usize::try_from(column).ok()?.checked_sub(1)?;
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(skip).map(|at| start + at)
}

/// Length in bytes of the scalar at the beginning of a text.
fn scalar(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first == '"' || first == '\'' {
        let mut escaped = false;
        let end = text.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == first && !escaped;
            escaped = first == '"' && *c == '\\' && !escaped;
            ends
        });
        return end.map(|(at, _)| at + 1);
    }
    if matches!(first, '{' | '[' | '|' | '>' | '&' | '*' | '!') {
        return None;
    }
    let line = text.lines().next()?;
    let end = line.find([',', '}', ']']).unwrap_or(line.len());
    let end = line.find(" #").map_or(end, |comment| end.min(comment));
    Some(line.get(..end)?.trim_end().len()).filter(|length| *length > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::state::diff;
    use super::*;
    use crate::theme::Role;

    const FILE: &str = "\
# ours
- name: one
  mode: training   # not ours
  batch: { micro: 1, global: 128 }  # per step
  parallelism:
    tp: 8   # inside the node
  recompute: \"full\"

# the other
- name: two
  mode: inference
  serving: {}
";

    fn changed(name: &str, path: &[&str], value: &str) -> Vec<(Role, String)> {
        diff(FILE, &set(FILE, name, path, value).unwrap())
    }

    fn lines(diff: &[(Role, String)]) -> Vec<&str> {
        diff.iter().filter(|(role, _)| *role != Role::Dim).map(|(_, line)| line.trim()).collect()
    }

    #[test]
    fn existing_value_is_replaced_in_place_and_comments_are_kept() {
        assert_eq!(
            lines(&changed("one", &["batch", "global"], "256")),
            [
                "4 -   batch: { micro: 1, global: 128 }  # per step",
                "4 +   batch: { micro: 1, global: 256 }  # per step"
            ]
        );
        assert_eq!(
            lines(&changed("one", &["parallelism", "tp"], "4")),
            ["6 -     tp: 8   # inside the node", "6 +     tp: 4   # inside the node"]
        );
        assert_eq!(
            lines(&changed("one", &["recompute"], "none")),
            ["7 -   recompute: \"full\"", "7 +   recompute: none"]
        );
    }

    #[test]
    fn missing_key_is_inserted_into_its_mapping() {
        assert_eq!(lines(&changed("one", &["parallelism", "pp"], "2")), ["7 +     pp: 2"]);
        assert_eq!(lines(&changed("one", &["overlap"], "false")), ["8 +   overlap: false"]);
        assert_eq!(
            lines(&changed("one", &["serving", "speculative", "tokens"], "3")),
            ["8 +   serving: { speculative: { tokens: 3 } }"]
        );
        assert_eq!(
            lines(&changed("two", &["serving", "concurrency"], "64")),
            ["12 -   serving: {}", "12 +   serving: { concurrency: 64 }"]
        );
        assert_eq!(
            lines(&changed("one", &["batch", "other"], "1")),
            [
                "4 -   batch: { micro: 1, global: 128 }  # per step",
                "4 +   batch: { micro: 1, global: 128, other: 1 }  # per step"
            ]
        );
    }

    #[test]
    fn missing_key_is_inserted_above_a_trailing_multiline_scalar() {
        for note in ["|\n    long\n    text\n", ">-\n    long\n    text\n", "long\n    text\n- name: b\n"] {
            let put = set(&format!("- name: a\n  note: {note}"), "a", &["overlap"], "true").unwrap();
            assert_eq!(put, format!("- name: a\n  overlap: true\n  note: {note}"));
        }
        assert_eq!(
            set("- note: |\n    a\n  name: a\n", "a", &["overlap"], "true").unwrap(),
            "- note: |\n    a\n  name: a\n  overlap: true\n"
        );
    }

    #[test]
    fn anchored_values_are_not_edited_and_a_missing_final_newline_is_kept() {
        assert_eq!(set("- name: a\n  sharding: &x zero1\n  other: *x\n", "a", &["sharding"], "zero3"), None);
        assert_eq!(set(FILE, "three", &["sharding"], "zero3"), None);
        let end = set("- name: a", "a", &["overlap"], "true").unwrap();
        assert_eq!(end, "- name: a\n  overlap: true");
    }
}
