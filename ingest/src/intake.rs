//! One file through all recognisers, once.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memmem;
use serde::Serialize;
use serde_json::Value;

use super::IngestError;
use super::json;
use super::lines::{Line, Lines, unpacked};
use super::reading::{Context, Reading};
use super::recogniser::{self, Outcome, Recogniser};

/// Largest JSON document that is read as a whole.
const LARGEST_DOCUMENT: u64 = 256 << 20;

/// What became of the lines of a file.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Tally {
    /// Bytes, unpacked.
    pub bytes: u64,
    /// Lines that are not blank; parts between carriage returns count each.
    pub lines: u64,
    /// Lines read, or documents where the file is JSON.
    pub recognised: u64,
    /// Lines that held configuration.
    pub noted: u64,
    /// Lines no format has a use for.
    pub passed_over: u64,
    /// Lines of a known format that cannot be used, by reason: how many, and the first.
    pub skipped: BTreeMap<String, Skipped>,
    /// Whether the last line has no end: the file may be cut there.
    pub unfinished_last_line: bool,
    /// Lines too long to be kept whole.
    pub cut_lines: u64,
}

/// Lines skipped for one reason.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Skipped {
    /// How many.
    pub n: u64,
    /// Number of the first.
    pub first_line: u64,
}

/// What a file gave.
#[derive(Debug, Clone, Default)]
pub struct Ingested {
    /// The file as the user named it.
    pub file: String,
    /// Readings, the leading one first.
    pub readings: Vec<Reading>,
    /// What became of the lines.
    pub tally: Tally,
}

impl Context {
    /// A number that the file's name gives behind a short name: `tp4` in `run_dp1_tp4_pp8.log`.
    #[must_use]
    pub fn hint(&self, short: &str) -> Option<f64> {
        let name = self.name.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
        name.split(['_', '-', '.']).find_map(|part| {
            let digits = part.strip_prefix(short)?;
            (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
        })
    }
}

/// Reads everything there is to read in `source`.
///
/// # Errors
///
/// The source cannot be read, or holds no known format: then the message says what stands there and what is expected.
pub fn ingest(source: impl Read, context: &Context) -> Result<Ingested, IngestError> {
    let failed = |source: io::Error| IngestError::Read { file: context.name.clone(), source };
    from_text(unpacked(source).map_err(failed)?, context)
}

fn from_text(mut source: Box<dyn BufRead + '_>, context: &Context) -> Result<Ingested, IngestError> {
    let failed = |source: io::Error| IngestError::Read { file: context.name.clone(), source };
    let mut intake = Intake::new();
    let head = source.fill_buf().map_err(failed)?;
    if let Some((packed, unpack)) = packed(head) {
        let name = &context.name;
        let told = format!("{name}: packed by {packed}: expected text or gzip: {unpack} {name} | atlas ingest -");
        return Err(IngestError::Unknown(told));
    }
    let looks_like_json = looks_like_document(head);
    let mut complaint = None;
    if looks_like_json {
        let mut first = Vec::new();
        let mut limited = source.by_ref().take(LARGEST_DOCUMENT);
        io::BufRead::read_until(&mut limited, b'\n', &mut first).map_err(failed)?;
        if !json::json(&first).is_ok_and(|document| document.is_object()) {
            // Not an object a line: the whole is a document, or several one behind the other.
            let mut limited = source.by_ref().take(LARGEST_DOCUMENT);
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
    let ingested = intake.finish(context);
    if ingested.readings.is_empty() {
        return Err(IngestError::Unknown(unknown(context, &ingested.tally, &first_line, complaint)));
    }
    Ok(ingested)
}

/// What packed a file, and what unpacks it, by its first bytes.
fn packed(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let known: [(&[u8], &str, &str); 4] = [
        (b"\x28\xb5\x2f\xfd", "Zstandard", "zstd -dc"),
        (b"\xfd7zXZ\0", "xz", "xz -dc"),
        (b"BZh", "bzip2", "bzip2 -dc"),
        (b"PK\x03\x04", "zip", "unzip -p"),
    ];
    known.into_iter().find(|(magic, ..)| head.starts_with(magic)).map(|(_, name, unpack)| (name, unpack))
}

/// What to say where nothing was recognised.
fn unknown(context: &Context, tally: &Tally, first_line: &str, complaint: Option<String>) -> String {
    let name = &context.name;
    if tally.bytes == 0 {
        return format!("{name}: empty: expected a log of a training, serving, network or power tool");
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
        out += "; it is binary";
    } else if !shown.is_empty() {
        out += &format!("; it begins with \"{shown}\"");
    }
    out + "; expected step lines, results, or samples of a tool that `atlas ingest --formats` lists"
}

/// Whether bytes begin as a JSON object or an array of them does.
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

/// The recognisers at work.
struct Intake {
    recognisers: Vec<Box<dyn Recogniser>>,
    words: Option<AhoCorasick>,
    /// Which recogniser a word belongs to.
    owners: Vec<usize>,
    /// Who read the last line, and the first word of its lines: the next is likely to be one of its own.
    hot: usize,
    hot_word: Option<memmem::Finder<'static>>,
    /// Whether that was a row of a table, which shows no word.
    hot_table: bool,
    /// Which recognisers are in the middle of a table or block.
    open: u64,
    tally: Tally,
    first_line: String,
}

impl Intake {
    fn new() -> Intake {
        let recognisers = recogniser::all();
        let words = recognisers.iter().enumerate();
        let words: Vec<(usize, &str)> = words
            .flat_map(|(owner, recogniser)| recogniser.triggers().iter().map(move |word| (owner, *word)))
            .collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words.iter().map(|(_, word)| word))
            .ok();
        Intake {
            owners: words.into_iter().map(|(owner, _)| owner).collect(),
            recognisers,
            words: automaton,
            hot: usize::MAX,
            hot_word: None,
            hot_table: false,
            open: 0,
            tally: Tally::default(),
            first_line: String::new(),
        }
    }

    fn stream(&mut self, source: &mut dyn Read) -> io::Result<()> {
        let mut lines = Lines::new(source);
        lines.each(|line| self.line(line))?;
        self.tally.bytes = lines.bytes;
        self.tally.cut_lines = lines.cut;
        self.tally.unfinished_last_line = lines.unfinished;
        Ok(())
    }

    /// One document, or several one behind the other.
    fn documents(&mut self, text: &[u8]) -> Result<(), serde_json::Error> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let parsed = match json::json(text) {
            Ok(document) => vec![document],
            Err(error) => {
                let several: Result<Vec<Value>, _> =
                    serde_json::Deserializer::from_slice(text).into_iter::<Value>().collect();
                several.map_err(|_| error)?
            }
        };
        for document in parsed {
            self.tally.lines += 1;
            match self.json(&document, 1) {
                Outcome::Took => self.tally.recognised += 1,
                _ => self.tally.passed_over += 1,
            }
        }
        if self.first_line.is_empty() {
            let start = text.get(..text.len().min(80)).unwrap_or_default();
            self.first_line = String::from_utf8_lossy(start).split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        }
        Ok(())
    }

    fn json(&mut self, document: &Value, line: u64) -> Outcome {
        let outcomes = self.recognisers.iter_mut().map(|recogniser| recogniser.json(document, line));
        outcomes.into_iter().find(|outcome| *outcome != Outcome::No).unwrap_or(Outcome::No)
    }

    fn line(&mut self, line: Line<'_>) {
        let trimmed = line.text.trim_ascii_start();
        if trimmed.is_empty() {
            return;
        }
        self.tally.lines += 1;
        if self.first_line.is_empty() {
            self.first_line = trimmed.chars().take(80).collect();
        }
        match self.offered(line, trimmed) {
            Outcome::Took => self.tally.recognised += 1,
            Outcome::Noted => self.tally.noted += 1,
            Outcome::No => self.tally.passed_over += 1,
            Outcome::Skipped(reason) => {
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
    }

    /// Offers a line to whom it may concern, until one has read it.
    fn offered(&mut self, line: Line<'_>, trimmed: &str) -> Outcome {
        let hot = self.hot;
        let mut wanted = self.open;
        let mut noted = false;
        let offered =
            self.hot_table || self.hot_word.as_ref().is_some_and(|word| word.find(line.text.as_bytes()).is_some());
        if offered {
            match self.give(hot, line) {
                outcome @ (Outcome::Took | Outcome::Skipped(_)) => return outcome,
                outcome => noted = outcome == Outcome::Noted,
            }
        }
        if let Some(words) = &self.words {
            for found in words.find_overlapping_iter(line.text) {
                if let Some(owner) = self.owners.get(found.pattern().as_usize()) {
                    wanted |= 1 << owner;
                }
            }
        }
        if offered {
            wanted &= !(1 << hot);
        }
        let mut reason = None;
        while wanted != 0 {
            let index = wanted.trailing_zeros() as usize;
            wanted &= wanted - 1;
            match self.give(index, line) {
                Outcome::Took => {
                    let recogniser = self.recognisers.get(index);
                    self.hot_table = recogniser.is_some_and(|recogniser| recogniser.table());
                    if self.hot != index {
                        let word = recogniser.and_then(|recogniser| recogniser.triggers().first());
                        (self.hot, self.hot_word) = (index, word.map(memmem::Finder::new));
                    }
                    return Outcome::Took;
                }
                Outcome::Noted => noted = true,
                Outcome::Skipped(why) => reason = reason.or(Some(why)),
                Outcome::No => {}
            }
        }
        if trimmed.starts_with("{\"")
            && trimmed.trim_ascii_end().ends_with('}')
            && let Ok(document) = json::json(trimmed.as_bytes())
        {
            match self.json(&document, line.number) {
                Outcome::No => {}
                outcome => return outcome,
            }
        }
        match reason {
            Some(reason) => Outcome::Skipped(reason),
            None if noted => Outcome::Noted,
            None => Outcome::No,
        }
    }

    /// Gives a line to one recogniser.
    fn give(&mut self, index: usize, line: Line<'_>) -> Outcome {
        let Some(recogniser) = self.recognisers.get_mut(index) else { return Outcome::No };
        let outcome = recogniser.line(line);
        self.open = self.open & !(1 << index) | u64::from(recogniser.open()) << index;
        outcome
    }

    fn finish(self, context: &Context) -> Ingested {
        let mut context = context.clone();
        for found in self.recognisers.iter().filter_map(|recogniser| recogniser.settings()) {
            context.settings.merge(&found);
        }
        let mut readings: Vec<Reading> = Vec::new();
        for reading in self.recognisers.into_iter().flat_map(|recogniser| recogniser.finish(&context)) {
            // Among equals the order of the table of formats holds.
            let at = readings.partition_point(|known| known.weight >= reading.weight);
            readings.insert(at, reading);
        }
        Ingested { file: context.name, readings, tally: self.tally }
    }
}
