//! Sets up the terminal, restores it on every exit, and hands it to other programs and back.
//!
//! The terminal is never queried: every reply would take a round trip over SSH, and a late one would be read as key
//! presses by the next program. Size and modes come from the line discipline, everything else from the environment.

mod guard;

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr};

use self::guard::Guard;
use crate::theme::color::ColorDepth;
use crate::tui::painter::Painter;
use crate::tui::runtime::wait::Signals;
use crate::tui::screen::Drawn;
use crate::tui::widgets::graphics::{self, Graphics, Images};

/// The alternate screen; the cursor is hidden by the first frame.
const ENTER: &[u8] = b"\x1b[?1049h";
/// Enables reports of clicks and the wheel, with coordinates of any size. Motion (1002, 1003) would flood a slow link.
const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";
/// Resets every mode that may be set, even if the last frame was cut off: the synchronized update, colors, mouse,
/// paste, the hidden cursor, the alternate screen. The move to the bottom line is for terminals without an alternate
/// screen, where the shell prompt would otherwise appear in the middle of the picture; all others restore the cursor
/// position.
const LEAVE: &str = "\x1b[?2026l\x1b[m\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[?25h\x1b[999;1H\x1b[?1049l";

/// Maximum size, larger than any screen. A wrong size reported by the line discipline must not exhaust the memory.
const MAX_SIZE: Size = Size { width: 1000, height: 500 };
/// The size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size { width: 80, height: 24 };

/// The terminal and its modes to restore.
static SAVED: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);
/// Restores the terminal if this process cannot.
static GUARD: Mutex<Option<Guard>> = Mutex::new(None);
/// Whether [`ENTER`] has been sent.
static ENTERED: AtomicBool = AtomicBool::new(false);
/// Whether images may be on the screen.
static IMAGES: AtomicBool = AtomicBool::new(false);
/// The thread that draws.
static DRAWING: Mutex<Option<ThreadId>> = Mutex::new(None);
/// Message of a panic on another thread.
static BACKGROUND_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// The sequence that leaves the screen. If images are enabled, they are deleted first.
fn leaving() -> String {
    let images = if IMAGES.load(Ordering::Acquire) { graphics::deletion() } else { String::new() };
    images + LEAVE
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminal's input: standard input, or `/dev/tty` if that is not a terminal (`… | atlas`).
///
/// # Errors
///
/// If there is no terminal.
pub fn input() -> io::Result<File> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(stdin.as_fd().try_clone_to_owned()?.into());
    }
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// The terminal's size: as reported by the line discipline of standard output or input, else `COLUMNS` and `LINES`,
/// else 80×24.
#[must_use]
pub fn size() -> Size {
    let known = tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stdin())).ok();
    let named = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let pick = |reported: Option<u16>, name, usual, largest: u16| {
        reported.filter(|n| *n > 0).or_else(|| named(name).filter(|n| *n > 0)).unwrap_or(usual).min(largest)
    };
    Size {
        width: pick(known.map(|size| size.ws_col), "COLUMNS", DEFAULT_SIZE.width, MAX_SIZE.width),
        height: pick(known.map(|size| size.ws_row), "LINES", DEFAULT_SIZE.height, MAX_SIZE.height),
    }
}

/// Size of a cell in pixels, if the line discipline reports the size of the window in pixels.
fn cell_size() -> Option<Size> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    let side = |pixels: u16, cells: u16| pixels.checked_div(cells).filter(|side| (2..=64).contains(side));
    Some(Size { width: side(size.ws_xpixel, size.ws_col)?, height: side(size.ws_ypixel, size.ws_row)? })
}

/// Restores the terminal, whatever its state. Does nothing if it was not set up, so that it can be called
/// on every exit: the end, an error, a panic, a signal. Errors are ignored, since nothing could be done about them.
pub fn restore() {
    if ENTERED.swap(false, Ordering::AcqRel) {
        // Does not use `Stdout`: another thread may hold its lock, and a panic must not wait for it.
        let _ = TtyOut::new().and_then(|mut out| out.write_all(leaving().as_bytes()));
    }
    if let Some((tty, modes)) = lock(&SAVED).take() {
        let _ = tcsetattr(tty, OptionalActions::Now, &modes);
    }
    if let Some(guard) = &mut *lock(&GUARD) {
        guard.set_in_use(false);
    }
    *lock(&DRAWING) = None;
}

/// Makes panics restore the terminal before they are printed. Call it after `color_eyre::install()`, whose hook it
/// keeps and calls.
///
/// If panics unwind, the program continues after a panic on another thread. While the screen is set up, such a panic
/// does not touch the screen, and its message is kept for [`background_panic`]. Release builds abort on any panic.
pub fn install_panic_hook() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let drawing = *lock(&DRAWING);
        let goes_on = cfg!(panic = "unwind") && drawing.is_some_and(|drawing| drawing != thread::current().id());
        if goes_on {
            *lock(&BACKGROUND_PANIC) = Some(info.to_string());
        } else {
            restore();
            tell(info);
        }
    }));
}

/// Takes the message of the last panic on a thread other than the drawing one.
pub fn background_panic() -> Option<String> {
    lock(&BACKGROUND_PANIC).take()
}

/// The screen: views draw on a buffer, and the [`Painter`] writes the changed cells. It also manages the terminal's
/// modes.
#[derive(Debug)]
pub struct Screen {
    /// The frame. Each frame is drawn over the previous one.
    picture: Buffer,
    painter: Painter<TtyOut>,
    graphics: Graphics,
    images: Images,
    mouse: bool,
    paste: bool,
    /// Whether the terminal is set up.
    is_set_up: bool,
    /// Whether the bytes that enter the screen are queued, to be sent in the write of the first frame.
    entering: bool,
}

impl Screen {
    /// Sets up the terminal: raw mode now, the alternate screen with the first frame. `mouse` enables clicks and wheel,
    /// `graphics` images.
    ///
    /// # Errors
    ///
    /// If there is no terminal or its modes cannot be set.
    pub fn enter(mouse: bool, depth: ColorDepth, graphics: Graphics) -> io::Result<Screen> {
        IMAGES.store(graphics == Graphics::Kitty, Ordering::Release);
        let mut screen = Screen {
            picture: Buffer::empty(Rect::ZERO),
            painter: Painter::new(TtyOut::new()?, depth),
            graphics,
            images: Images::default(),
            mouse,
            paste: false,
            is_set_up: false,
            entering: false,
        };
        screen.set_up()?;
        Ok(screen)
    }

    /// Sets up the terminal, for the first time or again.
    fn set_up(&mut self) -> io::Result<()> {
        {
            let mut saved = lock(&SAVED);
            if saved.is_none() {
                let tty = OwnedFd::from(input()?);
                let modes = tcgetattr(&tty)?;
                *saved = Some((tty, modes));
            }
            if let Some((tty, modes)) = &*saved {
                let mut guard = lock(&GUARD);
                if guard.is_none() {
                    // The guard cannot be started on a machine without a shell.
                    *guard = Guard::start(tty.as_fd(), io::stdout().as_fd(), &leaving(), modes).ok();
                }
                if let Some(guard) = &mut *guard {
                    guard.set_in_use(true);
                }
                let mut raw = modes.clone();
                raw.make_raw();
                tcsetattr(tty, OptionalActions::Now, &raw)?;
            }
        }
        *lock(&DRAWING) = Some(thread::current().id());
        self.painter.writer_mut().discard();
        self.painter.forget();
        let writer = self.painter.writer_mut();
        writer.push_ahead(ENTER);
        if self.mouse {
            writer.push_ahead(MOUSE_ON);
        }
        if self.paste {
            writer.push_ahead(PASTE_ON);
        }
        (self.is_set_up, self.entering) = (true, true);
        Ok(())
    }

    /// Draws one frame with one write, or none if nothing changed. `view` receives the previous picture, or an empty
    /// one and `true` if the size of the terminal has changed, and returns the parts that it drew. Returns the number
    /// of bytes sent. Draws nothing while the terminal is not set up, such as when a suspended program receives a
    /// signal to end.
    ///
    /// # Errors
    ///
    /// If the terminal is gone.
    pub fn draw(&mut self, view: impl FnOnce(&mut Buffer, bool) -> Drawn) -> io::Result<usize> {
        if !self.is_set_up {
            return Ok(0);
        }
        let Size { width, height } = size();
        let whole = Rect::new(0, 0, width, height);
        let other = self.picture.area != whole;
        if other {
            self.picture = Buffer::empty(whole);
        }
        let Drawn { parts, charts } = view(&mut self.picture, other);
        if self.graphics == Graphics::Kitty {
            let cleared = self.painter.clears(whole);
            let images = self.images.show(charts, cleared, cell_size());
            self.painter.writer_mut().push_behind(&images);
        }
        if std::mem::take(&mut self.entering) {
            ENTERED.store(true, Ordering::Release);
        }
        // The terminal's cursor stays hidden; inputs draw their own.
        self.painter.paint_parts(&self.picture, &parts, None)
    }

    /// Makes the next frame a full one, for Ctrl-L, because another program may have written to the terminal.
    pub fn repaint(&mut self) {
        self.painter.forget();
    }

    /// Turns bracketed paste on or off, with the next frame. It is on while a text field is open, so that a pasted
    /// letter is text and never a command.
    pub fn set_paste(&mut self, on: bool) {
        if self.paste != on {
            self.paste = on;
            self.painter.writer_mut().push_ahead(if on { PASTE_ON } else { PASTE_OFF });
        }
    }

    /// Sends bytes that are not part of the picture with the next frame.
    pub fn send(&mut self, bytes: &[u8]) {
        self.painter.writer_mut().push_ahead(bytes);
    }

    /// Sets the color depth. The next frame is a full one.
    pub fn set_depth(&mut self, depth: ColorDepth) {
        self.painter.set_depth(depth);
        self.painter.forget();
    }

    /// Sets whether everything outside ASCII is shown as `?`, for a locale that cannot show it.
    pub fn set_ascii(&mut self, ascii: bool) {
        self.painter.set_ascii(ascii);
    }

    /// Bytes sent so far.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.painter.writer().bytes_sent()
    }

    /// Restores the terminal. [`Screen::resume`] sets it up again.
    pub fn leave(&mut self) {
        self.is_set_up = false;
        self.painter.writer_mut().discard();
        self.painter.forget();
        restore();
    }

    /// Sets up the terminal again after [`leave`](Screen::leave), or after a stop caused from outside (SIGCONT). The
    /// next frame is a full one.
    ///
    /// # Errors
    ///
    /// As [`Screen::enter`].
    pub fn resume(&mut self) -> io::Result<()> {
        self.set_up()
    }

    /// Handles Ctrl-Z: restores the terminal, stops the whole process group (including a parent such as `cargo run`,
    /// for which the shell would otherwise wait), and sets the terminal up again when continued. If nothing could
    /// continue the process, as after `ssh -t host atlas`, the kernel does not stop it, and this returns immediately.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be set up again.
    pub fn suspend(&mut self, signals: &Signals) -> io::Result<()> {
        self.leave();
        // This cannot fail: a process may always signal its own group.
        let _ = kill_current_process_group(Signal::TSTP);
        self.reenter(signals)
    }

    /// Hands the terminal to `run`, such as `$EDITOR`, and sets it up again afterwards. Keys that the other program did
    /// not read are dropped, and its Ctrl-C does not affect this program. Call
    /// [`Waiter::discard_input`](crate::tui::runtime::wait::Waiter::discard_input) afterwards.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be set up again.
    pub fn yield_to<T>(&mut self, signals: &Signals, run: impl FnOnce() -> T) -> io::Result<T> {
        self.leave();
        let result = run();
        signals.forget_interrupts();
        self.reenter(signals)?;
        if let Some((tty, _)) = &*lock(&SAVED) {
            let _ = tcflush(tty, QueueSelector::IFlush);
        }
        Ok(result)
    }

    fn reenter(&mut self, signals: &Signals) -> io::Result<()> {
        signals.forget_continued();
        // `kill %1` sends SIGTERM, then continues the process in the background, where using the terminal would stop it
        // again before it could end.
        if signals.terminating().is_some() { Ok(()) } else { self.set_up() }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Unbuffered standard output: no buffer splits a frame, and a panic need not wait for a lock.
#[derive(Debug)]
struct TtyOut(OwnedFd);

impl TtyOut {
    fn new() -> io::Result<TtyOut> {
        Ok(TtyOut(io::stdout().as_fd().try_clone_to_owned()?))
    }
}

impl Write for TtyOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(&self.0, bytes) {
                // Another program on this terminal has made it non-blocking.
                Err(rustix::io::Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None).map(drop).or_else(ignore_interrupt)?;
                }
                result => return Ok(result?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ignore_interrupt(error: rustix::io::Errno) -> io::Result<()> {
    if error == rustix::io::Errno::INTR { Ok(()) } else { Err(error.into()) }
}

#[cfg(test)]
mod tests;
