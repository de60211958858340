//! The overview: the panes of targets, workloads, knobs and results, and summaries of other views.

use super::Spec;

/// The view.
pub(super) static SPEC: Spec = Spec { title: "Overview", ..Spec::DEFAULT };
