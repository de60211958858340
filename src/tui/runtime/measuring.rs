//! Reads measurements on a thread, so that large logs do not delay the first frame.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::tui::Options;
use crate::tui::message::Message;
use crate::tui::runtime::wait::Waker;
use atlas_evidence::calibrate::sources::LabeledSource;
use atlas_ingest::{Warmup, files_below};

/// Directory, relative to the working directory, that is read if no measurements are given.
const FOLDER: &str = "measurements";

/// Path, size and modification time of every file that was read.
type FileStates = Vec<(PathBuf, u64, Option<SystemTime>)>;

/// Reads all measurements synchronously, for use without an event loop.
pub(in crate::tui) fn read_now(options: &Options) -> Message {
    let (named, mut problems) = named(options);
    let mut rows = Vec::new();
    for one in named.iter().filter(|one| exists(one)) {
        let found = one.read(Warmup::default());
        rows.extend(found.rows);
        problems.extend(found.problems);
    }
    Message::Measured(Arc::new(rows), problems)
}

/// The files given by flags, else the default directory, and the errors of invalid flags.
fn named(options: &Options) -> (Vec<LabeledSource>, Vec<String>) {
    let (mut named, mut problems) = (Vec::new(), Vec::new());
    for argument in &options.measured {
        LabeledSource::parse(argument).map(|one| named.push(one)).unwrap_or_else(|problem| problems.push(problem));
    }
    if options.measured.is_empty() && options.sources.working_dir {
        named.push(LabeledSource { path: PathBuf::from(FOLDER), labels: Vec::new() });
    }
    (named, problems)
}

/// Whether the path was given by the user, or is the default directory and exists.
fn exists(one: &LabeledSource) -> bool {
    one.path.as_os_str() != FOLDER || one.path.is_dir()
}

/// Reads measurements on a separate thread, again whenever they change.
pub(in crate::tui) struct MeasurementReader {
    named: Vec<LabeledSource>,
    problems: Vec<String>,
    seen: Arc<Mutex<Option<FileStates>>>,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    waker: Waker,
}

impl MeasurementReader {
    /// Creates a reader of the files given by flags, else of the default directory.
    pub(in crate::tui) fn new(options: &Options, waker: Waker) -> MeasurementReader {
        let (sender, receiver) = channel();
        let (named, problems) = named(options);
        MeasurementReader { named, problems, seen: Arc::default(), sender, receiver, waker }
    }

    /// Paths to watch for changes.
    pub(in crate::tui) fn watched(options: &Options) -> Vec<PathBuf> {
        if options.measured.is_empty() {
            return if options.sources.working_dir { vec![PathBuf::from(FOLDER)] } else { Vec::new() };
        }
        options
            .measured
            .iter()
            .filter_map(|argument| LabeledSource::parse(argument).ok())
            .map(|named| named.path)
            .collect()
    }

    /// Reads the measurements on a thread if they have changed since the last time, and then wakes the event loop.
    pub(in crate::tui) fn read(&self) {
        let named = self.named.clone();
        let mut problems = self.problems.clone();
        let (seen, sender, waker) = (Arc::clone(&self.seen), self.sender.clone(), self.waker.clone());
        let named: Vec<LabeledSource> = named.into_iter().filter(exists).collect();
        if named.is_empty() && problems.is_empty() && seen.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return;
        }
        std::thread::spawn(move || {
            let now: FileStates = named.iter().flat_map(file_states).collect();
            // A thread that panicked while it held the lock has stored nothing: `seen` is set after all files are read.
            let mut before = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if before.as_ref() == Some(&now) {
                return;
            }
            let mut rows = Vec::new();
            for one in &named {
                let found = one.read(Warmup::default());
                rows.extend(found.rows);
                problems.extend(found.problems);
            }
            *before = Some(now);
            drop(before);
            if sender.send(Message::Measured(Arc::new(rows), problems)).is_ok() {
                waker.wake();
            }
        });
    }

    /// Results that have arrived since the last call.
    pub(in crate::tui) fn done(&self) -> impl Iterator<Item = Message> {
        self.receiver.try_iter()
    }
}

/// Path, size and modification time of the files at a path.
fn file_states(named: &LabeledSource) -> FileStates {
    let files = files_below(&named.path).unwrap_or_default();
    let of = |path: PathBuf| {
        let meta = std::fs::metadata(&path).ok();
        let len = meta.as_ref().map_or(0, std::fs::Metadata::len);
        (path, len, meta.and_then(|meta| meta.modified().ok()))
    };
    files.into_iter().map(of).collect()
}
