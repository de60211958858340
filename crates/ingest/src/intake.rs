//! Passes one file through all recognizers, in a single pass.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use serde::Serialize;
use serde_json::Value;

use super::IngestError;
use super::block::{Block, Progress};
use super::lines::{Line, Lines, decompressed};
use super::observation::Observation;
use super::reading::{Context, Reading};
use super::recognizer::Outcome;
use super::segment::{OfferResult, Segment};
use super::{code, json, notebook, plausibility, tensorboard};

/// Maximum size in bytes of a JSON document that is read as a whole.
const MAX_DOCUMENT_BYTES: u64 = 128 << 20;

/// Numbers of lines of a file, by how they were handled.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Tally {
    /// Bytes, after decompression.
    pub bytes: u64,
    /// Non-blank lines. Parts separated by carriage returns count separately.
    pub lines: u64,
    /// Lines that were read, or documents if the file is JSON.
    pub recognized: u64,
    /// Lines that contained configuration.
    pub noted: u64,
    /// Lines that no format recognizes.
    pub passed_over: u64,
    /// Lines of a known format that cannot be used, by reason.
    pub skipped: BTreeMap<String, Skipped>,
    /// Whether the last line is incomplete: the file may be truncated.
    pub unfinished_last_line: bool,
    /// Lines that are too long: `ingest` truncates them, `Follow` skips them.
    pub cut_lines: u64,
    /// Readings beyond the limit of 4096, which are not kept.
    pub dropped_readings: u64,
}

/// Lines skipped for one reason.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Skipped {
    /// Number of lines.
    pub n: u64,
    /// Line number of the first one.
    pub first_line: u64,
}

/// Result of reading a file.
#[derive(Debug, Clone, Default)]
pub struct Ingested {
    /// Name of the file, as the user gave it.
    pub file: String,
    /// Readings, the most important first.
    pub readings: Vec<Reading>,
    /// Numbers of lines by how they were handled.
    pub tally: Tally,
}

impl Context {
    /// Returns a number in the file name that follows the abbreviation `short`, such as 4 for `tp` in
    /// `run_dp1_tp4_pp8.log`.
    #[must_use]
    pub fn number_in_file_name(&self, short: &str) -> Option<f64> {
        let name = self.name.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
        name.split(['_', '-', '.']).find_map(|part| {
            let digits = part.strip_prefix(short)?;
            (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
        })
    }
}

/// Reads all of `source`.
///
/// # Errors
///
/// If the source cannot be read, or has no known format. In the latter case, the message states what was found and what
/// was expected.
pub fn ingest(source: impl Read, context: &Context) -> Result<Ingested, IngestError> {
    let failed = |source: io::Error| IngestError::Read { file: context.name.clone(), source };
    from_text(decompressed(source).map_err(failed)?, context)
}

fn from_text(mut source: Box<dyn BufRead + '_>, context: &Context) -> Result<Ingested, IngestError> {
    let failed = |source: io::Error| IngestError::Read { file: context.name.clone(), source };
    let mut intake = Intake::new(context);
    let head = source.fill_buf().map_err(failed)?;
    if let Some((packed, unpack)) = detect_compression(head) {
        let name = &context.name;
        let message =
            format!("{name}: compressed with {packed}; expected text or gzip; run: {unpack} {name} | atlas ingest -");
        return Err(IngestError::Unknown(message));
    }
    if tensorboard::begins(head) {
        let (scalars, records, damaged) = tensorboard::read(&mut source).map_err(failed)?;
        let tally = Tally { lines: records, recognized: records, unfinished_last_line: damaged, ..Tally::default() };
        let mut readings = scalars.finish("tensorboard", "tensorboard-events", context);
        readings.iter_mut().for_each(plausibility::check);
        if readings.is_empty() {
            let name = &context.name;
            let message = format!(
                "{name}: a TensorBoard event file of {records} records without training scalars; expected loss, \
                 learning rate or step time"
            );
            return Err(IngestError::Unknown(message));
        }
        return Ok(Ingested { file: context.name.clone(), readings, tally });
    }
    let looks_like_json = looks_like_document(head);
    let mut complaint = None;
    if looks_like_json {
        let mut first = Vec::new();
        let mut limited = source.by_ref().take(MAX_DOCUMENT_BYTES);
        io::BufRead::read_until(&mut limited, b'\n', &mut first).map_err(failed)?;
        if first.starts_with(b"\xef\xbb\xbf") {
            first.drain(..3);
        }
        if !json::json(&first).is_ok_and(|document| document.is_object()) {
            // Not JSON Lines: the file is one document, or several in sequence.
            let mut limited = source.by_ref().take(MAX_DOCUMENT_BYTES);
            limited.read_to_end(&mut first).map_err(failed)?;
            first.retain(|byte| *byte != 0);
            if let Err(error) = intake.documents(&first) {
                complaint = Some(format!("{}:{}:{}: not JSON: {error}", context.name, error.line(), error.column()));
                intake.stream(&mut first.as_slice().chain(source)).map_err(failed)?;
            } else {
                intake.tally.bytes = first.len() as u64;
            }
        } else {
            intake.stream(&mut first.as_slice().chain(source)).map_err(failed)?;
        }
    } else {
        intake.stream(&mut source).map_err(failed)?;
    }
    let first_line = intake.first_line.clone();
    let ingested = intake.finish();
    if ingested.readings.is_empty() {
        return Err(IngestError::Unknown(unknown(context, &ingested.tally, &first_line, complaint)));
    }
    Ok(ingested)
}

/// Detects a compression format by its first bytes. Returns its name and the command that decompresses it.
fn detect_compression(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let known: [(&[u8], &str, &str); 4] = [
        (b"\x28\xb5\x2f\xfd", "Zstandard", "zstd -dc"),
        (b"\xfd7zXZ\0", "xz", "xz -dc"),
        (b"BZh", "bzip2", "bzip2 -dc"),
        (b"PK\x03\x04", "zip", "unzip -p"),
    ];
    known.into_iter().find(|(magic, ..)| head.starts_with(magic)).map(|(_, name, unpack)| (name, unpack))
}

/// Error message for a file in which nothing was recognized.
fn unknown(context: &Context, tally: &Tally, first_line: &str, complaint: Option<String>) -> String {
    let name = &context.name;
    if tally.bytes == 0 {
        return format!("{name}: the file is empty; expected a log of a training, serving, network or power tool");
    }
    let mut out = format!("{name}:1:1: no known format in {} lines", tally.lines.max(1));
    if let Some((reason, skipped)) = tally.skipped.iter().next() {
        out += &format!("; line {} is {reason}", skipped.first_line);
    }
    if let Some(complaint) = complaint {
        out += &format!("; {complaint}");
    }
    let shown: String = first_line.chars().take(80).collect();
    let unreadable = shown.chars().filter(|c| c.is_control() || *c == char::REPLACEMENT_CHARACTER).count();
    if unreadable * 10 > shown.chars().count() {
        out += "; the file is binary";
    } else if !shown.is_empty() {
        out += &format!("; the file begins with \"{shown}\"");
    }
    out + "; expected step lines, results, or samples of a tool that `atlas ingest --formats` lists"
}

/// Whether `bytes` start like a JSON object or an array of objects.
fn looks_like_document(bytes: &[u8]) -> bool {
    let mut rest = bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(bytes)
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace() && **byte != 0);
    match (rest.next(), rest.next()) {
        (Some(b'{'), second) => matches!(second, Some(b'"' | b'}')),
        (Some(b'['), second) => matches!(second, Some(b'{')),
        _ => false,
    }
}

/// Maximum number of readings kept per file.
const MAX_READINGS: usize = 4096;
/// Maximum number of segments that a file is split into because of contradicting lines.
const MAX_SEGMENTS: usize = 1024;

/// Distributes lines and documents to segments.
pub(crate) struct Intake {
    context: Context,
    segment: Segment,
    /// Readings of the segments that are complete.
    readings: Vec<Reading>,
    pub(crate) tally: Tally,
    first_line: String,
    /// Whether the current lines are Python source code, which some tools print before their log.
    code: bool,
    block: Option<Block>,
    /// Number of lines of notebook outputs so far.
    notebook_lines: u64,
    /// Number of the previous line.
    last_line: u64,
    /// Number of segments ended because of contradictions.
    segments: usize,
}

impl Intake {
    pub(crate) fn new(context: &Context) -> Intake {
        Intake {
            context: context.clone(),
            segment: Segment::new(),
            readings: Vec::new(),
            tally: Tally::default(),
            first_line: String::new(),
            code: false,
            block: None,
            notebook_lines: 0,
            last_line: 0,
            segments: 0,
        }
    }

    fn stream(&mut self, source: &mut dyn Read) -> io::Result<()> {
        let mut lines = Lines::new(source);
        lines.each(|line| {
            self.line(line);
        })?;
        self.tally.bytes = lines.bytes;
        self.tally.cut_lines = lines.cut;
        self.tally.unfinished_last_line = lines.unfinished;
        Ok(())
    }

    /// Reads one document, or several in sequence.
    fn documents(&mut self, text: &[u8]) -> Result<(), serde_json::Error> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        for document in json::documents(text)? {
            self.tally.lines += 1;
            if notebook::is_notebook(&document) {
                let read = self.notebook(&document);
                self.tally.recognized += u64::from(read);
                self.tally.passed_over += u64::from(!read);
            } else if self.document(&document, 1) == Outcome::Recognized {
                self.tally.recognized += 1;
            } else {
                self.tally.passed_over += 1;
            }
        }
        if self.first_line.is_empty() {
            let start = text.get(..text.len().min(80)).unwrap_or_default();
            self.first_line = String::from_utf8_lossy(start).split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        }
        Ok(())
    }

    /// Reads a document that spans several lines in a segment of its own, because the lines around it do not belong to
    /// it.
    fn document(&mut self, document: &Value, number: u64) -> Outcome {
        let mut segment = Segment::new();
        let outcome = segment.json(document, number);
        if outcome == Outcome::Recognized {
            self.split();
            self.segment = segment;
            self.split();
        }
        outcome
    }

    /// Reads the outputs of the cells of a Jupyter notebook as a log. Returns whether anything was recognized.
    fn notebook(&mut self, document: &Value) -> bool {
        let before = self.tally.recognized;
        for output in notebook::outputs(document) {
            let start = self.notebook_lines;
            let mut lines = Lines::new(output.as_bytes());
            let mut last = start;
            // Reading from memory cannot fail.
            let _ = lines.each(|line| {
                last = start + line.number;
                self.line(Line { number: last, ..line });
            });
            self.notebook_lines = last;
            self.segment.blank_line();
            self.block = None;
            self.code = false;
        }
        self.tally.recognized > before
    }

    /// Reads a line; returns whether a recognizer of a tool read it.
    pub(crate) fn line(&mut self, line: Line<'_>) -> bool {
        let trimmed = line.text.trim_ascii_start();
        // The empty part between `\r` and `\n` has the same line number and is not a blank line.
        let again = std::mem::replace(&mut self.last_line, line.number) == line.number;
        if trimmed.is_empty() {
            if !again {
                self.segment.blank_line();
            }
            return false;
        }
        self.tally.lines += 1;
        if self.first_line.is_empty() {
            self.first_line = trimmed.chars().take(80).collect();
        }
        let outcome = self.offer_line(line, trimmed);
        match outcome {
            Outcome::Recognized => self.tally.recognized += 1,
            Outcome::Settings => self.tally.noted += 1,
            Outcome::NotRecognized | Outcome::NewDocument => self.tally.passed_over += 1,
            Outcome::Unusable(reason) => {
                let entry = match self.tally.skipped.get_mut(reason) {
                    Some(entry) => entry,
                    None => self.tally.skipped.entry(reason.to_owned()).or_default(),
                };
                if entry.n == 0 {
                    entry.first_line = line.number;
                }
                entry.n += 1;
            }
        }
        self.block(line, outcome);
        outcome == Outcome::Recognized
    }

    /// Reads a line if it has the layout of the last one that was read, with the same result as [`Intake::line`].
    /// Returns whether it did.
    pub(crate) fn read_same_layout(&mut self, line: Line<'_>) -> bool {
        let plain = self.block.is_none() && !self.code;
        let read = plain && self.segment.read_same_layout(line);
        if read {
            self.last_line = line.number;
            self.tally.lines += 1;
            self.tally.recognized += 1;
        }
        read
    }

    /// Trigger word of the most recently read lines.
    pub(crate) fn trigger_word(&self) -> Option<&memchr::memmem::Finder<'static>> {
        self.segment.trigger_word()
    }

    /// Appends the observations since the last call to `out`.
    pub(crate) fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.segment.append_observations(out);
    }

    /// Offers a line to the current segment, or to a new one if it contradicts the current one.
    fn offer_line(&mut self, line: Line<'_>, trimmed: &str) -> Outcome {
        // A JSON document on one line must not be read as text: its strings may contain many lines, and its keys are
        // not settings.
        if let Some(outcome) = self.one_line_document(trimmed, line.number) {
            return outcome;
        }
        let outcome = match self.segment.line(line, self.code) {
            OfferResult::Done(outcome) => outcome,
            OfferResult::Contradicts if self.segments >= MAX_SEGMENTS => {
                Outcome::Unusable("a line that contradicts earlier lines, beyond the limit of 1024 documents")
            }
            OfferResult::Contradicts => {
                self.segments += 1;
                self.split();
                match self.segment.line(line, self.code) {
                    OfferResult::Done(outcome) => outcome,
                    OfferResult::Contradicts => Outcome::NotRecognized,
                }
            }
        };
        match outcome {
            Outcome::Recognized => {
                self.code = false;
                return outcome;
            }
            Outcome::Unusable(_) => {}
            Outcome::Settings | Outcome::NotRecognized | Outcome::NewDocument => {
                self.code = code::is_source_code(line.text, self.code)
            }
        }
        outcome
    }

    /// Offers a line that is a complete JSON document. Returns `None` if no recognizer reads it.
    fn one_line_document(&mut self, trimmed: &str, number: u64) -> Option<Outcome> {
        if !trimmed.starts_with("{\"") {
            return None;
        }
        let document = if trimmed.trim_ascii_end().ends_with('}') { json::json(trimmed.as_bytes()).ok() } else { None };
        let Some(document) = document else {
            let cut = trimmed.contains("\"cell_type\"") && trimmed.contains("\"outputs\"");
            return cut.then_some(Outcome::Unusable("a truncated notebook"));
        };
        if notebook::is_notebook(&document) {
            return Some(if self.notebook(&document) { Outcome::Recognized } else { Outcome::NotRecognized });
        }
        match self.segment.json(&document, number) {
            Outcome::NotRecognized => None,
            Outcome::NewDocument => {
                self.split();
                Some(self.segment.json(&document, number))
            }
            outcome => {
                self.code &= outcome != Outcome::Recognized;
                Some(outcome)
            }
        }
    }

    /// Collects JSON documents that span several lines of the log.
    fn block(&mut self, line: Line<'_>, outcome: Outcome) {
        match &mut self.block {
            None if Block::begins(line.text) && outcome == Outcome::NotRecognized => {
                self.block = Some(Block::new(line.number))
            }
            None => return,
            // A line that a recognizer reads is not part of a document.
            Some(_) if matches!(outcome, Outcome::Recognized) => {
                self.block = None;
                return;
            }
            Some(_) => {}
        }
        let Some(block) = &mut self.block else { return };
        match block.push(line.text, outcome == Outcome::NotRecognized) {
            Progress::Open => {}
            Progress::Broken => self.block = None,
            Progress::Complete => {
                let Some(block) = self.block.take() else { return };
                if let Ok(document) = json::json(block.text.as_bytes())
                    && self.document(&document, block.first_line) == Outcome::Recognized
                {
                    self.tally.passed_over = self.tally.passed_over.saturating_sub(block.passed_over);
                    self.tally.recognized += block.passed_over;
                }
            }
        }
    }

    /// Ends the current segment and starts a new one.
    fn split(&mut self) {
        let segment = std::mem::replace(&mut self.segment, Segment::new());
        for mut reading in segment.finish(&self.context) {
            if self.readings.len() >= MAX_READINGS {
                self.tally.dropped_readings += 1;
                continue;
            }
            plausibility::check(&mut reading);
            // `partition_point` with `>=` keeps readings of equal weight in the order of the file and of the table of
            // formats.
            let at = self.readings.partition_point(|known| known.importance >= reading.importance);
            self.readings.insert(at, reading);
        }
    }

    pub(crate) fn finish(mut self) -> Ingested {
        self.split();
        Ingested { file: self.context.name.clone(), readings: self.readings, tally: self.tally }
    }
}
