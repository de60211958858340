//! What undo restores.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::demo::Setup;
use atlas_plan::knob::{Knob, Setting};

/// The state that undo restores.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// The scenario.
    pub setup: Setup,
    /// Targets marked for the comparison.
    pub marks: BTreeSet<Arc<str>>,
    /// The baseline; the values in the files of the same target and workload if unset.
    pub baseline: Option<Setup>,
    /// The pinned tab, if the next change pinned or unpinned one.
    pub pinned: Option<Option<TabId>>,
    /// The name of the tab, if the next change renamed it.
    pub name: Option<Option<Arc<str>>>,
}

impl Snapshot {
    /// Approximate size in bytes. Shared texts are counted as well.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let setup = |setup: &Setup| setup.overrides.len() * 2 * size_of::<(Knob, Setting)>() + setup.target.len();
        let marks: usize = self.marks.iter().map(|mark| mark.len() + 2 * size_of::<Arc<str>>()).sum();
        size_of::<Snapshot>() + marks + setup(&self.setup) + self.baseline.as_ref().map_or(0, setup)
    }
}

/// Maximum number of undo steps of a scenario. Their total memory is limited by `MAX_STEP_BYTES`.
pub(in crate::tui) const MAX_STEPS: usize = 1000;

const MAX_STEP_BYTES: usize = 512 << 10;

/// Drops the oldest steps beyond these limits. The latest is always kept.
pub(in crate::tui) fn forget_oldest(past: &mut Vec<Snapshot>) {
    let (mut steps, mut bytes) = (0, 0);
    for snapshot in past.iter().rev() {
        bytes += snapshot.bytes();
        if steps > 0 && (steps == MAX_STEPS || bytes > MAX_STEP_BYTES) {
            break;
        }
        steps += 1;
    }
    past.drain(..past.len() - steps);
}

/// Identifies a tab while the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TabId(pub(in crate::tui) u32);
