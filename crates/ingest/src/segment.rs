//! Recognizers of one document. A file of several documents is read in as many segments, so that settings of one
//! document are not applied to another.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memmem;
use serde_json::Value;

use super::format;
use super::lines::Line;
use super::observation::Observation;
use super::reading::{Context, Reading, Setting};
use super::recognizer::{Outcome, Recognizer};

/// Trigger words of all recognizers, and the recognizer that each belongs to.
struct Words {
    automaton: Option<AhoCorasick>,
    owners: Vec<usize>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let recognizers = format::all();
    let words: Vec<(usize, &'static str)> = recognizers
        .iter()
        .enumerate()
        .flat_map(|(owner, recognizer)| recognizer.triggers().iter().map(move |word| (owner, *word)))
        .collect();
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words.iter().map(|(_, word)| word))
        .ok();
    Words { automaton, owners: words.into_iter().map(|(owner, _)| owner).collect() }
});

/// Result of offering a line to a segment.
pub(crate) enum OfferResult {
    /// The line was read or ignored.
    Done(Outcome),
    /// The line contradicts what the segment has read, so it starts another document.
    Contradicts,
}

/// Recognizers of one document, and their state.
pub(crate) struct Segment {
    recognizers: Vec<Box<dyn Recognizer>>,
    /// First and last line read by each recognizer.
    ranges: Vec<Option<[u64; 2]>>,
    /// Index of the recognizer that read the last line, and its trigger word. It probably reads the next line, too.
    last_recognizer: usize,
    last_trigger: Option<memmem::Finder<'static>>,
    /// Whether the last line was a row of a table, which has no trigger word.
    last_in_table: bool,
    /// Bit set of the recognizers that are within a table or block.
    open: u64,
    /// Whether a result other than the state of devices was read.
    measured: bool,
    /// Ranges of results in line order: recognizer, first and last line. At most [`MAX_ALTERNATIONS`] are recorded.
    result_ranges: Vec<(usize, [u64; 2])>,
}

/// Maximum number of recorded alternations between recognizers.
const MAX_ALTERNATIONS: usize = 64;

impl Segment {
    pub(crate) fn new() -> Segment {
        let recognizers = format::all();
        Segment {
            ranges: vec![None; recognizers.len()],
            recognizers,
            last_recognizer: usize::MAX,
            last_trigger: None,
            last_in_table: false,
            open: 0,
            measured: false,
            result_ranges: Vec::new(),
        }
    }

    /// Handles a blank line, which ends some tables and blocks.
    pub(crate) fn blank_line(&mut self) {
        let mut open = self.open;
        while open != 0 {
            let index = open.trailing_zeros() as usize;
            open &= open - 1;
            if let Some(recognizer) = self.recognizers.get_mut(index) {
                recognizer.blank_line();
                self.open = self.open & !(1 << index) | u64::from(recognizer.in_block()) << index;
            }
        }
        self.last_in_table &= self.open >> self.last_recognizer.min(63) & 1 != 0;
    }

    /// Offers a line to recognizers until one reads it or it contradicts an earlier line: to the one that read the
    /// previous line, to those within a table or block, and to those with a matching trigger word. `code` is whether
    /// the line is source code, which states no settings.
    pub(crate) fn line(&mut self, line: Line<'_>, code: bool) -> OfferResult {
        let last_recognizer = self.last_recognizer;
        let mut wanted = self.open;
        let mut noted = false;
        let mut reason = None;
        let offered = self.last_in_table
            || self.last_trigger.as_ref().is_some_and(|word| word.find(line.text.as_bytes()).is_some());
        if offered {
            match self.offer_to(last_recognizer, line) {
                Outcome::Recognized => {
                    self.record_same_layout_line(line.number);
                    return OfferResult::Done(Outcome::Recognized);
                }
                // The line may be from another tool.
                Outcome::Unusable(why) => reason = Some(why),
                Outcome::NewDocument => return OfferResult::Contradicts,
                outcome => noted = outcome == Outcome::Settings,
            }
        }
        if let Some(automaton) = &WORDS.automaton {
            for found in automaton.find_overlapping_iter(line.text) {
                if let Some(owner) = WORDS.owners.get(found.pattern().as_usize()) {
                    wanted |= 1 << owner;
                }
            }
        }
        if offered {
            wanted &= !(1 << last_recognizer);
        }
        if self.measured && self.contradicted(wanted, line, code) {
            return OfferResult::Contradicts;
        }
        while wanted != 0 {
            let index = wanted.trailing_zeros() as usize;
            wanted &= wanted - 1;
            if code && self.recognizers.get(index).is_some_and(|recognizer| recognizer.reads_settings_only()) {
                continue;
            }
            match self.offer_to(index, line) {
                Outcome::Recognized => {
                    self.record_line(index, line.number);
                    return OfferResult::Done(Outcome::Recognized);
                }
                Outcome::NewDocument => return OfferResult::Contradicts,
                Outcome::Settings => noted = true,
                Outcome::Unusable(why) => reason = reason.or(Some(why)),
                Outcome::NotRecognized => {}
            }
        }
        OfferResult::Done(match reason {
            Some(reason) => Outcome::Unusable(reason),
            None if noted => Outcome::Settings,
            None => Outcome::NotRecognized,
        })
    }

    /// Offers a line to the recognizer that read the last one, which reads it if it has the same layout. Returns
    /// whether it did.
    pub(crate) fn read_same_layout(&mut self, line: Line<'_>) -> bool {
        let read =
            self.recognizers.get_mut(self.last_recognizer).is_some_and(|recognizer| recognizer.read_same_layout(line));
        if read {
            self.record_same_layout_line(line.number);
        }
        read
    }

    /// Records that the recognizer of the last line has also read line `number`.
    fn record_same_layout_line(&mut self, number: u64) {
        if let Some(Some([_, last])) = self.ranges.get_mut(self.last_recognizer) {
            *last = number;
        }
        let last_recognizer = self.last_recognizer;
        if let Some((_, [_, last])) = self.result_ranges.last_mut().filter(|(index, _)| *index == last_recognizer) {
            *last = number;
        }
    }

    fn contradicted(&self, wanted: u64, line: Line<'_>, code: bool) -> bool {
        let concerned = self.recognizers.iter().enumerate().filter(|(index, _)| wanted >> index & 1 != 0);
        let mut speaking = concerned.filter(|(_, recognizer)| !(code && recognizer.reads_settings_only()));
        speaking.any(|(_, recognizer)| recognizer.contradicts(line))
    }

    /// Records that recognizer `index` has read line `number`.
    fn record_line(&mut self, index: usize, number: u64) {
        let Some(recognizer) = self.recognizers.get(index) else { return };
        self.last_in_table = recognizer.in_table();
        let (ambient, first_word) = (recognizer.reports_device_state(), recognizer.triggers().first());
        self.extend(index, number, ambient);
        if self.last_recognizer != index {
            self.last_recognizer = index;
            self.last_trigger = first_word.map(memmem::Finder::new);
        }
    }

    /// Extends the ranges of a recognizer by a result on line `number`.
    fn extend(&mut self, index: usize, number: u64, ambient: bool) {
        if let Some(range) = self.ranges.get_mut(index) {
            *range = Some([range.map_or(number, |[first, _]| first), number]);
        }
        if ambient {
            return;
        }
        self.measured = true;
        let room = self.result_ranges.len() < MAX_ALTERNATIONS;
        match self.result_ranges.last_mut() {
            Some((last, [_, to])) if *last == index => *to = number,
            _ if room => self.result_ranges.push((index, [number, number])),
            _ => {}
        }
    }

    /// Returns the line ranges in which each recognizer read results: up to two ranges, or a single one from the first
    /// to the last result if it alternated with others more often.
    fn results(&self) -> Vec<(usize, [u64; 2])> {
        let turns = |index: usize| self.result_ranges.iter().filter(|(other, _)| *other == index).count();
        let result_ranges = self.result_ranges.iter().map(|(index, stretch)| match self.ranges.get(*index) {
            Some(Some(range)) if turns(*index) > 2 => (*index, *range),
            _ => (*index, *stretch),
        });
        result_ranges.collect()
    }

    /// Offers a line to one recognizer, and updates the set of open ones.
    fn offer_to(&mut self, index: usize, line: Line<'_>) -> Outcome {
        let Some(recognizer) = self.recognizers.get_mut(index) else { return Outcome::NotRecognized };
        let outcome = recognizer.line(line);
        self.open = self.open & !(1 << index) | u64::from(recognizer.in_block()) << index;
        outcome
    }

    /// Trigger word of the most recently read lines. `None` if those are rows of a table, or while a table or block is
    /// open.
    pub(crate) fn trigger_word(&self) -> Option<&memmem::Finder<'static>> {
        self.last_trigger.as_ref().filter(|_| !self.last_in_table && self.open == 0)
    }

    /// Collects the observations of the recognizer that read the last line.
    pub(crate) fn append_observations(&mut self, out: &mut Vec<Observation>) {
        if let Some(recognizer) = self.recognizers.get_mut(self.last_recognizer) {
            recognizer.append_observations(out);
        }
    }

    /// Offers a JSON document to the recognizers until one accepts it.
    pub(crate) fn json(&mut self, document: &Value, number: u64) -> Outcome {
        for index in 0..self.recognizers.len() {
            let Some(recognizer) = self.recognizers.get_mut(index) else { break };
            let outcome = recognizer.json(document, number);
            if outcome == Outcome::NotRecognized {
                continue;
            }
            if outcome == Outcome::Recognized {
                let ambient = recognizer.reports_device_state();
                self.extend(index, number, ambient);
                // Its observations are collected. Trigger words need not be in documents, so none is searched for.
                (self.last_recognizer, self.last_trigger, self.last_in_table) = (index, None, false);
            }
            return outcome;
        }
        Outcome::NotRecognized
    }

    /// Returns the readings of the document. Each recognizer gets the settings that apply to its results, and those of
    /// the user.
    pub(crate) fn finish(self, context: &Context) -> Vec<Reading> {
        let mut settings: Vec<Setting> = self.recognizers.iter().flat_map(|recognizer| recognizer.settings()).collect();
        settings.sort_by_key(|setting| setting.line);
        let results = self.results();
        let mut readings = Vec::new();
        for (index, (recognizer, range)) in self.recognizers.into_iter().zip(self.ranges).enumerate() {
            let Some(range) = range else { continue };
            let mut context = context.clone();
            if !recognizer.reports_device_state() {
                for setting in settings.iter().filter(|setting| concerns(setting.line, index, range, &results)) {
                    context.settings.note(setting.name, setting.value.clone(), setting.origin);
                }
            }
            readings.extend(recognizer.finish(&context));
        }
        readings
    }
}

/// Whether a setting on line `line` applies to the results of recognizer `index`, which start on line `first`: it must
/// precede them, and follow the results of all other tools that ended before.
fn concerns(line: u64, index: usize, [first, _]: [u64; 2], results: &[(usize, [u64; 2])]) -> bool {
    let earlier = |(other, [_, to]): &(usize, [u64; 2])| *other != index && *to < first && line <= *to;
    line <= first && !results.iter().any(earlier)
}
