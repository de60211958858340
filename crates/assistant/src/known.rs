//! The targets and workloads that words can name.

use atlas_config::Mode;

/// A target that words can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTarget {
    /// Its name.
    pub name: String,
    /// Accelerators of one node.
    pub per_node: u32,
    /// Nodes.
    pub nodes: u32,
}

/// A workload that words can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownWorkload {
    /// Its name.
    pub name: String,
    /// Whether it trains or serves.
    pub mode: Mode,
}

/// The targets and workloads that words can name, in the order of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The targets.
    pub targets: Vec<KnownTarget>,
    /// The workloads.
    pub workloads: Vec<KnownWorkload>,
}

impl Known {
    /// Whether a word, in lower case, is part of a target's name; a `*` at its end stands for any rest.
    #[must_use]
    pub fn names_target(&self, word: &str) -> bool {
        self.targets_of(word).next().is_some()
    }

    /// The targets that a word, in lower case, is part of the names of; only the one that it is the name of.
    pub fn targets_of<'k>(&'k self, word: &str) -> impl Iterator<Item = &'k KnownTarget> {
        let word = word.trim_end_matches('*').to_owned();
        let exact = self.targets.iter().any(|target| target.name.eq_ignore_ascii_case(&word));
        self.targets.iter().filter(move |target| {
            if exact { target.name.eq_ignore_ascii_case(&word) } else { is_part(&word, &target.name) }
        })
    }

    /// Whether a word, in lower case, is part of a workload's name.
    #[must_use]
    pub fn names_workload(&self, word: &str) -> bool {
        self.workloads.iter().any(|workload| is_part(word, &workload.name))
    }

    /// The first workload that all words are part of the name of, of that mode where one is given. Where some name has the
    /// words side by side, as `qwen2.5-7b` has, others do not count: `qwen2.5-vl-7b` is another model.
    #[must_use]
    pub fn workload_of(&self, words: &[String], mode: Option<Mode>) -> Option<&KnownWorkload> {
        let of_mode = |workload: &&KnownWorkload| mode.is_none_or(|mode| workload.mode == mode);
        let named = |workload: &&KnownWorkload| words.iter().any(|word| workload.name.eq_ignore_ascii_case(word));
        let joined = words.join("-");
        let adjacent = |workload: &KnownWorkload| workload.name.to_lowercase().contains(&joined);
        let strict = self.workloads.iter().any(adjacent);
        let holds = |workload: &&KnownWorkload| {
            words.iter().all(|word| is_part(word, &workload.name)) && (!strict || adjacent(workload))
        };
        let candidates = || self.workloads.iter().filter(of_mode).filter(holds);
        candidates().find(named).or_else(|| candidates().next())
    }
}

/// Whether a word is a part of a name; a number alone is not, since it is part of too many. Nothing, as before the star of
/// `*`, is part of every name.
fn is_part(word: &str, name: &str) -> bool {
    let number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    !number && name.to_lowercase().contains(word)
}
