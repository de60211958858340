//! Targets, workloads and models that a question can name.

use atlas_config::Mode;

/// A target that a question can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTarget {
    /// Its name.
    pub name: String,
    /// Accelerators per node.
    pub per_node: u32,
    /// Number of nodes.
    pub nodes: u32,
}

/// A workload that a question can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownWorkload {
    /// Its name.
    pub name: String,
    /// Training or serving.
    pub mode: Mode,
}

/// Targets, workloads and models that a question can name, in the order of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The targets.
    pub targets: Vec<KnownTarget>,
    /// The workloads.
    pub workloads: Vec<KnownWorkload>,
    /// Names of the catalog's models.
    pub models: Vec<String>,
}

impl Known {
    /// Whether a word (in lower case) is part of a target's name. A trailing `*` matches any rest.
    #[must_use]
    pub fn names_target(&self, word: &str) -> bool {
        self.targets_of(word).next().is_some()
    }

    /// Targets named by a word (in lower case): the one with this name; else those with the word between the hyphens of
    /// their name, so that `l4` is not `l40s-8`; else those whose name contains it. A trailing `*` matches any rest.
    pub fn targets_of<'k>(&'k self, word: &str) -> impl Iterator<Item = &'k KnownTarget> {
        let (open, word) = (word.ends_with('*'), word.trim_end_matches('*').to_owned());
        let exact = |name: &str| name.eq_ignore_ascii_case(&word);
        let part = |name: &str| contains_part(&word, &name.to_lowercase());
        let names = || self.targets.iter().map(|target| &*target.name);
        let matching = match (open, names().any(exact), names().any(part)) {
            (_, true, _) => Match::Exact,
            (false, _, true) => Match::Part,
            _ => Match::Within,
        };
        self.targets.iter().filter(move |target| match matching {
            Match::Exact => target.name.eq_ignore_ascii_case(&word),
            Match::Part => contains_part(&word, &target.name.to_lowercase()),
            Match::Within => contains_word(&word, &target.name),
        })
    }

    /// Whether a word, in lower case, is part of a workload's name.
    #[must_use]
    pub fn names_workload(&self, word: &str) -> bool {
        self.workloads.iter().any(|workload| contains_word(word, &workload.name))
    }

    /// First workload whose name contains all words, restricted to `mode` if given. If the words are adjacent in some
    /// name, as in `qwen2.5-7b`, only such names count: `qwen2.5-vl-7b` is another model.
    #[must_use]
    pub fn workload_of(&self, words: &[String], mode: Option<Mode>) -> Option<&KnownWorkload> {
        let of_mode = |workload: &&KnownWorkload| mode.is_none_or(|mode| workload.mode == mode);
        let named = |workload: &&KnownWorkload| words.iter().any(|word| workload.name.eq_ignore_ascii_case(word));
        let joined = words.join("-");
        let adjacent = |workload: &KnownWorkload| workload.name.to_lowercase().contains(&joined);
        let strict = self.workloads.iter().any(adjacent);
        let holds = |workload: &&KnownWorkload| {
            words.iter().all(|word| contains_word(word, &workload.name)) && (!strict || adjacent(workload))
        };
        let candidates = || self.workloads.iter().filter(of_mode).filter(holds);
        candidates().find(named).or_else(|| candidates().next())
    }

    /// Model of the catalog with exactly this name, except for hyphens, dots and the organization: `llama3-8b` is
    /// `llama-3-8b`.
    #[must_use]
    pub fn model_named(&self, words: &[String]) -> Option<&str> {
        let letters = |name: &str| -> String { name.chars().filter(char::is_ascii_alphanumeric).collect() };
        let joined = words.join("-").to_lowercase();
        let own = joined.rsplit('/').next().unwrap_or_default();
        let exact = self.models.iter().find(|name| name.eq_ignore_ascii_case(own));
        let wanted = letters(own);
        let alike = || self.models.iter().find(|name| letters(&name.to_lowercase()) == wanted);
        exact.or_else(alike).map(String::as_str).filter(|_| !wanted.is_empty())
    }

    /// Models of the catalog with words in their name, the first of them at its beginning. A name with which all the
    /// others begin stands for itself, as `qwen3-32b` does beside `qwen3-32b-fp8`.
    #[must_use]
    pub fn models_of(&self, words: &[String]) -> Vec<&str> {
        if let Some(name) = self.model_named(words) {
            return vec![name];
        }
        let matching = |name: &&str| {
            let lower = name.to_lowercase();
            words.first().is_some_and(|first| begins_with(first, &lower))
                && words.iter().all(|word| contains_word(word, &lower))
        };
        let found: Vec<&str> = self.models.iter().map(String::as_str).filter(matching).collect();
        let base = found.iter().copied().find(|name| found.iter().all(|other| other.starts_with(name)));
        base.map_or(found, |name| vec![name])
    }

    /// Whether a word, in lower case, is the name of a model or, with the words before or after it, a part of one. A
    /// word of letters only must be followed by another part or begin several names, since many are ordinary words
    /// (`command`, `step`).
    #[must_use]
    pub fn names_model(&self, before: &[String], word: &str, next: Option<&str>) -> bool {
        let one = [word.to_owned()];
        if self.model_named(&one).is_some() {
            return true;
        }
        let with = |words: &[&str]| {
            let all: Vec<String> = before.iter().cloned().chain(words.iter().map(|word| (*word).to_owned())).collect();
            self.models_of(&all).len()
        };
        match (before.is_empty(), word.contains(|c: char| c.is_ascii_digit())) {
            (false, _) | (true, true) => with(&[word]) > 0,
            (true, false) => with(&[word]) > 1 || next.is_some_and(|next| with(&[word, next]) > 0),
        }
    }
}

/// Whether a name begins with a word that ends before a hyphen, a dot or a number.
fn begins_with(word: &str, name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic();
    let digit = |c: char| c.is_ascii_digit();
    let Some(rest) = name.strip_prefix(word) else { return false };
    let ends = |pattern: &dyn Fn(char) -> bool| word.ends_with(pattern) && rest.starts_with(pattern);
    word.len() > 1 && !ends(&letter) && !ends(&digit)
}

/// How a word matches the names of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    /// It is the name.
    Exact,
    /// It consists of whole parts of the name.
    Part,
    /// It is contained in the name.
    Within,
}

/// Whether a word consists of whole parts of a name between hyphens. Numbers are no parts, since every name ends with
/// one.
fn contains_part(word: &str, name: &str) -> bool {
    let number = word.chars().all(|c| c.is_ascii_digit());
    !number && format!("-{name}-").contains(&format!("-{word}-"))
}

/// Nouns for hardware in general, which name no target even if they are a part of a name (`GROQ_LPU_NODE`).
const GENERAL: [&str; 6] = ["node", "nodes", "gpu", "gpus", "accelerator", "accelerators"];

/// Whether a name contains a word. A number alone does not count, since it would match too many names. An empty word,
/// which remains of `*`, matches every name.
fn contains_word(word: &str, name: &str) -> bool {
    let number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '-');
    !number && !GENERAL.contains(&word) && name.to_lowercase().contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_targets_by_whole_parts_before_substrings() {
        let names =
            ["GROQ_LPU_NODE", "l40s-8", "l4-8", "h200-sxm-8", "h20-8", "tpu-v4-64", "tpu-v5e-256", "a100-sxm-80gb-8"];
        let target = |name: &&str| KnownTarget { name: (*name).to_owned(), per_node: 8, nodes: 1 };
        let known = Known { targets: names.iter().map(target).collect(), ..Known::default() };
        let named = |word: &str| -> Vec<&str> { known.targets_of(word).map(|target| target.name.as_str()).collect() };
        assert_eq!(named("l4"), ["l4-8"]);
        assert_eq!(named("h20"), ["h20-8"]);
        assert_eq!(named("tpu-v5e"), ["tpu-v5e-256"]);
        assert_eq!(named("h200-sxm-8"), ["h200-sxm-8"]);
        assert_eq!(named("l4*"), ["l40s-8", "l4-8"]);
        assert_eq!(named("a100"), ["a100-sxm-80gb-8"]);
        assert_eq!(named("groq"), ["GROQ_LPU_NODE"]);
        for word in ["100", "-5", "node", "nodes"] {
            assert_eq!(named(word), Vec::<&str>::new(), "{word}");
        }
    }

    #[test]
    fn words_name_models_by_their_beginning() {
        let names = ["llama-3-8b", "qwen3-32b", "qwen3-32b-fp8", "gemma-2-9b", "gemma-2-27b", "command-r", "step-3.5"];
        let known = Known { models: names.map(str::to_owned).to_vec(), ..Known::default() };
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        for (line, models) in [
            ("llama3-8b", vec!["llama-3-8b"]),
            ("qwen/qwen3-32b", vec!["qwen3-32b"]),
            ("qwen3 32b", vec!["qwen3-32b"]),
            ("gemma 27b", vec!["gemma-2-27b"]),
            ("gemma", vec!["gemma-2-9b", "gemma-2-27b"]),
            ("27b", vec![]),
            ("gem", vec![]),
        ] {
            assert_eq!(known.models_of(&words(line)), models, "{line}");
        }
        assert!(known.names_model(&[], "gemma", None) && known.names_model(&[], "command", Some("r")));
        assert!(!known.names_model(&[], "command", None) && !known.names_model(&[], "step", Some("time")));
    }
}
