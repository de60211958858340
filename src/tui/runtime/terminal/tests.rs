//! Runs a program in a pseudo-terminal: this test binary, which an environment variable turns into [`the_program`]. The
//! tests check the state in which an emulator and the line discipline are left.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::env;
use std::io::Read as _;
use std::num::NonZeroU16;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, PtyPair, PtySize, native_pty_system};
use ratatui::widgets::{Paragraph, Widget};

use super::*;
use crate::tui::runtime::wait::Waiter;

const ROLE: &str = "ATLAS_TEST_PROGRAM";
const PATIENCE: Duration = Duration::from_secs(20);

/// Draws a whole picture.
fn drawn(widget: impl Widget, picture: &mut Buffer) -> Drawn {
    picture.reset();
    widget.render(picture.area, picture);
    Drawn { parts: vec![picture.area], charts: None }
}

/// Returns a chart with one line.
fn rising() -> graphics::Chart {
    let points = vec![Some((0.0, 0.0)), Some((1.0, 1.0))];
    let curve = graphics::Curve { points, shape: graphics::Shape::Line, color: [200, 0, 0] };
    graphics::Chart { area: Rect::new(2, 2, 20, 8), curves: vec![curve] }
}

/// Draws a text, and performs its role at the first key press.
#[test]
fn the_program() {
    let Ok(role) = env::var(ROLE) else { return };
    install_panic_hook();
    let mut waiter = Waiter::new(input().unwrap()).unwrap();
    let images = role == "panic below an image";
    let graphics = if images { Graphics::Kitty } else { Graphics::Off };
    let mut screen = Screen::enter(true, ColorDepth::Ansi16, graphics).unwrap();
    screen.set_paste(true);
    let mut text = "ready".to_owned();
    loop {
        let frame = |picture: &mut Buffer, _| Drawn {
            charts: images.then(|| vec![rising()]),
            ..drawn(Paragraph::new(text.as_str()), picture)
        };
        screen.draw(frame).unwrap();
        let wakes = waiter.wait(None).unwrap();
        if wakes.must_exit() {
            break;
        }
        if waiter.next_event().is_none() {
            continue;
        }
        match role.as_str() {
            "panic" | "panic below an image" => panic!("on purpose"),
            "background panic" => {
                assert!(thread::spawn(|| panic!("on purpose")).join().is_err());
                text = background_panic().unwrap().lines().last().unwrap().to_owned();
            }
            "give back" => {
                screen.leave();
                let sent = screen.draw(|picture, _| drawn("too late", picture)).unwrap();
                assert_eq!(sent, 0);
                break;
            }
            "suspend" => {
                // No process continues a session leader, so it must resume by itself.
                screen.suspend(&waiter.signals()).unwrap();
                text = "back".to_owned();
            }
            "lend" => {
                let editor = || Command::new("stty").arg("-a").stdin(Stdio::inherit()).output();
                let modes = screen.yield_to(&waiter.signals(), editor).unwrap().unwrap();
                waiter.discard_input();
                let modes = String::from_utf8_lossy(&modes.stdout).into_owned();
                text = format!("cooked: {}", modes.contains(" icanon") && modes.contains(" echo "));
            }
            _ => break,
        }
    }
    drop(screen);
    println!("the prompt");
}

struct Program {
    pty: PtyPair,
    /// Kept open, because dropping it sends an end of file.
    keyboard: Box<dyn io::Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    output: Receiver<Vec<u8>>,
    emulator: vt100::Parser,
    /// Everything it has written.
    bytes: Vec<u8>,
    modes: String,
}

impl Program {
    fn start(role: &str) -> Program {
        let size = PtySize { rows: 40, cols: 60, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).unwrap();
        let modes = format!("{:?}", pty.master.get_termios().unwrap());
        let mut command = CommandBuilder::new(env::current_exe().unwrap());
        command.args(["--exact", "tui::runtime::terminal::tests::the_program", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role);
        command.env("RUST_BACKTRACE", "0");
        let child = pty.slave.spawn_command(command).unwrap();
        let mut reader = pty.master.try_clone_reader().unwrap();
        let (tell, output) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if tell.send(bytes.get(..count).unwrap().to_vec()).is_err() {
                    break;
                }
            }
        });
        let keyboard = pty.master.take_writer().unwrap();
        let emulator = vt100::Parser::new(NonZeroU16::new(40).unwrap(), NonZeroU16::new(60).unwrap(), 0);
        let mut program = Program { pty, keyboard, child, output, emulator, bytes: Vec::new(), modes };
        program.expect("ready");
        assert!(program.emulator.screen().alternate_screen());
        assert!(program.emulator.screen().hide_cursor());
        assert!(program.emulator.screen().bracketed_paste());
        assert_ne!(program.emulator.screen().mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_ne!(program.modes(), program.modes, "raw");
        program
    }

    fn modes(&self) -> String {
        format!("{:?}", self.pty.master.get_termios().unwrap())
    }

    fn expect(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.emulator.screen().contents().contains(text) {
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("`{text}` did not come, but\n{}", self.emulator.screen().contents())
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.emulator.process(bytes);
        self.bytes.extend_from_slice(bytes);
    }

    /// Offset of the last occurrence of `what` in the output.
    fn written(&self, what: &str) -> Option<usize> {
        self.bytes.windows(what.len()).rposition(|window| window == what.as_bytes())
    }

    fn press(&mut self, key: &str) {
        self.keyboard.write_all(key.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.process_id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Waits for the program to exit, and checks the state of the terminal.
    fn expect_tidy_end(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it does not end");
            thread::sleep(Duration::from_millis(5));
        }
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
            self.take(&bytes);
        }
        let screen = self.emulator.screen();
        assert!(!screen.alternate_screen());
        assert!(!screen.hide_cursor());
        assert!(!screen.bracketed_paste());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(self.modes(), self.modes, "the line discipline is as before");
    }
}

#[test]
fn quitting_restores_the_terminal() {
    let mut program = Program::start("quit");
    program.press("q");
    program.expect("the prompt");
    program.expect_tidy_end();
}

#[test]
fn terminating_signals_restore_the_terminal() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let mut program = Program::start("quit");
        program.signal(signal);
        program.expect_tidy_end();
    }
}

#[test]
fn panic_is_reported_on_the_main_screen() {
    let mut program = Program::start("panic");
    program.press("x");
    program.expect("on purpose");
    program.expect_tidy_end();
}

#[test]
fn a_panic_deletes_the_images_before_it_leaves_the_screen() {
    let mut program = Program::start("panic below an image");
    assert!(program.written("\x1b_Ga=T,").is_some(), "no image was sent");
    program.press("x");
    program.expect("on purpose");
    program.expect_tidy_end();
    let (deleted, left) = (program.written("\x1b_Ga=d,d=I,"), program.written("\x1b[?1049l"));
    assert!(deleted.is_some() && deleted < left, "{deleted:?} {left:?}");
}

#[test]
fn a_panic_in_the_background_does_not_touch_the_screen() {
    let mut program = Program::start("background panic");
    program.press("x");
    program.expect("on purpose");
    assert!(program.emulator.screen().alternate_screen());
    program.pty.master.resize(PtySize { rows: 5, cols: 30, pixel_width: 0, pixel_height: 0 }).unwrap();
    drop(program.child.kill());
}

#[test]
fn suspend_without_a_parent_shell_resumes_the_program() {
    let mut program = Program::start("suspend");
    program.press("\x1a");
    program.expect("back");
    assert!(program.emulator.screen().alternate_screen());
    assert_ne!(program.modes(), program.modes, "raw again");
    program.signal(Signal::TERM);
    program.expect_tidy_end();
}

#[test]
fn nothing_is_drawn_on_a_terminal_that_was_given_back() {
    let mut program = Program::start("give back");
    program.press("x");
    program.expect("the prompt");
    assert!(!program.emulator.screen().contents().contains("too late"));
    program.expect_tidy_end();
}

#[test]
fn external_command_runs_with_the_terminal_in_cooked_mode() {
    let mut program = Program::start("lend");
    program.press("e");
    program.expect("cooked: true");
    assert!(program.emulator.screen().alternate_screen());
    drop(program.child.kill());
}

#[test]
fn terminal_size_is_always_within_bounds() {
    let size = size();
    assert!((1..=MAX_SIZE.width).contains(&size.width) && (1..=MAX_SIZE.height).contains(&size.height));
    restore();
    restore();
}
