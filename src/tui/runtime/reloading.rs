//! Reads changed files on a thread, so that large or slow files never delay the response to a key press.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::theme::color::ColorDepth;
use crate::tui::Options;
use crate::tui::message::Message;
use crate::tui::runtime::loading::reload;
use crate::tui::runtime::terminal;
use crate::tui::runtime::wait::Waker;
use atlas_config::library::Library;

/// How long a frame waits for files being read, so that small ones show in the frame of the key that requested them.
const FRAME_WAIT: Duration = Duration::from_millis(5);

/// The result of reading.
pub(in crate::tui) struct Loaded {
    /// The new content; `None` if reading failed.
    pub(in crate::tui) library: Option<Arc<Library>>,
    /// Messages for the application, in order.
    pub(in crate::tui) messages: Vec<Message>,
}

/// A request in progress.
struct Request {
    /// Message to deliver after the new content, such as the report of the write that caused it.
    then: Vec<Message>,
    /// Whether files changed again meanwhile.
    again: bool,
    /// Deadline until which the next frame waits.
    grace: Instant,
}

type Answer = Result<(Arc<Library>, Message), String>;

/// Reads the files, one request at a time; requests that arrive meanwhile are merged into one.
pub(in crate::tui) struct Reloader {
    options: Arc<Options>,
    depth: ColorDepth,
    waker: Waker,
    sender: Sender<Answer>,
    receiver: Receiver<Answer>,
    running: Option<Request>,
    waiting: Vec<Message>,
}

impl Reloader {
    /// Creates a reader that has not read anything yet. `waker` wakes the thread that receives the answers.
    pub(in crate::tui) fn new(options: &Arc<Options>, depth: ColorDepth, waker: Waker) -> Reloader {
        let (sender, receiver) = channel();
        let options = Arc::clone(options);
        Reloader { options, depth, waker, sender, receiver, running: None, waiting: Vec::new() }
    }

    /// Reads everything again, reusing unchanged content; `then` is delivered afterwards.
    pub(in crate::tui) fn start(&mut self, before: &Arc<Library>, then: Option<Message>) {
        self.waiting.extend(then);
        if let Some(running) = &mut self.running {
            running.again = true;
            return;
        }
        let (options, depth, before) = (Arc::clone(&self.options), self.depth, Arc::clone(before));
        let (sender, waker) = (self.sender.clone(), self.waker.clone());
        let work = move || {
            let answer = catch_unwind(AssertUnwindSafe(|| reload(&options, depth, &before)));
            let answer = answer.map_err(|_| {
                let panic = terminal::background_panic().unwrap_or_default();
                format!("internal error while reading files (please report): {panic}")
            });
            if sender.send(answer).is_ok() {
                waker.wake();
            }
        };
        if let Err(error) = thread::Builder::new().name("reload".to_owned()).spawn(work) {
            let _ = self.sender.send(Err(format!("cannot reload files: cannot start a thread: {error}")));
            self.waker.wake();
        }
        let grace = Instant::now() + FRAME_WAIT;
        self.running = Some(Request { then: std::mem::take(&mut self.waiting), again: false, grace });
    }

    /// The content that was read, if any.
    pub(in crate::tui) fn loaded(&mut self) -> Option<Loaded> {
        let answer = self.receiver.try_recv().ok()?;
        self.finish(answer)
    }

    /// Like [`Reloader::loaded`], but waits briefly for a request made just now.
    pub(in crate::tui) fn wait_briefly(&mut self) -> Option<Loaded> {
        let left = self.running.as_ref()?.grace.saturating_duration_since(Instant::now());
        let answer = self.receiver.recv_timeout(left).ok()?;
        self.finish(answer)
    }

    fn finish(&mut self, answer: Answer) -> Option<Loaded> {
        let Request { then, again, .. } = self.running.take()?;
        let (library, first) = match answer {
            Ok((library, message)) => (Some(library), message),
            Err(why) => (None, Message::Failed(why)),
        };
        if let Some(library) = library.as_ref().filter(|_| again) {
            self.start(library, None);
        }
        Some(Loaded { library, messages: std::iter::once(first).chain(then).collect() })
    }
}

/// Drops a library on a thread, because dropping a large one takes a while.
pub(in crate::tui) fn drop_in_background(library: Arc<Library>) {
    // If no thread can be started, the library is dropped here.
    let _ = thread::Builder::new().name("free".to_owned()).spawn(move || drop(library));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tui::runtime::wait::Waiter;
    use atlas_document::Sources;

    fn wait(reloading: &mut Reloader) -> Loaded {
        let began = Instant::now();
        loop {
            if let Some(loaded) = reloading.loaded() {
                return loaded;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "nothing is read");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn texts(loaded: &Loaded) -> Vec<String> {
        let text = |message: &Message| match message {
            Message::Reloaded(..) => "reloaded".to_owned(),
            Message::Done(text) => text.clone(),
            other => format!("{other:?}"),
        };
        loaded.messages.iter().map(text).collect()
    }

    #[test]
    fn reload_requests_during_a_reload_coalesce_and_keep_their_messages() {
        let waiter = Waiter::new(tempfile::tempfile().unwrap()).unwrap();
        let options = Arc::new(Options { sources: Sources::built_in(), ..Options::default() });
        let before = Arc::new(Library::load(&options.sources, None));
        let mut reloading = Reloader::new(&options, ColorDepth::Ansi16, waiter.waker());
        assert!(reloading.loaded().is_none() && reloading.wait_briefly().is_none());
        let done = |text: &str| Some(Message::Done(text.to_owned()));
        reloading.start(&before, done("a"));
        reloading.start(&before, done("b"));
        reloading.start(&before, done("c"));
        let first = wait(&mut reloading);
        assert!(first.library.is_some());
        assert_eq!(texts(&first), ["reloaded", "a"]);
        assert_eq!(texts(&wait(&mut reloading)), ["reloaded", "b", "c"]);
        assert!(reloading.running.is_none());
    }
}
