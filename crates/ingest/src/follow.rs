//! Reads logs while they grow, with the same recognizers as whole files and in constant memory. Takes bytes and emits
//! observations. The lines read so far can be summarized like a whole file.
//!
//! After some dozens of observations of one kind, the log is searched for the trigger word of their lines and for
//! timers. Other lines, of which there may be a thousand times as many, are then no longer examined one by one.

use memchr::memmem::Finder;

use crate::Ingested;
use crate::intake::Intake;
use crate::lines::{Line, decode_line};
use crate::observation::Observation;
use crate::prefix::without_prefix;
use crate::reading::Context;
use crate::timers::{self, Timers};

/// Maximum number of bytes kept of an incomplete line.
const MAX_PARTIAL_LINE_BYTES: usize = 1 << 20;

/// Number of observations after which the log is searched for the trigger word of their lines.
const SEARCH_AFTER_OBSERVATIONS: u64 = 32;

/// Numbers of observations and bytes after which the search starts early. In a log with many lines between steps,
/// examining every line dominates the cost.
const EARLY_SEARCH_THRESHOLDS: (u64, u64) = (4, 2 << 20);

/// Incremental reader of a log.
pub struct Follow {
    intake: Intake,
    timers: Timers,
    /// Start of an incomplete line.
    partial: Vec<u8>,
    /// Whether the rest of the current line is skipped because the line is too long.
    dropping: bool,
    number: u64,
    bytes: u64,
    cut: u64,
    out: Vec<Observation>,
    observed: u64,
    /// Trigger words to search for. Empty until they are determined.
    words: Vec<Finder<'static>>,
    /// Whether the last line found directly followed the one before. The next line then probably has the same layout.
    adjacent: bool,
}

impl Follow {
    /// Creates a reader at the start of the log.
    #[must_use]
    pub fn new(context: &Context) -> Follow {
        Follow {
            intake: Intake::new(context),
            timers: Timers::default(),
            partial: Vec::new(),
            dropping: false,
            number: 1,
            bytes: 0,
            cut: 0,
            out: Vec::new(),
            observed: 0,
            words: Vec::new(),
            adjacent: false,
        }
    }

    /// Reads the next bytes of the log, which may be split anywhere, and passes the observations in them to `each`.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Observation)) {
        self.feed_dyn(bytes, &mut each);
    }

    /// Non-generic body of `feed`: generic functions are compiled in the calling crate, with its optimization level.
    fn feed_dyn(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(Observation)) {
        self.bytes += bytes.len() as u64;
        if self.searches() && !self.dropping {
            bytes = self.search(bytes, each);
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (head, rest) = bytes.split_at(at);
            let end = rest.first().copied();
            bytes = rest.get(1..).unwrap_or_default();
            if std::mem::take(&mut self.dropping) {
                self.partial.clear();
            } else if self.partial.is_empty() {
                self.whole_line(head);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(head);
                self.whole_line(&whole);
                whole.clear();
                self.partial = whole;
            }
            self.number += u64::from(end == Some(b'\n'));
            self.emit_observations(each);
            // Count the bytes consumed, not those received, so that the result does not depend on how the input is
            // split.
            let read = self.bytes - bytes.len() as u64;
            if self.words.is_empty() && self.can_search(read) {
                self.start_search();
            }
            if self.searches() {
                bytes = self.search(bytes, each);
            }
        }
        if self.dropping {
            return;
        }
        if self.partial.len() + bytes.len() > MAX_PARTIAL_LINE_BYTES {
            self.partial = Vec::new();
            self.dropping = true;
            self.cut += 1;
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    /// Whether to search whole lines for trigger words. False within a line or a block.
    fn searches(&self) -> bool {
        !self.words.is_empty() && self.partial.is_empty() && !self.timers.open()
    }

    /// Whether there are enough observations to determine which lines are relevant. `read` is the number of bytes
    /// consumed.
    fn can_search(&self, read: u64) -> bool {
        let (least, bytes) = EARLY_SEARCH_THRESHOLDS;
        self.observed >= SEARCH_AFTER_OBSERVATIONS || self.observed >= least && read >= bytes
    }

    /// Determines the words to search for from now on.
    fn start_search(&mut self) {
        if let Some(word) = self.intake.trigger_word() {
            self.words = vec![word.clone()];
            self.words.extend(timers::WORDS.map(Finder::new));
        }
    }

    /// Reads the complete lines of `bytes` that contain one of the words, and returns the incomplete rest.
    fn search<'b>(&mut self, bytes: &'b [u8], each: &mut dyn FnMut(Observation)) -> &'b [u8] {
        let end = memchr::memrchr2(b'\n', b'\r', bytes).map_or(0, |at| at + 1);
        let (mut rest, unfinished) = bytes.split_at(end);
        // `next` holds the next position of each word.
        let words = std::mem::take(&mut self.words);
        let whole = rest;
        let mut offset = self.read_same_layout_lines(whole, 0, each);
        let find = |word: &Finder<'_>, from: usize| Some(from + word.find(whole.get(from..)?)?);
        let mut next: Vec<Option<usize>> = words.iter().map(|word| find(word, offset)).collect();
        while let Some(at) = next.iter().flatten().copied().min() {
            let before = whole.get(offset..at).unwrap_or_default();
            let start = offset + memchr::memrchr2(b'\n', b'\r', before).map_or(0, |at| at + 1);
            let skipped = whole.get(offset..start).unwrap_or_default();
            self.number += memchr::memchr_iter(b'\n', skipped).count() as u64;
            self.adjacent = skipped.is_empty();
            offset = start;
            // Read the line, and the rows of the block that it may start.
            loop {
                let behind = whole.get(offset..).unwrap_or_default();
                let Some(length) = memchr::memchr2(b'\n', b'\r', behind) else { break };
                let timed = next.iter().skip(1).flatten().any(|at| *at < offset + length);
                self.line(behind.get(..length).unwrap_or_default(), true, timed);
                self.number += u64::from(behind.get(length) == Some(&b'\n'));
                offset += length + 1;
                if !self.timers.open() {
                    break;
                }
            }
            self.emit_observations(each);
            offset = self.read_same_layout_lines(whole, offset, each);
            for (word, next) in words.iter().zip(&mut next) {
                if next.is_some_and(|at| at < offset) {
                    *next = find(word, offset);
                }
            }
        }
        rest = whole.get(offset..).unwrap_or_default();
        self.number += memchr::memchr_iter(b'\n', rest).count() as u64;
        self.words = words;
        unfinished
    }

    /// Reads lines starting at `offset` for as long as they have the layout of the last one, and returns the end
    /// offset. Lines of that layout have no timers, so they are not searched for trigger words.
    fn read_same_layout_lines(&mut self, whole: &[u8], mut offset: usize, each: &mut dyn FnMut(Observation)) -> usize {
        while self.adjacent
            && let Some(behind) = whole.get(offset..)
            && let Some(length) = memchr::memchr2(b'\n', b'\r', behind)
        {
            let cleaned = decode_line(behind.get(..length).unwrap_or_default());
            let line = Line { text: without_prefix(&cleaned), number: self.number, whole: true };
            self.adjacent = self.intake.read_same_layout(line);
            if self.adjacent {
                self.intake.append_observations(&mut self.out);
                self.emit_observations(each);
                self.number += u64::from(behind.get(length) == Some(&b'\n'));
                offset += length + 1;
            }
        }
        offset
    }

    /// Counts the pending observations and passes them to `each`.
    fn emit_observations(&mut self, each: &mut dyn FnMut(Observation)) {
        self.observed += self.out.len() as u64;
        self.out.drain(..).for_each(each);
    }

    /// Drops the incomplete line. To be called if the file was replaced, and other content follows.
    pub fn discard_partial_line(&mut self) {
        self.partial.clear();
        self.dropping = false;
        self.number += 1;
    }

    /// Number of bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of lines skipped because they are too long.
    #[must_use]
    pub fn cut_lines(&self) -> u64 {
        self.cut
    }

    /// Returns the result of reading a file of the bytes so far. An incomplete line is read as the last line.
    pub fn finish(mut self, mut each: impl FnMut(Observation)) -> Ingested {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.line(&rest, false, true);
        }
        self.out.drain(..).for_each(&mut each);
        self.intake.tally.bytes = self.bytes;
        self.intake.tally.cut_lines = self.cut;
        self.intake.tally.unfinished_last_line = !rest.is_empty();
        self.intake.finish()
    }

    /// Reads a line outside of `search`. Once the trigger words are determined, lines without one are ignored.
    fn whole_line(&mut self, line: &[u8]) {
        let waited_for = |words: &[Finder<'_>]| words.iter().any(|word| word.find(line).is_some());
        if self.words.is_empty() || self.timers.open() || waited_for(&self.words) {
            self.line(line, true, true);
        }
    }

    /// Reads a line. `timed` is whether it may contain a trigger word of timers.
    fn line(&mut self, raw: &[u8], whole: bool, timed: bool) {
        let cleaned = decode_line(raw);
        let text = without_prefix(&cleaned);
        let text = if whole { text } else { crate::quantity::reliable_part(text) };
        let out = &mut self.out;
        let timed = timed || self.timers.open();
        let timer = timed && self.timers.line(text, |timer| out.push(Observation::Timer(timer)));
        if !timer && self.intake.line(Line { text, number: self.number, whole }) {
            self.intake.append_observations(&mut self.out);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    const MEGATRON: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/follow_megatron.log"));
    const VLLM: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/follow_vllm.log"));

    fn followed(text: &[u8], cuts: &[usize]) -> (Vec<Observation>, Ingested) {
        let (mut follow, mut out, mut from) = (Follow::new(&Context::default()), Vec::new(), 0);
        for cut in cuts.iter().copied().chain([text.len()]) {
            let to = cut.clamp(from, text.len());
            follow.feed(&text[from..to], |seen| out.push(seen));
            from = to;
        }
        let ingested = follow.finish(|seen| out.push(seen));
        (out, ingested)
    }

    #[test]
    fn megatron_steps_and_timers_are_emitted_at_line_ends() {
        let (seen, _) = followed(MEGATRON.as_bytes(), &[]);
        let steps: Vec<u64> =
            seen.iter().filter_map(|seen| if let Observation::Step(step) = seen { step.step } else { None }).collect();
        assert_eq!(steps, [10, 20, 30]);
        assert!(seen.iter().any(|seen| matches!(seen, Observation::Timer(timer) if timer.name == "all-grads-sync")));
        let mut follow = Follow::new(&Context::default());
        let mut count = 0;
        let (head, tail) = MEGATRON.split_at(MEGATRON.rfind("number of nan").unwrap());
        follow.feed(head.as_bytes(), |seen| count += usize::from(matches!(seen, Observation::Step(_))));
        assert_eq!(count, 2, "a line without its end is not read");
        follow.feed(tail.as_bytes(), |seen| count += usize::from(matches!(seen, Observation::Step(_))));
        assert_eq!(count, 3);
    }

    #[test]
    fn vllm_reports_contain_load_and_cache_usage() {
        let (seen, _) = followed(VLLM.as_bytes(), &[]);
        let Some(Observation::Server(server)) = seen.last() else { panic!("{seen:?}") };
        assert_eq!((server.running, server.waiting, server.cache), (Some(64.0), Some(3.0), Some(0.985)));
        assert_eq!(server.generated_per_s, Some(2274.8));
    }

    #[test]
    fn overlong_line_is_skipped_and_reading_resumes() {
        let mut follow = Follow::new(&Context::default());
        for _ in 0..5 {
            follow.feed(&vec![b'x'; MAX_PARTIAL_LINE_BYTES / 2], |_| {});
        }
        assert!(follow.partial.capacity() <= MAX_PARTIAL_LINE_BYTES && follow.cut_lines() == 1);
        let mut seen = 0;
        follow.feed(format!("\n{MEGATRON}").as_bytes(), |_| seen += 1);
        assert!(seen > 3);
    }

    /// A log long enough for the search to start, with other lines and timers between the steps.
    fn long() -> String {
        let mut out = String::new();
        for step in 1..600 {
            out += "a line of another kind\n\r\n";
            out +=
                &format!("iteration {step}/ 1000 | elapsed time per iteration (ms): {step}.5 | lm loss: 9.{step} |\n");
            if step % 10 == 0 {
                out += "(min, max) time across ranks (ms):\n    all-grads-sync ...: (140.22, 190.10)\n    x ..: (1.0, 2.0)\n";
            }
        }
        out
    }

    #[test]
    fn search_in_a_settled_log_finds_every_step() {
        let text = long();
        let (seen, _) = followed(text.as_bytes(), &[]);
        let steps = seen.iter().filter_map(|seen| if let Observation::Step(step) = seen { Some(step) } else { None });
        let steps: Vec<(u64, u64)> = steps.map(|step| (step.step.unwrap(), step.line)).collect();
        let line = |step: u64| step * 3 + (step - 1) / 10 * 3;
        assert_eq!(steps, (1..600).map(|step| (step, line(step))).collect::<Vec<_>>());
        assert_eq!(seen.len() - steps.len(), 2 * 59);
    }

    /// A log of steps and timers only, in which fields change, appear and disappear, and the run restarts.
    fn dense() -> (String, Vec<(u64, u64)>, usize) {
        let (mut out, mut steps, mut timers, mut line) = (String::new(), Vec::new(), 0, 1);
        for n in 1..900_u64 {
            let step = if n < 700 { n } else { n - 650 };
            out += &format!("iteration {step:6}/ 1000 | elapsed time per iteration (ms): {}.5 | ", 900 + n % 7 * 50);
            out += &format!("lm loss: 9.{n} | loss scale: {} |", 1024 << (n / 300));
            out += if n % 90 > 80 { " grad norm: 0.5 |\n" } else { "\n" };
            steps.push((step, line));
            line += 1;
            if n % 100 == 0 {
                out += "(min, max) time across ranks (ms):\n    all-grads-sync ...: (140.22, 190.10)\n";
                (timers, line) = (timers + 1, line + 2);
            }
        }
        (out, steps, timers)
    }

    #[test]
    fn dense_step_lines_yield_all_steps_and_the_same_facts() {
        let (text, expected, timers) = dense();
        let (seen, ingested) = followed(text.as_bytes(), &[]);
        let steps = seen.iter().filter_map(|seen| if let Observation::Step(step) = seen { Some(step) } else { None });
        let steps: Vec<&crate::training::Step> = steps.collect();
        assert_eq!(steps.iter().map(|step| (step.step.unwrap(), step.line)).collect::<Vec<_>>(), expected);
        assert_eq!(seen.len() - steps.len(), timers);
        let norms = steps.iter().filter(|step| step.grad_norm == Some(0.5)).count();
        assert_eq!(norms, (1..900).filter(|n| n % 90 > 80).count());
        let whole = crate::ingest(text.as_bytes(), &Context::default()).unwrap();
        let facts =
            |ingested: &Ingested| format!("{:?}", ingested.readings.iter().map(|r| &r.facts).collect::<Vec<_>>());
        assert_eq!(facts(&ingested), facts(&whole));
    }

    #[test]
    fn sparse_log_is_searched_after_a_few_steps() {
        let mut follow = Follow::new(&Context::default());
        let filler = "a line of another kind, long enough to matter\n".repeat(20_000);
        let mut seen = 0;
        for step in 1..=6 {
            follow.feed(filler.as_bytes(), |_| {});
            let line =
                format!("iteration {step}/ 9 | elapsed time per iteration (ms): {step}.5 | lm loss: 9.{step} |\n");
            follow.feed(line.as_bytes(), |_| seen += 1);
        }
        assert_eq!((seen, follow.searches()), (6, true));
    }

    proptest! {
        #[test]
        fn chunk_boundaries_in_a_settled_log_do_not_change_results(mut cuts in proptest::collection::vec(0_usize..60_000, 0..12)) {
            cuts.sort_unstable();
            let text = long();
            prop_assert!(followed(text.as_bytes(), &[]).0 == followed(text.as_bytes(), &cuts).0, "cut at {cuts:?}");
        }

        #[test]
        fn chunk_boundaries_in_a_dense_log_do_not_change_results(
            mut cuts in proptest::collection::vec(0_usize..90_000, 0..12),
        ) {
            cuts.sort_unstable();
            let (text, ..) = dense();
            prop_assert!(followed(text.as_bytes(), &[]).0 == followed(text.as_bytes(), &cuts).0, "cut at {cuts:?}");
        }

        #[test]
        fn chunk_boundaries_do_not_change_observations_or_facts(mut cuts in proptest::collection::vec(0_usize..4000, 0..12)) {
            cuts.sort_unstable();
            for text in [MEGATRON, VLLM] {
                let (once, whole) = followed(text.as_bytes(), &[]);
                let (often, parts) = followed(text.as_bytes(), &cuts);
                prop_assert_eq!(&once, &often);
                let facts = |ingested: &Ingested| format!("{:?}", ingested.readings.iter().map(|r| &r.facts).collect::<Vec<_>>());
                prop_assert_eq!(facts(&whole), facts(&parts));
            }
        }

        #[test]
        fn arbitrary_bytes_do_not_panic_the_follower(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            followed(&bytes, &[bytes.len() / 2]);
        }
    }
}
