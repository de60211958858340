//! The trait that recognizers of log formats implement.

use serde_json::Value;

use super::lines::Line;
use super::observation::Observation;
use super::reading::{Context, Reading, Setting};

/// Result of offering a line or document to a recognizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The line does not belong to this format.
    NotRecognized,
    /// The line contains configuration. Other recognizers may read it, too.
    Settings,
    /// The line was read.
    Recognized,
    /// The line belongs to this format, but cannot be used, for this reason.
    Unusable(&'static str),
    /// The line starts another document and was not read. It is offered again to recognizers in their initial state.
    NewDocument,
}

impl Outcome {
    /// Offers the objects of a list one by one. Returns [`Outcome::Recognized`] if any of them was read.
    pub fn of_entries(list: &[Value], mut offer: impl FnMut(&Value) -> Outcome) -> Outcome {
        let taken = list.iter().filter(|entry| entry.is_object() && offer(entry) == Outcome::Recognized).count();
        if taken > 0 { Outcome::Recognized } else { Outcome::NotRecognized }
    }
}

/// Recognizer of one format, or of a family of formats.
pub trait Recognizer: Send {
    /// Trigger words. Every relevant line contains one of them. While [`Recognizer::in_block`] is true, all lines are
    /// offered.
    fn triggers(&self) -> &'static [&'static str];

    /// Offers a line.
    fn line(&mut self, line: Line<'_>) -> Outcome;

    /// Reads a line if it has exactly the layout of an earlier one, and returns whether it did. This is a fast path:
    /// [`Recognizer::line`] has the same effect on such a line.
    fn read_same_layout(&mut self, _line: Line<'_>) -> bool {
        false
    }

    /// Whether a table or block has started that the next lines may belong to.
    fn in_block(&self) -> bool {
        self.in_table()
    }

    /// Whether the next lines are rows of a table that no other format has. They are then offered to this recognizer
    /// first.
    fn in_table(&self) -> bool {
        false
    }

    /// Handles a blank line while [`Recognizer::in_block`] is true. Many tables end with one.
    fn blank_line(&mut self) {}

    /// Offers a JSON document: a whole file, or one line.
    fn json(&mut self, _document: &Value, _line: u64) -> Outcome {
        Outcome::NotRecognized
    }

    /// Whether the line cannot belong to the document read so far, because it states another value of a setting after
    /// results were read. The line is then offered again to recognizers in their initial state.
    fn contradicts(&self, _line: Line<'_>) -> bool {
        false
    }

    /// Whether this format reports the state of devices, which may be interleaved with the output of other tools.
    fn reports_device_state(&self) -> bool {
        false
    }

    /// Whether the recognizer reads settings only, no results.
    fn reads_settings_only(&self) -> bool {
        false
    }

    /// Settings that apply to the results of other recognizers in the same document.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// Appends the observations since the last call to `out`, for logs that are read while they grow.
    fn append_observations(&mut self, _out: &mut Vec<Observation>) {}

    /// The readings, at the end of the document.
    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading>;
}
