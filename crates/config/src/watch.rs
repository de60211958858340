//! Detects changes of files, however they are made.
//!
//! Editors write in place, rename a new file over the old one, or delete and create; deployment tools swap whole
//! directories or the symbolic links to them. Kernel events (inotify and similar, through `notify`) only determine
//! *when* to look, not *what* happened, since a watch can be on a directory that has been moved away. Changes are found
//! by comparing the stamps of all watched files with the previous ones, after all watches have been renewed. Thus no
//! change is lost between an event and a new watch, a burst of writes is one change, and polling is the same procedure
//! with a timer instead of events.

mod file_system;
mod scan;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

pub use file_system::needs_polling;
use scan::{DirectoryId, Snapshot};

/// Changes are reported once there have been no events for this time …
const DEBOUNCE: Duration = Duration::from_millis(20);
/// … or at the latest this long after the first event, even if writes continue.
const MAX_DEBOUNCE: Duration = Duration::from_millis(60);
/// Polling interval without events. Network file systems cache attributes for seconds anyway.
const NETWORK_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum polling interval.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Method of detecting changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchMode {
    /// Kernel events; polling every second where the file system does not report changes by other machines, or where no
    /// watch can be set.
    #[default]
    Auto,
    /// Polling at this interval.
    Poll(Duration),
}

/// Error of starting a watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The thread could not be started.
    #[error("cannot watch files: cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// Watches files and directories until it is dropped.
///
/// A directory includes the files directly in it, also later ones, and the names of its subdirectories. Hidden files
/// and temporary files of editors (`.x.swp`, `x~`) are ignored. Paths that do not exist yet, and the targets of
/// symbolic links, are watched too.
#[derive(Debug)]
pub struct FileWatch {
    commands: Sender<Message>,
    /// State for the thread, until it is started.
    waiting: Option<(Worker, Receiver<Message>)>,
}

enum Message {
    /// These paths may have changed.
    Hint(Vec<PathBuf>),
    /// Replaces the watched paths.
    Paths(Vec<PathBuf>, Snapshot),
    /// Events were lost, or watches refused.
    WatchFailed,
    Stop,
}

impl FileWatch {
    /// Takes stamps of `paths`. Once [started](FileWatch::start), calls `on_change` on a separate thread with the paths
    /// that changed, appeared or disappeared since this call, spelled as in `paths`. Load the files after this call,
    /// not before.
    #[must_use]
    pub fn new(paths: &[PathBuf], mode: WatchMode, on_change: impl Fn(Vec<PathBuf>) + Send + 'static) -> FileWatch {
        let (commands, messages) = channel();
        let worker = Worker {
            paths: paths.to_vec(),
            seen: Snapshot::take(paths),
            mode,
            polling: false,
            watcher: None,
            watched: Vec::new(),
            without_events: false,
            on_change: Box::new(on_change),
        };
        FileWatch { commands, waiting: Some((worker, messages)) }
    }

    /// Starts the thread, unless it is running. Setting the watches uses CPU time, so start it when no urgent work is
    /// left.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started. Without file events, files are polled; this is not an error.
    pub fn start(&mut self) -> Result<(), WatchError> {
        let Some((mut worker, messages)) = self.waiting.take() else { return Ok(()) };
        let hints = self.commands.clone();
        thread::Builder::new().name("file watch".to_owned()).spawn(move || {
            if worker.mode == WatchMode::Auto {
                worker.watcher = Worker::listen(hints);
                worker.without_events = worker.watcher.is_none();
            }
            worker.run(&messages);
        })?;
        Ok(())
    }

    /// Replaces the watched paths. Paths in both sets are watched without interruption. For new paths, only changes
    /// after this call are reported, so load them afterwards.
    pub fn set_paths(&self, paths: &[PathBuf]) {
        let _ = self.commands.send(Message::Paths(paths.to_vec(), Snapshot::take(paths)));
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let _ = self.commands.send(Message::Stop);
    }
}

/// State of the thread of a [`FileWatch`].
struct Worker {
    paths: Vec<PathBuf>,
    seen: Snapshot,
    mode: WatchMode,
    /// Whether files are polled because events are unreliable.
    polling: bool,
    watcher: Option<RecommendedWatcher>,
    /// Watched directories, with their identity at the time when the watch was set.
    watched: Vec<(PathBuf, DirectoryId)>,
    /// Whether events are unreliable.
    without_events: bool,
    on_change: Box<dyn Fn(Vec<PathBuf>) + Send>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("paths", &self.paths).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Worker {
    /// Subscribes to kernel events; `None` if that fails, for example when all inotify instances are in use.
    fn listen(hints: Sender<Message>) -> Option<RecommendedWatcher> {
        let send = move |event: notify::Result<Event>| {
            let message = match event {
                // Ignores reads, since reading the files would cause events.
                Ok(Event { kind: EventKind::Access(_), .. }) => return,
                Ok(event) => Message::Hint(event.paths),
                Err(_) => Message::WatchFailed,
            };
            let _ = hints.send(message);
        };
        notify::recommended_watcher(send).ok()
    }

    fn run(&mut self, messages: &Receiver<Message>) {
        self.rescan(&[]);
        loop {
            let Some(first) = self.next(messages) else {
                self.rescan(&[]);
                continue;
            };
            let mut hinted = Vec::new();
            let mut due = self.take(first, &mut hinted);
            let latest = Instant::now() + MAX_DEBOUNCE;
            while due == NextAction::Soon {
                match messages.recv_timeout(DEBOUNCE.min(latest.saturating_duration_since(Instant::now()))) {
                    Ok(message) => due = due.max(self.take(message, &mut hinted)),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            match due {
                NextAction::Never => {}
                NextAction::Soon => self.rescan(&hinted),
                NextAction::Stop => return,
            }
        }
    }

    /// Waits for a message or, if polling, until the next poll (`None`).
    fn next(&self, messages: &Receiver<Message>) -> Option<Message> {
        let interval = match self.mode {
            WatchMode::Poll(interval) => Some(interval.max(MIN_POLL_INTERVAL)),
            WatchMode::Auto => self.polling.then_some(NETWORK_POLL_INTERVAL),
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

    fn take(&mut self, message: Message, hinted: &mut Vec<PathBuf>) -> NextAction {
        match message {
            Message::Stop => return NextAction::Stop,
            Message::WatchFailed => self.without_events = true,
            Message::Paths(paths, now) => {
                // Known paths keep their stamps, so that no change is lost.
                self.seen = now.with_stamps_of(&self.seen, &self.paths);
                self.paths = paths;
            }
            // An event without paths reports an overflow of the kernel's queue.
            Message::Hint(paths) if paths.is_empty() => {}
            Message::Hint(paths) => {
                let ours: Vec<PathBuf> = paths.into_iter().filter(|path| self.is_relevant(path)).collect();
                if ours.is_empty() {
                    return NextAction::Never;
                }
                hinted.extend(ours);
            }
        }
        NextAction::Soon
    }

    /// Whether an event at `path` is relevant. Parent directories are watched too, and report unrelated files.
    fn is_relevant(&self, path: &Path) -> bool {
        let on_the_way = |ours: &PathBuf| {
            let absolute = std::path::absolute(ours);
            let ours = absolute.as_deref().unwrap_or(ours);
            path.starts_with(ours) || ours.starts_with(path)
        };
        self.paths.iter().any(on_the_way) || self.seen.links_to(path)
    }

    /// Renews the watches, compares the stamps and reports changes.
    fn rescan(&mut self, hinted: &[PathBuf]) {
        // A change between setting a watch and taking stamps causes another event or another directory to watch, in
        // which case the loop repeats.
        let mut now = Snapshot::take(&self.paths);
        for _ in 0..4 {
            if !self.watch(now.directories()) {
                break;
            }
            now = Snapshot::take(&self.paths);
        }
        self.polling = self.without_events || now.directories().iter().any(|(path, _)| needs_polling(path));
        let changed: BTreeSet<PathBuf> = now.changes_since(&self.seen, hinted);
        self.seen = now;
        if !changed.is_empty() {
            (self.on_change)(changed.into_iter().collect());
        }
    }

    /// Watches exactly the directories `wanted`; returns whether watches changed.
    fn watch(&mut self, wanted: &[(PathBuf, DirectoryId)]) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let mut changed = false;
        self.watched.retain(|old| {
            let keep = wanted.contains(old);
            if !keep {
                changed = true;
                // The watch may have been removed together with its directory.
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
                // If the directory was removed meanwhile, the watch of its parent reports its return. Other errors mean
                // no events.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => changed = true,
                Err(_) => self.without_events = true,
            }
        }
        changed
    }
}

/// Action required after a message, in increasing priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NextAction {
    Never,
    Soon,
    Stop,
}

#[cfg(test)]
mod tests;
