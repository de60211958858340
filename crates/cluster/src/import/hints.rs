//! Hardware, model and precision from comments and names, for what the settings do not state.

use super::fields::ReadFields;
use super::names;
use crate::import::place::Place;
use crate::import::{Field, Kind};

/// Comments with their line numbers, without the comment sign.
pub(crate) fn comments(text: &str) -> Vec<(u32, &str)> {
    text.lines()
        .zip(1..)
        .filter_map(|(l, n)| {
            let t = l.trim();
            if let Some(c) = t.strip_prefix('#').filter(|c| !c.starts_with('!')) {
                // The text of a directive is not a comment, but a comment may follow it.
                let c = if c.starts_with("SBATCH") { c.split_once(" #").map_or("", |p| p.1) } else { c };
                return Some((n, c.trim_start_matches('#').trim()));
            }
            l.split_once(" #").or(l.split_once("\t#")).map(|(_, c)| (n, c.trim()))
        })
        .collect()
}

/// A number of devices followed by the device's name: `128 H100`, `8 X H200`, `96x 40GB A100`.
struct Machine {
    count: i64,
    name: String,
    /// Whether the number counts nodes with such devices.
    nodes: bool,
    line: u32,
}

fn machine(comment: &str, line: u32) -> Option<Machine> {
    // `8xH100` occurs as one word as often as in three.
    let mut words: Vec<&str> = Vec::new();
    for w in comment.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')')).filter(|w| !w.is_empty())
    {
        match w.split_once(['x', 'X', '×']) {
            Some((n, rest)) if !rest.is_empty() && !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()) => {
                words.extend([n, rest])
            }
            _ => words.push(w),
        }
    }
    let says_nodes = words.iter().any(|w| w.to_ascii_lowercase().starts_with("node"));
    for (i, w) in words.iter().enumerate() {
        let digits = w.trim_end_matches(['x', 'X', '×']).trim_end_matches("-GPU").trim_end_matches("-gpu");
        let Ok(count) = digits.parse::<i64>() else { continue };
        let mut rest = words.get(i + 1..)?.iter().copied().peekable();
        if rest.peek().is_some_and(|w| matches!(*w, "x" | "X" | "×")) {
            rest.next();
        }
        let gigabytes = |w: &str| w.to_ascii_lowercase().strip_suffix("gb").and_then(|n| n.parse::<u32>().ok());
        let mut memory = rest.peek().and_then(|w| gigabytes(w));
        if memory.is_some() {
            rest.next();
        }
        let maker = |w: &&str| {
            matches!(w.to_ascii_uppercase().as_str(), "NVIDIA" | "AMD" | "INTEL" | "RTX" | "GEFORCE" | "INSTINCT")
        };
        while rest.peek().is_some_and(maker) {
            rest.next();
        }
        let Some(word) = rest.next() else { continue };
        let bare = word.trim_end_matches(['s', '.', ':']);
        let (bare, tail) = bare.split_once('-').unwrap_or((bare, ""));
        let Some(name) = names::accelerator_word(bare) else { continue };
        memory = memory.or_else(|| gigabytes(tail)).or_else(|| rest.peek().and_then(|w| gigabytes(w)));
        let after = rest.next().unwrap_or("").to_ascii_lowercase();
        let machines = ["node", "server", "machine", "host"].iter().any(|w| after.starts_with(w));
        return Some(Machine {
            count,
            name: memory.map_or_else(|| name.to_owned(), |gb| format!("{name} {gb}GB")),
            // If the sentence mentions nodes elsewhere, the number may be that of a single node.
            nodes: machines || says_nodes,
            line,
        });
    }
    None
}

/// A comment that only states the number of nodes: `8 nodes`.
fn node_count(text: &str) -> Option<(i64, u32)> {
    comments(text).into_iter().find_map(|(line, c)| {
        let (n, word) = c.split_once(' ')?;
        matches!(word.trim_end_matches(['.', ':']), "node" | "nodes" | "VM" | "VMs" | "hosts").then_some(())?;
        Some((n.parse().ok().filter(|n| *n > 0)?, line))
    })
}

/// Whether the comment describes an alternative instead of this file.
fn is_alternative(c: &str) -> bool {
    let low = c.to_ascii_lowercase();
    ["change to", "e.g.", "we use", "uncomment", "instead", "for example", "at least", "minimum", " or "]
        .iter()
        .any(|w| low.contains(w))
}

/// Derives accelerator and counts from comments, then from the path.
pub(crate) fn hardware(path: &str, text: &str, place: impl Fn(u32) -> Place, whole: bool, out: &mut ReadFields) {
    let found: Vec<(Machine, &str)> = comments(text)
        .into_iter()
        .filter(|(_, c)| !is_alternative(c))
        .filter_map(|(n, c)| machine(c, n).map(|m| (m, c)))
        .collect();
    let in_name = path_accelerator(path);
    if out.fields.kind() == Some(Kind::Training)
        && let Some((n, line)) = node_count(text)
    {
        out.fields.set_implied(Field::Nodes, n, place(line));
    }
    if let Some((m, comment)) = found.first() {
        let at = place(m.line);
        out.fields.set_implied(Field::Accelerator, m.name.as_str(), at);
        if !m.nodes && whole && !out.fields.has(Field::NumAccelerators) && m.count > 0 {
            let nodes_known = out.fields.has(Field::Nodes) && out.fields.has(Field::AcceleratorsPerNode);
            if !nodes_known && out.fields.str(Field::Accelerator) == Some(m.name.as_str()) {
                out.fields.set_implied(Field::NumAccelerators, m.count, at);
            }
        }
        if out.fields.kind() == Some(Kind::Benchmark) {
            for word in comment.split(|c: char| !c.is_ascii_alphanumeric()) {
                if matches!(word.to_ascii_lowercase().as_str(), "bf16" | "fp8" | "fp16") {
                    out.fields.set_implied(Field::Precision, word.to_ascii_lowercase(), at);
                }
            }
        }
    }
    for (line, comment) in comments(text).into_iter().filter(|(_, c)| !is_alternative(c)) {
        if let Some(name) = tpu_slice(comment) {
            out.fields.set_implied(Field::Accelerator, name, place(line));
        }
    }
    if let Some(a) = in_name {
        out.fields.set_implied(Field::Accelerator, a, Place::NONE);
    }
}

/// The TPU generation of a slice such as `v5e-256`. The number is ignored: what it counts depends on the generation.
fn tpu_slice(comment: &str) -> Option<&'static str> {
    comment.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '(' | ')' | '.')).find_map(|word| {
        let (generation, size) = word.rsplit_once('-')?;
        let generation = if generation == "v5litepod" { "v5e" } else { generation };
        let sized = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
        names::accelerator_word(generation).filter(|name| sized && name.starts_with("TPU"))
    })
}

/// The accelerator in the file name, or in the names of its directories.
fn path_accelerator(path: &str) -> Option<&'static str> {
    path.rsplit('/').take(3).find_map(names::accelerator_in)
}

/// Derives the precision from the file name.
pub(crate) fn name_precision(path: &str, serving: bool, out: &mut ReadFields) {
    let base = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let mut words = base.split(|c: char| !c.is_ascii_alphanumeric());
    if serving {
        if let Some(w) = words.find_map(|w| match w {
            "fp8" | "int4" | "int8" | "fp4" => Some(w),
            "nvfp4" | "mxfp4" => Some("fp4"),
            _ => None,
        }) {
            out.fields.set_implied(Field::WeightsPrecision, w, Place::NONE);
        }
    } else if let Some(w) = words.find_map(|w| match w {
        "bf16" | "fp16" | "fp8" | "mxfp8" | "fp4" => Some(w),
        "nvfp4" => Some("fp4"),
        _ => None,
    }) {
        out.fields.set_implied(Field::Precision, w, Place::NONE);
    }
}

/// Finds a model in a comment: `Runs Mixtral 8x7B model`, `GPT-3 175B Model.`, `for the GPT-NeoX-20B model`.
pub(crate) fn comment_model(text: &str) -> Option<(String, u32)> {
    for (line, c) in comments(text) {
        let t = c.trim_end_matches('.');
        let low = t.to_ascii_lowercase();
        if let Some(head) = low.strip_suffix("model").map(|h| h.trim_end().len()) {
            let mut body = t.get(..head)?.trim_end_matches(" parameter").trim();
            for verb in ["runs ", "train ", "trains ", "training ", "pretrain ", "pretraining ", "launch ", "launches "]
            {
                if body.get(..verb.len()).is_some_and(|p| p.eq_ignore_ascii_case(verb)) {
                    body = body.get(verb.len()..)?.trim();
                }
            }
            let body = body.strip_prefix("the ").unwrap_or(body).trim_matches('"');
            let sized = body.split([' ', '-', '_']).any(names::is_size);
            if sized && body.len() < 40 && body.split(' ').count() <= 4 {
                return Some((body.to_owned(), line));
            }
        }
        if let Some(i) = low.find("for the ") {
            let rest = t.get(i + 8..)?;
            let mut words = rest.split(' ');
            if let (Some(name), Some("model")) = (words.next(), words.next())
                && name.split(['-', '_']).any(names::is_size)
                && name.starts_with(|c: char| c.is_ascii_alphabetic())
            {
                return Some((name.to_owned(), line));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_before_accelerator_names_are_parsed_as_machines() {
        for (text, count, name, nodes) in [
            ("preset for 128 H100 GPUs", 128, "H100", false),
            ("8 X H200 (bf16)", 8, "H200", false),
            ("trained on 96x 40GB A100", 96, "A100 40GB", false),
            ("8xA100-80GB", 8, "A100 80GB", false),
            ("4 NVIDIA H100s", 4, "H100", false),
            ("2x H200 nodes", 2, "H200", true),
            ("2 nodes of 8 H100", 8, "H100", true),
        ] {
            let m = machine(text, 1).expect(text);
            assert_eq!((m.count, m.name.as_str(), m.nodes), (count, name, nodes), "{text}");
        }
    }

    #[test]
    fn unrelated_numbers_and_names_are_not_parsed_as_machines() {
        for text in ["4 for GB200", "Enable for A100", "H100 supports only FP8", "16x80GB GPUs", "8 GPUs", "version 2"]
        {
            assert!(machine(text, 1).is_none(), "{text}");
        }
        assert!(is_alternative("Change to 4 GB200 GPUs"));
    }

    #[test]
    fn model_names_are_extracted_from_comments() {
        let m = |t: &str| comment_model(t).map(|m| m.0);
        assert_eq!(m("# Runs Mini 8x7B model\n"), Some("Mini 8x7B".to_owned()));
        assert_eq!(m("# Trains the \"30B\" parameter model\n"), Some("30B".to_owned()));
        assert_eq!(m("# settings for the Nova-20B model as trained\n"), Some("Nova-20B".to_owned()));
        assert_eq!(m("# This is a model\n"), None);
    }
}
