//! A single wait for all event sources.
//!
//! Keys, signals, changed files and finished computations are awaited by one `poll(2)`: the terminal is one descriptor,
//! and everything else writes a byte into a socket pair. There is no tick and no input thread, so an idle program is
//! never woken, and a closed terminal is detected instead of being read forever.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::SigId;
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGBUS, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

use crate::tui::input::decoder::Input;

/// Maximum bytes read before events are handled, so that endless input cannot prevent drawing.
const MAX_READ_BYTES: usize = 64 * 1024;

/// How long a paste may take before its end mark is considered lost.
const MAX_PASTE_DURATION: Duration = Duration::from_secs(10);

/// Signals that end the program after the terminal has been restored: those that a user, a terminal or a batch system
/// sends, and all others that end a program by default. Faults of the program itself (SIGSEGV, SIGILL, SIGFPE) cannot
/// be handled in safe Rust. SIGABRT can be handled only if another process sends it.
const TERMINATING_SIGNALS: [i32; 16] = [
    SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ, SIGIO, SIGABRT,
    SIGBUS, SIGSYS, SIGTRAP,
];

/// Reasons why [`Waiter::wait`] returned. Several may apply at once; none applies after a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wakes {
    /// Events are available from [`Waiter::next_event`].
    pub input: bool,
    /// The size of the terminal has changed (SIGWINCH).
    pub resized: bool,
    /// The process was continued (SIGCONT) after a stop that it did not cause itself. Other programs may have used the
    /// terminal, so the caller has to call [`Screen::resume`](crate::tui::runtime::terminal::Screen::resume).
    pub continued: bool,
    /// A [`Waker`] was used: its channels have to be read.
    pub woken: bool,
    /// The number of a signal that ends the program.
    pub terminate: Option<i32>,
    /// The terminal is closed; the program must end.
    pub hangup: bool,
}

impl Wakes {
    /// Whether the program has to end.
    #[must_use]
    pub fn must_exit(&self) -> bool {
        self.hangup || self.terminate.is_some()
    }
}

/// Wakes the waiting thread from any other thread. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Waker {
    pipe: Arc<UnixStream>,
    woken: Arc<AtomicBool>,
}

impl Waker {
    /// Makes [`Waiter::wait`] return with [`Wakes::woken`]. Everything sent to a channel before this call is visible
    /// then.
    pub fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            // A full pipe already wakes the reader, and a closed one has no reader.
            let _ = (&*self.pipe).write(&[1]);
        }
    }
}

/// Signals that arrived and were not handled yet. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    resized: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
    terminate: Arc<AtomicUsize>,
}

impl Signals {
    /// The last signal that ends the program, if one has arrived.
    #[must_use]
    pub fn terminating(&self) -> Option<i32> {
        i32::try_from(self.terminate.load(Ordering::Acquire)).ok().filter(|signal| *signal != 0)
    }

    /// Clears a continuation after the caller has handled it.
    pub fn forget_continued(&self) {
        self.continued.store(false, Ordering::Release);
    }

    /// Clears SIGINT and SIGQUIT that were meant for another program on the terminal.
    pub fn forget_interrupts(&self) {
        for signal in [SIGINT, SIGQUIT] {
            if let Ok(signal) = usize::try_from(signal) {
                let _ = self.terminate.compare_exchange(signal, 0, Ordering::AcqRel, Ordering::Acquire);
            }
        }
    }
}

/// Waits for the terminal, signals and [`Waker`]s.
///
/// SIGTSTP keeps its default action. Ctrl-Z arrives as a key, because the terminal is in raw mode. While `$EDITOR` has
/// the terminal, its Ctrl-Z must stop this process too, or the shell does not get the terminal back. The kernel also
/// detects whether anything can continue a stopped process. After a stop caused from outside, the terminal is set up
/// again on SIGCONT.
#[derive(Debug)]
pub struct Waiter {
    tty: File,
    pipe: UnixStream,
    waker: Waker,
    signals: Signals,
    registered: Vec<SigId>,
    input: Input,
    /// Time at which an incomplete sequence is given up.
    deadline: Option<Instant>,
    /// Time at which the unfinished paste began.
    pasting: Option<Instant>,
    hangup: bool,
}

impl Waiter {
    /// Creates a waiter that reads `tty`, a descriptor of its own; see [`terminal::input`](crate::tui::runtime::terminal::input).
    /// Signals are handled from now on until the waiter is dropped.
    ///
    /// # Errors
    ///
    /// If the socket pair cannot be created or a signal handler cannot be installed.
    pub fn new(tty: File) -> io::Result<Waiter> {
        let (pipe, other) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        let signals = Signals::default();
        let waker = Waker { pipe: Arc::new(other.try_clone()?), woken: Arc::default() };
        let mut waiter = Waiter {
            tty,
            pipe,
            waker,
            signals: signals.clone(),
            registered: Vec::new(),
            input: Input::default(),
            deadline: None,
            pasting: None,
            hangup: false,
        };
        // Handlers run in the order of registration, so that the flag is set before the byte arrives.
        let mut keep = |id: io::Result<SigId>| id.map(|id| waiter.registered.push(id));
        for (signal, flag) in [(SIGWINCH, &signals.resized), (SIGCONT, &signals.continued)] {
            keep(signal_hook::flag::register(signal, Arc::clone(flag)))?;
        }
        for signal in TERMINATING_SIGNALS {
            let number = usize::try_from(signal).unwrap_or_default();
            keep(signal_hook::flag::register_usize(signal, Arc::clone(&signals.terminate), number))?;
        }
        for signal in [SIGWINCH, SIGCONT].into_iter().chain(TERMINATING_SIGNALS) {
            keep(signal_hook::low_level::pipe::register(signal, other.try_clone()?))?;
        }
        Ok(waiter)
    }

    /// A handle with which other threads wake this one.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// A handle to the signals that have arrived.
    #[must_use]
    pub fn signals(&self) -> Signals {
        self.signals.clone()
    }

    /// Waits until an event arrives or the timeout expires; forever without a timeout. An incomplete key sequence also
    /// ends the wait when its own timeout expires.
    ///
    /// # Errors
    ///
    /// If `poll(2)` fails, which is not expected. A closed terminal is not an error but sets [`Wakes::hangup`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Wakes> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            // While events are pending, the terminal is not read, so an incomplete sequence must not be given up.
            let ready = self.input.is_ready();
            let pending = ready || self.hangup;
            let now = Instant::now();
            let wake_at = if pending { Some(now) } else { until.into_iter().chain(self.deadline).min() };
            self.sleep(wake_at.map(|at| at.saturating_duration_since(now)))?;
            let now = Instant::now();
            if !ready && self.deadline.is_some_and(|deadline| deadline <= now) {
                self.input.end_incomplete();
                (self.deadline, self.pasting) = (None, None);
            }
            let wakes = Wakes {
                input: self.input.is_ready(),
                resized: self.signals.resized.swap(false, Ordering::AcqRel),
                continued: self.signals.continued.swap(false, Ordering::AcqRel),
                woken: self.waker.woken.swap(false, Ordering::AcqRel),
                terminate: self.signals.terminating(),
                hangup: self.hangup,
            };
            if wakes != Wakes::default() || until.is_some_and(|until| until <= now) {
                return Ok(wakes);
            }
        }
    }

    /// The next key, mouse event or paste, if there is one. Never blocks.
    pub fn next_event(&mut self) -> Option<Event> {
        self.input.pop()
    }

    /// Drops incomplete sequences and pending events after another program used the terminal.
    pub fn discard_input(&mut self) {
        self.input.discard();
        (self.deadline, self.pasting) = (None, None);
    }

    fn sleep(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut fds = [PollFd::new(&self.pipe, PollFlags::IN), PollFd::new(&self.tty, PollFlags::IN)];
        // A closed terminal stays readable forever, so polling it again would spin. If keys arrive faster than they are
        // handled, they stay in the terminal's buffer, which makes the writer wait.
        let sources = if self.hangup || self.input.is_ready() { 1 } else { 2 };
        match poll(fds.get_mut(..sources).unwrap_or_default(), timeout.as_ref()) {
            Ok(_) => {}
            // A signal: its byte is in the pipe, or another handler received it.
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [pipe, tty] = fds.map(|fd| fd.revents());
        if !pipe.is_empty() {
            self.drain_pipe();
        }
        if !tty.is_empty() {
            self.read_tty()?;
        }
        Ok(())
    }

    fn drain_pipe(&mut self) {
        let mut bytes = [0; 64];
        while matches!((&self.pipe).read(&mut bytes), Ok(count) if count > 0) {}
    }

    /// Reads while bytes are available. Never blocks, because each read follows a successful poll.
    fn read_tty(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        let mut total = 0;
        while total < MAX_READ_BYTES && is_readable(&self.tty)? {
            match (&self.tty).read(&mut bytes) {
                Ok(0) => {
                    self.hangup = true;
                    break;
                }
                Ok(count) => {
                    total += count;
                    self.input.feed(bytes.get(..count).unwrap_or_default());
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => break,
                // Reading a terminal whose other side is closed returns EIO. Any other error is handled likewise.
                Err(_) => {
                    self.hangup = true;
                    break;
                }
            }
        }
        let now = Instant::now();
        self.pasting = self.input.is_pasting().then(|| self.pasting.unwrap_or(now));
        let longest = self.pasting.map(|since| since + MAX_PASTE_DURATION);
        self.deadline = self.input.timeout().map(|patience| (now + patience).min(longest.unwrap_or(now + patience)));
        Ok(())
    }
}

/// Whether a read would return immediately, with bytes, the end of the file or an error.
fn is_readable(fd: &impl AsFd) -> io::Result<bool> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::OwnedFd;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::thread;

    use crossterm::event::KeyCode;
    use signal_hook::low_level::raise;

    use super::*;

    /// Signals are delivered to the whole process, so a test that raises one must not run in parallel with one that
    /// waits.
    static ALONE: Mutex<()> = Mutex::new(());

    /// A waiter on one end of a socket pair instead of a terminal, and the other end.
    fn waiter() -> (Waiter, UnixStream, MutexGuard<'static, ()>) {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (near, far) = UnixStream::pair().unwrap();
        (Waiter::new(File::from(OwnedFd::from(near))).unwrap(), far, alone)
    }

    const LONG: Option<Duration> = Some(Duration::from_secs(20));
    const SHORT: Option<Duration> = Some(Duration::from_millis(30));

    #[test]
    fn input_burst_ends_the_wait_once_and_delivers_every_key() {
        let (mut waiter, mut keyboard, _alone) = waiter();
        keyboard.write_all(&b"j".repeat(10_000)).unwrap();
        let wakes = waiter.wait(LONG).unwrap();
        assert_eq!(wakes, Wakes { input: true, ..Wakes::default() });
        assert_eq!(std::iter::from_fn(|| waiter.next_event()).count(), 10_000);
        assert_eq!(waiter.wait(SHORT).unwrap(), Wakes::default(), "then nothing");
    }

    #[test]
    fn lone_esc_is_distinguished_from_a_sequence_by_timeout() {
        let (mut waiter, mut keyboard, _alone) = waiter();
        keyboard.write_all(b"\x1b").unwrap();
        assert!(waiter.wait(LONG).unwrap().input);
        let Some(Event::Key(key)) = waiter.next_event() else { unreachable!() };
        assert_eq!(key.code, KeyCode::Esc);
        keyboard.write_all(b"\x1b").unwrap();
        waiter.sleep(LONG).unwrap();
        assert_eq!(waiter.next_event(), None, "it may be the beginning of more");
        keyboard.write_all(b"[A").unwrap();
        assert!(waiter.wait(LONG).unwrap().input);
        let Some(Event::Key(key)) = waiter.next_event() else { unreachable!() };
        assert_eq!(key.code, KeyCode::Up);
    }

    #[test]
    fn wakers_wake_once_for_many_calls() {
        let (mut waiter, _keyboard, _alone) = waiter();
        let threads: Vec<_> = (0..4).map(|_| waiter.waker()).map(|waker| thread::spawn(move || waker.wake())).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(waiter.wait(LONG).unwrap(), Wakes { woken: true, ..Wakes::default() });
        assert_eq!(waiter.wait(SHORT).unwrap(), Wakes::default());
        let waker = waiter.waker();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            waker.wake();
        });
        assert!(waiter.wait(None).unwrap().woken, "also from a wait without end");
        other.join().unwrap();
    }

    #[test]
    fn signals_end_the_wait_and_are_identified() {
        let (mut waiter, _keyboard, _alone) = waiter();
        raise(SIGWINCH).unwrap();
        assert_eq!(waiter.wait(LONG).unwrap(), Wakes { resized: true, ..Wakes::default() });
        raise(SIGCONT).unwrap();
        assert_eq!(waiter.wait(LONG).unwrap(), Wakes { continued: true, ..Wakes::default() });
        raise(SIGINT).unwrap();
        waiter.signals().forget_interrupts();
        assert!(!waiter.wait(SHORT).unwrap().must_exit());
        for signal in TERMINATING_SIGNALS {
            raise(signal).unwrap();
            assert_eq!(waiter.wait(LONG).unwrap().terminate, Some(signal));
        }
        raise(SIGTERM).unwrap();
        waiter.signals().forget_interrupts();
        let wakes = waiter.wait(LONG).unwrap();
        assert_eq!(wakes.terminate, Some(SIGTERM));
        assert!(wakes.must_exit());
        assert_eq!(waiter.signals().terminating(), Some(SIGTERM));
    }

    #[test]
    fn hangup_ends_the_wait_after_the_last_keys_are_delivered() {
        let (mut waiter, mut keyboard, _alone) = waiter();
        keyboard.write_all(b"q").unwrap();
        drop(keyboard);
        let wakes = waiter.wait(None).unwrap();
        assert!(wakes.input && wakes.hangup && wakes.must_exit());
        assert!(waiter.next_event().is_some());
        assert!(waiter.wait(None).unwrap().hangup, "and it stays so");
    }
}
