//! Targets and workloads that a question can name.

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

/// Targets and workloads that a question can name, in the order of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The targets.
    pub targets: Vec<KnownTarget>,
    /// The workloads.
    pub workloads: Vec<KnownWorkload>,
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
    let number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
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
        let known = Known { targets: names.iter().map(target).collect(), workloads: Vec::new() };
        let named = |word: &str| -> Vec<&str> { known.targets_of(word).map(|target| target.name.as_str()).collect() };
        assert_eq!(named("l4"), ["l4-8"]);
        assert_eq!(named("h20"), ["h20-8"]);
        assert_eq!(named("tpu-v5e"), ["tpu-v5e-256"]);
        assert_eq!(named("h200-sxm-8"), ["h200-sxm-8"]);
        assert_eq!(named("l4*"), ["l40s-8", "l4-8"]);
        assert_eq!(named("a100"), ["a100-sxm-80gb-8"]);
        assert_eq!(named("groq"), ["GROQ_LPU_NODE"]);
        for word in ["100", "node", "nodes"] {
            assert_eq!(named(word), Vec::<&str>::new(), "{word}");
        }
    }
}
