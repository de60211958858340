//! `sinfo` with an explicit format, which is stable across releases and has one line per kind of node.

use super::slurm_gres::{self, Gres};
use super::slurm_time;
use crate::model::Limit;
use crate::text::{clean, present};

/// The columns: partition, availability, nodes, state, CPUs, memory, GRES, features, time limit, job size, node list.
pub const FORMAT: &str = "%R|%a|%D|%T|%c|%m|%G|%f|%l|%s|%N";

/// Maximum number of lines that are read.
const MAX_LINES: usize = 200_000;

/// Availability of a node for jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Free. Powered-down cloud nodes are included, since the scheduler starts them.
    Idle,
    /// Partly used.
    Mixed,
    /// In use.
    Allocated,
    /// Free, but reserved for a pending job.
    Planned,
    /// Down, drained, reserved, in maintenance.
    Unavailable,
}

impl State {
    /// Parses `%T` or `%t` of `sinfo` (`idle~`, `mix`, `down*`) and `State=` of `scontrol` (`IDLE+CLOUD+POWERED_DOWN`).
    #[must_use]
    pub fn parse(text: &str) -> State {
        let lower = text.trim().to_ascii_lowercase();
        let mut state = State::Unavailable;
        for (at, word) in lower.split('+').enumerate() {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
            let suffix = word.strip_prefix(bare).unwrap_or("");
            let own = match bare {
                "idle" => State::Idle,
                "mixed" | "mix" => State::Mixed,
                "allocated" | "alloc" | "completing" | "comp" => State::Allocated,
                "planned" | "plnd" => State::Planned,
                "cloud" | "powered_down" | "powering_up" | "dynamic_norm" | "dynamic_future" => continue,
                _ => State::Unavailable,
            };
            // The other suffixes: not responding, powering down, in a maintenance reservation, about to reboot.
            let own = match suffix {
                "" | "~" | "#" => own,
                "-" => State::Planned,
                _ => State::Unavailable,
            };
            state = if at == 0 { own } else { state.with_flag(own) };
        }
        state
    }

    /// Combines a state with a flag. A flag makes a free node planned or unavailable; a node in use stays in use unless
    /// the flag makes it unavailable.
    fn with_flag(self, flag: State) -> State {
        match (self, flag) {
            (_, State::Unavailable) => State::Unavailable,
            (State::Idle, flag) => flag,
            (own, _) => own,
        }
    }
}

/// Equal nodes of one partition in the same state.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Partition.
    pub partition: String,
    /// Whether the partition starts jobs, if stated.
    pub up: Option<bool>,
    /// Number of nodes.
    pub nodes: u32,
    /// Their state.
    pub state: State,
    /// CPUs of one node.
    pub cpus: Option<u32>,
    /// Memory of one node, MiB.
    pub memory_mib: Option<f64>,
    /// Generic resources of one node.
    pub gres: Vec<Gres>,
    /// Features of the nodes.
    pub features: Vec<String>,
    /// Maximum run time of a job.
    pub max_time: Option<Limit>,
    /// Maximum nodes of a job.
    pub max_nodes: Option<Limit>,
    /// The nodes, as a host list.
    pub list: String,
}

/// Parses the output of `sinfo -h -e -o` with [`FORMAT`]. Also returns the number of lines that were not recognized.
#[must_use]
pub fn parse(text: &str) -> (Vec<Row>, usize) {
    let mut rows = Vec::new();
    let mut skipped: usize = 0;
    for line in text.lines().take(MAX_LINES).filter(|line| !line.trim().is_empty()) {
        match row(line) {
            Some(row) => rows.push(row),
            None => skipped = skipped.saturating_add(1),
        }
    }
    (rows, skipped)
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split('|').collect();
    let [partition, up, nodes, state, cpus, memory, gres, features, time, size, list] = fields.as_slice() else {
        return None;
    };
    let partition = clean(partition.trim().trim_end_matches('*'));
    if partition.is_empty() {
        return None;
    }
    Some(Row {
        partition,
        up: Some(up.trim().eq_ignore_ascii_case("up")),
        nodes: nodes.trim().parse().ok()?,
        state: State::parse(state),
        cpus: whole(cpus),
        memory_mib: whole(memory).map(f64::from),
        gres: slurm_gres::parse(gres),
        features: self::features(features),
        max_time: slurm_time::limit(time),
        // The value is `1-infinite`, `1-16` or `4`.
        max_nodes: size.rsplit('-').next().and_then(slurm_time::count),
        list: list.trim().to_owned(),
    })
}

/// Parses a number such as `64` or `64+`.
fn whole(text: &str) -> Option<u32> {
    text.trim().trim_end_matches('+').parse().ok()
}

/// Parses a comma-separated list of features.
#[must_use]
pub fn features(text: &str) -> Vec<String> {
    let Some(text) = present(text) else { return Vec::new() };
    text.split(',').map(clean).filter(|feature| !feature.is_empty()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_states_of_sinfo_and_scontrol_are_parsed() {
        for (text, state) in [
            ("idle", State::Idle),
            ("idle~", State::Idle),
            ("idle#", State::Idle),
            ("idle*", State::Unavailable),
            ("idle%", State::Unavailable),
            ("idle-", State::Planned),
            ("mix-", State::Planned),
            ("mixed", State::Mixed),
            ("allocated", State::Allocated),
            ("completing", State::Allocated),
            ("planned", State::Planned),
            ("drained*", State::Unavailable),
            ("reserved", State::Unavailable),
            ("inval", State::Unavailable),
            ("IDLE+CLOUD+POWERED_DOWN", State::Idle),
            ("IDLE+DRAIN", State::Unavailable),
            ("MIXED+PLANNED", State::Mixed),
            ("IDLE+PLANNED", State::Planned),
            ("IDLE+COMPLETING", State::Allocated),
            ("ALLOCATED+POWERING_UP", State::Allocated),
            ("DOWN*+DRAIN", State::Unavailable),
            ("", State::Unavailable),
            ("?", State::Unavailable),
        ] {
            assert_eq!(State::parse(text), state, "{text}");
        }
    }

    #[test]
    fn malformed_sinfo_lines_are_counted_and_skipped() {
        let text = "gpu|up|2|idle|64|512000|gpu:a100:4|a100,ib|2-00:00:00|1-16|n[1-2]\nslurm_load error\n\n|up|x\n";
        let (rows, skipped) = parse(text);
        assert_eq!((rows.len(), skipped), (1, 2));
    }
}
