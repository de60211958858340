//! `atlas run --batch`: reads JSON Lines and writes an answer per line in order, in constant memory.
//!
//! One thread reads the input and cuts it into chunks of whole lines. Workers receive the chunks in turn, and the main
//! thread writes their answers in the same order. A chunk is what one read returned, so a program that writes a line
//! and waits for the answer gets it immediately.

mod answer;
mod line;
mod memo;
mod parts;

use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use color_eyre::eyre::eyre;

use self::answer::Worker;
use self::parts::Context;
use super::args::{Globals, KnobArgs};
use super::pick;
use super::progress::Progress;

/// Size of one read, bytes: large enough to keep a worker busy, small enough to distribute evenly.
const READ_BYTES: usize = 128 * 1024;
/// Maximum length of a line, bytes.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum pending chunks per worker.
const MAX_PENDING_CHUNKS: usize = 2;

/// A chunk of the input.
enum Chunk {
    /// Whole lines; `first` is the number of the first one, from 1.
    Lines { first: u64, bytes: Vec<u8> },
    /// A line that is too long.
    Overlong { number: u64 },
    /// Reading the input failed.
    Broken(io::Error),
}

/// Answers to a chunk, and the length of the chunk.
struct Answers {
    bytes: Vec<u8>,
    read: usize,
    broken: Option<io::Error>,
}

/// Options for answering lines.
pub struct Options {
    /// Knobs of the command line, which the knobs of a line override.
    pub knobs: KnobArgs,
    /// Optimize every line under this p99 latency.
    pub sla_p99_ms: Option<f64>,
    /// Add the measured rows behind each throughput.
    pub evidence: bool,
}

/// Answers every line of `input` (`-`: stdin).
pub fn run(input: &Path, options: Options, globals: &Globals) -> color_eyre::Result<()> {
    options.knobs.check()?;
    let (source, length) = open(input)?;
    let context = Arc::new(Context::new(pick::library(globals), options));
    let workers = atlas_core::cores::available().clamp(1, 16);
    let mut inputs = Vec::with_capacity(workers);
    let mut outputs = Vec::with_capacity(workers);
    let mut threads: Vec<JoinHandle<()>> = Vec::with_capacity(workers);
    for _ in 0..workers {
        let (input, chunks) = sync_channel(MAX_PENDING_CHUNKS);
        let (answers, output) = sync_channel(MAX_PENDING_CHUNKS);
        let context = Arc::clone(&context);
        threads.push(std::thread::spawn(move || work(Worker::new(context), &chunks, &answers)));
        inputs.push(input);
        outputs.push(output);
    }
    // Not joined: if the output fails, this thread may still wait for input. It ends with the process.
    std::thread::spawn(move || ChunkReader { senders: inputs, turn: 0, line: 1 }.read(source));
    let written = write(&outputs, length);
    if written.is_ok() && threads.into_iter().any(|thread| thread.join().is_err()) {
        return Err(eyre!("internal error: a worker stopped; the answers are incomplete"));
    }
    written
}

fn open(input: &Path) -> color_eyre::Result<(Box<dyn Read + Send>, Option<u64>)> {
    if input == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let file = std::fs::File::open(input).map_err(|error| eyre!("cannot read {}: {error}", input.display()))?;
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len());
    Ok((Box::new(file), length))
}

fn work(mut worker: Worker, chunks: &Receiver<Chunk>, answers: &SyncSender<Answers>) {
    for chunk in chunks {
        let mut out = Answers { bytes: Vec::with_capacity(READ_BYTES), read: 0, broken: None };
        match chunk {
            Chunk::Lines { first, bytes } => {
                for (number, line) in (first..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
                    worker.answer(line, number, &mut out.bytes);
                }
                out.read = bytes.len();
            }
            Chunk::Overlong { number } => answer::write_line_too_long(number, MAX_LINE_BYTES, &mut out.bytes),
            Chunk::Broken(error) => out.broken = Some(error),
        }
        // The receiver is gone if the output failed.
        if answers.send(out).is_err() {
            return;
        }
    }
}

/// Writes the answers in turn. The first closed channel in this order marks the end of the input.
fn write(outputs: &[Receiver<Answers>], length: Option<u64>) -> color_eyre::Result<()> {
    let mut stdout = io::stdout().lock();
    let template = match length {
        Some(_) => "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
        None => "{spinner} {bytes}, {bytes_per_sec}",
    };
    let mut progress = Progress::new(length, template, !stdout.is_terminal());
    for output in outputs.iter().cycle() {
        let Ok(answers) = output.recv() else { break };
        stdout.write_all(&answers.bytes)?;
        stdout.flush()?;
        progress.advance(answers.read as u64);
        if let Some(error) = answers.broken {
            return Err(eyre!("cannot read the input: {error}"));
        }
    }
    Ok(())
}

/// Cuts the input into chunks of whole lines and distributes them to the workers in turn.
struct ChunkReader {
    senders: Vec<SyncSender<Chunk>>,
    turn: usize,
    line: u64,
}

impl ChunkReader {
    fn read(mut self, mut source: Box<dyn Read + Send>) {
        let mut pending: Vec<u8> = Vec::with_capacity(READ_BYTES);
        let mut block = vec![0; READ_BYTES];
        // Whether the rest of a line that is too long is being skipped.
        let mut skipping = false;
        loop {
            let read = match source.read(&mut block) {
                Ok(0) => break,
                Ok(read) => block.get(..read).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.send(Chunk::Broken(error));
                    return;
                }
            };
            let mut rest = read;
            if skipping {
                let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { continue };
                rest = rest.get(end + 1..).unwrap_or_default();
                skipping = false;
            }
            if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
                let (lines, tail) = rest.split_at(end + 1);
                pending.extend_from_slice(lines);
                let bytes = std::mem::replace(&mut pending, Vec::with_capacity(READ_BYTES));
                if !self.send_lines(bytes) {
                    return;
                }
                rest = tail;
            }
            pending.extend_from_slice(rest);
            if pending.len() > MAX_LINE_BYTES {
                pending = Vec::with_capacity(READ_BYTES);
                skipping = true;
                let number = self.line;
                self.line += 1;
                if !self.send(Chunk::Overlong { number }) {
                    return;
                }
            }
        }
        if !pending.is_empty() {
            self.send_lines(pending);
        }
    }

    fn send_lines(&mut self, bytes: Vec<u8>) -> bool {
        let first = self.line;
        self.line += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.send(Chunk::Lines { first, bytes })
    }

    /// Sends a chunk to the next worker; returns `false` if its receiver is gone.
    fn send(&mut self, chunk: Chunk) -> bool {
        let sent = self.senders.get(self.turn).is_some_and(|sender| sender.send(chunk).is_ok());
        self.turn = (self.turn + 1) % self.senders.len().max(1);
        sent
    }
}
