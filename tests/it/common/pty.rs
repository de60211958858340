//! The real binary on a pseudo-terminal.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Timeout, long enough for a loaded machine. Every wait ends as soon as its condition holds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program on a pseudo-terminal whose output is read continuously.
pub(crate) struct Session {
    pub(crate) child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    /// Everything that the program has written.
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    /// Columns and rows.
    pub(crate) size: (u16, u16),
}

impl Session {
    pub(crate) fn start(dir: &Path, arguments: &[&str]) -> Session {
        Session::start_in(dir, arguments, &[])
    }

    /// Starts the program with these environment variables.
    pub(crate) fn start_in(dir: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Session {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_atlas"));
        command.args(arguments);
        // Variables that describe the terminal in which the tests run.
        for name in ["NO_COLOR", "KITTY_WINDOW_ID", "TERM_PROGRAM", "TMUX", "STY", "ATLAS_GRAPHICS"] {
            command.env_remove(name);
        }
        for (name, value) in environment {
            command.env(name, value);
        }
        Session::run(dir, command)
    }

    pub(crate) fn run(dir: &Path, mut command: CommandBuilder) -> Session {
        let size = (100, 30);
        let pty = native_pty_system()
            .openpty(PtySize { rows: size.1, cols: size.0, pixel_width: 0, pixel_height: 0 })
            .unwrap();
        command.cwd(dir);
        for (name, value) in [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8")] {
            command.env(name, value);
        }
        command.env("ATLAS_CONFIG_DIR", dir.join("config"));
        command.env("XDG_STATE_HOME", dir.join("state"));
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().unwrap();
        let writer = pty.master.take_writer().unwrap();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut chunk) {
                sink.lock().unwrap().extend_from_slice(&chunk[..n]);
            }
        });
        Session { child, writer, master: pty.master, bytes, size }
    }

    pub(crate) fn keys(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    pub(crate) fn parser(&self) -> vt100::Parser {
        let rows = std::num::NonZero::new(self.size.1).unwrap();
        let columns = std::num::NonZero::new(self.size.0).unwrap();
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(&self.bytes.lock().unwrap());
        parser
    }

    pub(crate) fn screen(&self) -> String {
        self.parser().screen().contents()
    }

    pub(crate) fn wait_for(&self, what: &str) {
        self.wait(&format!("{what:?} on the screen"), |session| session.screen().contains(what));
    }

    pub(crate) fn wait(&self, what: &str, holds: impl Fn(&Session) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < PATIENCE, "waited for {what}; the screen is\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn wait_for_end(&mut self) -> u32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(start.elapsed() < PATIENCE, "still running; the screen is\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Checks that the alternate screen is left, the cursor visible, and mouse and paste reports are off.
    pub(crate) fn assert_restored(&self) {
        self.wait("the terminal to be given back", |session| {
            let parser = session.parser();
            let screen = parser.screen();
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        });
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.process_id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).unwrap();
    }
}
