//! Telling when a file changed, however it was changed.
//!
//! Editors write in place, rename a new file over the old, or delete and create; deployment tools swap whole
//! directories or the symbolic links to them. Events of the kernel (inotify and its kin, through `notify`) say *when* to
//! look: never *what* happened, since between two events a watch may hang on a directory that has been moved away. What
//! happened is found by comparing the stamps of all watched files with those seen before, after every watch has been
//! set to what is there now. So nothing is lost between an event and a new watch, a burst of writes is one change, and
//! polling is the same thing with a clock in the place of the events.

mod file_system;
mod scan;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

pub use file_system::is_silent;
use scan::{DirectoryId, Snapshot};

/// A change is described once nothing has happened for so long …
const QUIET: Duration = Duration::from_millis(20);
/// … and at the latest so long after its first sign, also if somebody writes all the time.
const LATEST: Duration = Duration::from_millis(60);
/// How often to look where no events come. Network file systems cache attributes for seconds anyway.
const SILENT_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest interval that can be requested.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// How to notice changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchMode {
    /// By the kernel's events, and by looking every second as well where a file system does not send events for what
    /// other machines do, or where no watch can be set.
    #[default]
    Auto,
    /// By looking at every so much time only.
    Poll(Duration),
}

/// Why nothing can be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The system gives us no thread.
    #[error("cannot watch files: no thread to do it on: {0}")]
    Thread(#[from] std::io::Error),
}

/// Watches files and directories until it is dropped.
///
/// A directory means the files directly in it, including later ones, and the names of its
/// subdirectories; files that are hidden or that editors leave behind (`.x.swp`, `x~`) are not looked at. A path that
/// does not exist is watched for, and so are the targets of symbolic links.
#[derive(Debug)]
pub struct FileWatch {
    commands: Sender<Message>,
    polling: Arc<AtomicBool>,
    /// What is to run on a thread once it is started.
    waiting: Option<(Worker, Receiver<Message>)>,
}

enum Message {
    /// Something may have happened to these.
    Hint(Vec<PathBuf>),
    /// Watch these instead.
    Paths(Vec<PathBuf>, Snapshot),
    /// No watch works any more: events were lost or refused.
    Deaf,
    Stop,
}

impl FileWatch {
    /// Looks at `paths`. Once it is [started](FileWatch::start), calls `on_change` on a thread of its own with what has
    /// changed since this call, appeared or gone, spelled as in `paths`; so load the files after it, not before.
    #[must_use]
    pub fn new(paths: &[PathBuf], mode: WatchMode, on_change: impl Fn(Vec<PathBuf>) + Send + 'static) -> FileWatch {
        let (commands, messages) = channel();
        let polling = Arc::new(AtomicBool::new(matches!(mode, WatchMode::Poll(_))));
        let worker = Worker {
            paths: paths.to_vec(),
            seen: Snapshot::take(paths),
            mode,
            polling: Arc::clone(&polling),
            watcher: None,
            watched: Vec::new(),
            deaf: false,
            on_change: Box::new(on_change),
        };
        FileWatch { commands, polling, waiting: Some((worker, messages)) }
    }

    /// Starts the thread, where it does not run yet. It takes its time to set the watches, on a core of its own or not;
    /// so start it when nothing urgent is left to do.
    ///
    /// # Errors
    ///
    /// If no thread can be started. Missing file events are no error: files are then polled.
    pub fn start(&mut self) -> Result<(), WatchError> {
        let Some((mut worker, messages)) = self.waiting.take() else { return Ok(()) };
        let hints = self.commands.clone();
        thread::Builder::new().name("file watch".to_owned()).spawn(move || {
            if worker.mode == WatchMode::Auto {
                worker.watcher = Worker::listen(hints);
                worker.deaf = worker.watcher.is_none();
            }
            worker.run(&messages);
        })?;
        Ok(())
    }

    /// Watches other paths from now on. What both sets have in common is watched without a gap; of what is new, the
    /// changes after this call are described, so load it afterwards.
    pub fn set_paths(&self, paths: &[PathBuf]) {
        let _ = self.commands.send(Message::Paths(paths.to_vec(), Snapshot::take(paths)));
    }

    /// Whether files are looked at regularly, because that was requested or no events can be relied upon.
    #[must_use]
    pub fn is_polling(&self) -> bool {
        self.polling.load(Ordering::Relaxed)
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let _ = self.commands.send(Message::Stop);
    }
}

/// The thread behind a [`FileWatch`].
struct Worker {
    paths: Vec<PathBuf>,
    seen: Snapshot,
    mode: WatchMode,
    polling: Arc<AtomicBool>,
    watcher: Option<RecommendedWatcher>,
    /// The directories under watch, and which directory was meant by each when the watch was set.
    watched: Vec<(PathBuf, DirectoryId)>,
    /// Whether events cannot be relied upon.
    deaf: bool,
    on_change: Box<dyn Fn(Vec<PathBuf>) + Send>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("paths", &self.paths).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Worker {
    /// Subscribes to the kernel's events; `None` where it has none to give, as when its instances are used up.
    fn listen(hints: Sender<Message>) -> Option<RecommendedWatcher> {
        let tell = move |event: notify::Result<Event>| {
            let message = match event {
                // Reading is no change; our own reading would wake us.
                Ok(Event { kind: EventKind::Access(_), .. }) => return,
                Ok(event) => Message::Hint(event.paths),
                Err(_) => Message::Deaf,
            };
            let _ = hints.send(message);
        };
        notify::recommended_watcher(tell).ok()
    }

    fn run(&mut self, messages: &Receiver<Message>) {
        self.look(&[]);
        loop {
            let Some(first) = self.next(messages) else {
                self.look(&[]);
                continue;
            };
            let mut hinted = Vec::new();
            let mut due = self.take(first, &mut hinted);
            let latest = Instant::now() + LATEST;
            while due == Due::Soon {
                match messages.recv_timeout(QUIET.min(latest.saturating_duration_since(Instant::now()))) {
                    Ok(message) => due = due.max(self.take(message, &mut hinted)),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            match due {
                Due::Never => {}
                Due::Soon => self.look(&hinted),
                Due::Stop => return,
            }
        }
    }

    /// Waits for a message, or for the time to look without one; for ever where events come by themselves.
    fn next(&self, messages: &Receiver<Message>) -> Option<Message> {
        let interval = match self.mode {
            WatchMode::Poll(interval) => Some(interval.max(SHORTEST_INTERVAL)),
            WatchMode::Auto => self.polling.load(Ordering::Relaxed).then_some(SILENT_INTERVAL),
        };
        match interval {
            None => Some(messages.recv().unwrap_or(Message::Stop)),
            Some(interval) => match messages.recv_timeout(interval) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
            },
        }
    }

    fn take(&mut self, message: Message, hinted: &mut Vec<PathBuf>) -> Due {
        match message {
            Message::Stop => return Due::Stop,
            Message::Deaf => self.deaf = true,
            Message::Paths(paths, now) => {
                // What was seen before keeps its stamp, so that nothing is missed.
                self.seen = now.with_stamps_of(&self.seen, &self.paths);
                self.paths = paths;
            }
            // No path at all is how an overflow of the kernel's queue is reported.
            Message::Hint(paths) if paths.is_empty() => {}
            Message::Hint(paths) => {
                let ours: Vec<PathBuf> = paths.into_iter().filter(|path| self.concerns(path)).collect();
                if ours.is_empty() {
                    return Due::Never;
                }
                hinted.extend(ours);
            }
        }
        Due::Soon
    }

    /// Whether an event at `path` can mean anything for us: parents are watched too, and see the files of others.
    fn concerns(&self, path: &Path) -> bool {
        let on_the_way = |ours: &PathBuf| {
            let absolute = std::path::absolute(ours);
            let ours = absolute.as_deref().unwrap_or(ours);
            path.starts_with(ours) || ours.starts_with(path)
        };
        self.paths.iter().any(on_the_way) || self.seen.links_to(path)
    }

    /// Sets the watches to what is there now, compares, and tells.
    fn look(&mut self, hinted: &[PathBuf]) {
        // Something may come between setting a watch and looking behind it; then there is another event, or another
        // directory to watch, and the loop goes round again.
        let mut now = Snapshot::take(&self.paths);
        for _ in 0..4 {
            if !self.watch(now.directories()) {
                break;
            }
            now = Snapshot::take(&self.paths);
        }
        let silent = matches!(self.mode, WatchMode::Poll(_))
            || self.deaf
            || now.directories().iter().any(|(path, _)| is_silent(path));
        self.polling.store(silent, Ordering::Relaxed);
        let changed: BTreeSet<PathBuf> = now.changes_since(&self.seen, hinted);
        self.seen = now;
        if !changed.is_empty() {
            (self.on_change)(changed.into_iter().collect());
        }
    }

    /// Watches exactly these directories; whether anything had to be done for that.
    fn watch(&mut self, wanted: &[(PathBuf, DirectoryId)]) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let mut changed = false;
        self.watched.retain(|old| {
            let keep = wanted.contains(old);
            if !keep {
                changed = true;
                // It may have gone by itself, with its directory.
                let _ = watcher.unwatch(&old.0);
            }
            keep
        });
        for new in wanted {
            if self.watched.contains(new) {
                continue;
            }
            match watcher.watch(&new.0, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    changed = true;
                    self.watched.push(new.clone());
                }
                // Gone since we looked: its parent tells when it is back. Any other refusal leaves us deaf.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => changed = true,
                Err(_) => self.deaf = true,
            }
        }
        changed
    }
}

/// What a message calls for, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Never,
    Soon,
    Stop,
}

#[cfg(test)]
mod tests;
