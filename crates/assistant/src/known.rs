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

    /// Targets whose name contains a word (in lower case), or only the one whose name it is exactly.
    pub fn targets_of<'k>(&'k self, word: &str) -> impl Iterator<Item = &'k KnownTarget> {
        let word = word.trim_end_matches('*').to_owned();
        let exact = self.targets.iter().any(|target| target.name.eq_ignore_ascii_case(&word));
        self.targets.iter().filter(move |target| {
            if exact { target.name.eq_ignore_ascii_case(&word) } else { contains_word(&word, &target.name) }
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

/// Whether a name contains a word. A number alone does not count, since it would match too many names. An empty word,
/// which remains of `*`, matches every name.
fn contains_word(word: &str, name: &str) -> bool {
    let number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    !number && name.to_lowercase().contains(word)
}
