//! The event loop: terminal, files, timers. Waits for events, passes them to [`update`], performs the effects,
//! and draws at most once per round.

pub mod clipboard;
pub(in crate::tui) mod effects;
pub(in crate::tui) mod loading;
pub(in crate::tui) mod measuring;
pub(in crate::tui) mod reloading;
pub mod terminal;
pub mod wait;
pub(in crate::tui) mod workers;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use color_eyre::eyre::{Result, WrapErr as _};
use crossterm::event::Event;

use super::app::App;
use super::message::{Effect, Message, Timer};
use super::session::Store;
use super::update::update;
use super::{Options, session, tour};
use crate::demo::{Tours, View};
use crate::theme::color::ColorDepth;
use crate::theme::{Glyphs, Theme, Themes};
use crate::tui::app::stale::DirtyRegion;
use crate::tui::dialogs::detecting;
use crate::tui::runtime::clipboard::{Multiplexer, osc52};
use crate::tui::runtime::effects::{copy_shipped_message, edit, rewrite, save, write_profile, write_view};
use crate::tui::runtime::loading::{profiles, tours, watch_configs, watched};
use crate::tui::runtime::measuring::MeasurementReader;
use crate::tui::runtime::reloading::{Loaded, Reloader};
use crate::tui::runtime::terminal::Screen;
use crate::tui::runtime::wait::{Waiter, Wakes};
use crate::tui::runtime::workers::Workers;
use crate::tui::screen;
use crate::tui::update::{showing, status};
use crate::tui::widgets::graphics::Graphics;
use atlas_config::library::Library;
use atlas_config::watch::{FileWatch, WatchMode};

/// How long after the last key the session is saved, and how long saving may be delayed while keys keep coming.
const SAVE_DELAY: Duration = Duration::from_secs(2);
const MAX_SAVE_DELAY: Duration = Duration::from_secs(20);
/// Maximum time for which events are handled before signals are checked and a frame is drawn.
const MAX_BURST: Duration = Duration::from_millis(100);

/// Runs the interface until the user leaves it.
///
/// # Errors
///
/// If there is no terminal or it disappears.
pub fn run(options: Options) -> Result<()> {
    terminal::install_panic_hook();
    let lookup = |name: &str| std::env::var(name).ok();
    let depth = ColorDepth::detect(lookup);
    let ascii = options.ascii || Glyphs::must_be_ascii(lookup);
    let tty = terminal::input().wrap_err("the interface requires a terminal")?;
    let mut waiter = Waiter::new(tty).wrap_err("cannot install signal handlers")?;
    // Watch before loading, so that no change in between is missed.
    let (changed, changes) = channel::<()>();
    let waker = waiter.waker();
    let mode = options.poll.map_or(WatchMode::Auto, WatchMode::Poll);
    let mut watch = FileWatch::new(&watched(&options, None), mode, move |_| {
        if changed.send(()).is_ok() {
            waker.wake();
        }
    });
    let library = Arc::new(Library::load(&options.sources, None));
    watch_configs(&watch, &options, &library, &[]);
    let size = terminal::size();
    let glyphs = if ascii { Glyphs::ascii() } else { Glyphs::unicode() };
    let (themes, problems) = Themes::load(options.sources.config_dir.as_deref(), depth);
    let mut app = App::new(library, Tours::default(), themes, glyphs, (size.width, size.height));
    app.problems.extend(problems);
    app.out.clone_from(&options.out);
    app.assistant.flags = options.sources.flags();
    app.profiles = profiles(&options);
    let measuring = MeasurementReader::new(&options, waiter.waker());
    let graphics = Graphics::detect(lookup);
    app.graphics = graphics.as_ref().copied().unwrap_or_default();
    let mut screen = Screen::enter(options.mouse, depth, app.graphics).wrap_err("cannot set up the terminal")?;
    screen.set_ascii(ascii);
    measuring.read();
    let workers = Workers::new(waiter.waker());
    let options = Arc::new(options);
    let reloading = Reloader::new(&options, depth, waiter.waker());
    let store = Store::of(&options.keep, &options.sources);
    let mut session = Session {
        options,
        store,
        suited: "",
        tours: false,
        timers: Vec::new(),
        workers,
        reloading,
        measuring,
        keep: None,
        quit: false,
    };
    let start = session.start(&mut app, graphics.err());
    let ended = session
        .perform(start, &mut app, &mut screen, &mut waiter)
        .and_then(|()| session.event_loop(&mut app, &mut screen, &mut waiter, &mut watch, &changes));
    screen.leave();
    // Save the session however the program ends: a dropped connection is the usual way to leave a login node.
    if let Err(why) = session.store.save(session::capture(&app, session.suited)) {
        // Writing may fail if the terminal is gone.
        let _ = writeln!(std::io::stderr(), "{why}");
    }
    if let Some(notice) = session.store.notice() {
        let _ = writeln!(std::io::stderr(), "{notice}");
    }
    if let Some(signal) = ended? {
        // The terminal is restored; end with the signal's default action, so that a shell sees the signal.
        signal_hook::low_level::emulate_default_handler(signal).wrap_err("the default action of the signal failed")?;
        // The default action of some signals does not end the program everywhere.
        std::process::exit(128 + signal);
    }
    Ok(())
}

fn message(event: Event) -> Option<Message> {
    match event {
        Event::Key(key) => Some(Message::Key(key)),
        Event::Paste(text) => Some(Message::Paste(text)),
        Event::Mouse(mouse) => Some(Message::Mouse(mouse)),
        Event::Resize(columns, rows) => Some(Message::Resize(columns, rows)),
        Event::FocusGained | Event::FocusLost => None,
    }
}

/// State of the loop that is not part of the application.
struct Session {
    options: Arc<Options>,
    /// Storage of the session.
    store: Store,
    /// The theme that suits the terminal.
    suited: &'static str,
    /// Whether the tours have been read.
    tours: bool,
    timers: Vec<(Instant, Timer)>,
    workers: Workers,
    reloading: Reloader,
    measuring: MeasurementReader,
    /// When to save the session next, and since when it may have changed.
    keep: Option<(Instant, Instant)>,
    quit: bool,
}

impl Session {
    /// Restores the session and applies the flags. `refused` is an error about the environment.
    fn start(&mut self, app: &mut App, refused: Option<String>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut complaints = Vec::from_iter(refused);
        let suited = Theme::suited(|name| std::env::var(name).ok());
        app.theme = app.themes.iter().position(|theme| theme.name() == suited).unwrap_or_default();
        self.suited = suited;
        let first = app.now.setup.clone();
        self.store.set_initial(session::capture(app, suited));
        let mut lost = Vec::new();
        match self.store.load() {
            Ok(Some(document)) => lost = session::restore(&document, app),
            Ok(None) => {}
            Err(why) => lost.push(why),
        }
        if let Some(name) = &self.options.theme {
            match app.themes.iter().position(|theme| theme.name() == name) {
                Some(index) => app.theme = index,
                None => {
                    let known: Vec<&str> = app.themes.iter().map(|theme| theme.name()).collect();
                    complaints.push(format!("unknown theme `{name}`; known themes: {}", known.join(", ")));
                }
            }
        }
        complaints.extend(session::select(app, first, &self.options.target, &self.options.workload));
        if self.options.demo.is_some() {
            self.take_tours(app);
        }
        if let Some(name) = &self.options.demo {
            match app.demos.iter().find(|demo| &*demo.name == name.as_str()).cloned() {
                Some(demo) => {
                    let auto = self.options.demo_auto.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                    tour::begin(app, demo, auto, &mut effects);
                }
                None => complaints.push(format!("unknown tour `{name}`")),
            }
        }
        app.history.store = atlas_cluster::history::Store::of_user();
        if !self.options.watch.is_empty() {
            crate::tui::views::watch::of(app, self.options.watch.clone());
        }
        if let Some(view) = self.options.view {
            app.view = View::Main;
            showing::show(app, view, &mut effects);
        }
        if !complaints.is_empty() {
            status::fail(app, complaints.join("; "));
        } else if app.problems.has_errors() {
            report_problems(app);
        } else if !lost.is_empty() {
            status::note(app, format!("session: {}", lost.join("; ")), &mut effects);
        } else if self.is_first(app) {
            // Without a timer, the note stays until the next key press.
            status::note(app, detecting::OFFER, &mut Vec::new());
        }
        super::work::follow(app, &mut effects);
        crate::tui::input::scrolling::follow(app);
        effects
    }

    /// Whether the user has neither a session nor files, and gave no flags that select something.
    fn is_first(&self, app: &App) -> bool {
        let options = &self.options;
        let selects =
            options.demo.is_some() || options.view.is_some() || options.target.is_some() || options.workload.is_some();
        let own = app.library.target_list().iter().any(|entry| entry.user_entry().is_some());
        !selects && !own && options.sources.flags().is_empty() && self.store.is_first()
    }

    /// Reads the tours, once.
    fn take_tours(&mut self, app: &mut App) {
        if std::mem::replace(&mut self.tours, true) {
            return;
        }
        let (demos, problems) = tours(&self.options);
        app.demos = demos;
        if !problems.is_empty() {
            app.problems.extend(problems);
            report_problems(app);
        }
        app.problems.sort();
    }

    /// Handles events until the user quits; returns the signal that ended it, if any.
    fn event_loop(
        &mut self,
        app: &mut App,
        screen: &mut Screen,
        waiter: &mut Waiter,
        watch: &mut FileWatch,
        changes: &Receiver<()>,
    ) -> Result<Option<i32>> {
        let mut wakes = Wakes::default();
        while !self.quit && !wakes.must_exit() {
            screen.draw(|picture, empty| screen::redraw(app, picture, empty)).wrap_err("the terminal was closed")?;
            app.stale = DirtyRegion::Nothing;
            // Done after the first frame, so as not to delay it.
            self.take_tours(app);
            if let Err(error) = watch.start() {
                status::fail(app, format!("files are not watched for changes: {error}; press r to reload them"));
                app.stale = DirtyRegion::All;
            }
            if app.stale != DirtyRegion::Nothing {
                continue;
            }
            self.save_session(app);
            wakes = waiter.wait(self.timeout()).wrap_err("waiting failed")?;
            if wakes.must_exit() {
                break;
            }
            if wakes.continued {
                screen.resume().wrap_err("cannot set up the terminal again")?;
            }
            let mut messages = Vec::new();
            if wakes.resized || wakes.continued {
                let size = terminal::size();
                messages.push(Message::Resize(size.width, size.height));
            }
            // Handle all pending events before drawing one frame, unless that would delay the response to a signal.
            let until = Instant::now() + MAX_BURST;
            let mut touched = !messages.is_empty();
            while let Some(event) = waiter.next_event() {
                messages.extend(message(event));
                touched |= !messages.is_empty();
                for message in messages.drain(..) {
                    let effects = update(app, message);
                    self.perform(effects, app, screen, waiter)?;
                }
                if self.quit || Instant::now() >= until {
                    break;
                }
            }
            if wakes.woken && changes.try_iter().count() > 0 {
                self.reloading.start(&app.library, None);
                self.measuring.read();
            }
            if touched {
                self.schedule_save();
            }
            messages.extend(self.measuring.done());
            messages.extend(self.expired_timers());
            messages.extend(self.workers.messages());
            if let Some(panic) = terminal::background_panic() {
                messages.push(Message::Failed(format!("files are no longer watched: {panic}")));
            }
            for message in messages {
                if self.quit {
                    break;
                }
                let effects = update(app, message);
                self.perform(effects, app, screen, waiter)?;
            }
            while let Some(loaded) = self.reloading.loaded().or_else(|| self.reloading.wait_briefly()) {
                self.schedule_save();
                let effects = self.apply_loaded(loaded, app, watch);
                self.perform(effects, app, screen, waiter)?;
            }
            while Instant::now() < until
                && let Some(message) = self.workers.wait_briefly()
            {
                let effects = update(app, message);
                self.perform(effects, app, screen, waiter)?;
            }
        }
        Ok(wakes.terminate)
    }

    /// Schedules saving the session: after a pause, or when it has been delayed too long.
    fn schedule_save(&mut self) {
        let now = Instant::now();
        let since = self.keep.map_or(now, |(_, since)| since);
        self.keep = Some(((now + SAVE_DELAY).min(since + MAX_SAVE_DELAY), since));
    }

    /// Saves the session when due, so that little is lost if the program ends unexpectedly. Called after drawing a
    /// frame, and only once after a burst of key presses, so that an idle program is not woken.
    fn save_session(&mut self, app: &mut App) {
        if self.keep.is_some_and(|(at, _)| at <= Instant::now()) {
            self.keep = None;
            if !self.store.save_in_background(session::capture(app, self.suited)) {
                self.schedule_save();
            }
            if let Some(notice) = self.store.notice() {
                status::fail(app, notice);
                app.stale = DirtyRegion::All;
            }
        }
    }

    /// Maximum time for which the loop may sleep.
    fn timeout(&self) -> Option<Duration> {
        let timers = self.timers.iter().map(|(at, _)| at.saturating_duration_since(Instant::now()));
        let keep = self.keep.map(|(at, _)| at.saturating_duration_since(Instant::now()));
        timers.chain(self.workers.timeout()).chain(keep).min()
    }

    /// Expired timers.
    fn expired_timers(&mut self) -> Vec<Message> {
        let now = Instant::now();
        let due = self.timers.iter().filter(|(at, _)| *at <= now).map(|(_, timer)| Message::Expired(*timer)).collect();
        self.timers.retain(|(at, _)| *at > now);
        due
    }

    /// Applies the new content of the files.
    fn apply_loaded(&mut self, loaded: Loaded, app: &mut App, watch: &FileWatch) -> Vec<Effect> {
        let before = Arc::clone(&app.library);
        if let Some(library) = &loaded.library {
            watch_configs(watch, &self.options, library, &before.configs());
        }
        let effects = loaded.messages.into_iter().flat_map(|message| update(app, message)).collect();
        reloading::drop_in_background(before);
        effects
    }

    fn perform(&mut self, effects: Vec<Effect>, app: &mut App, screen: &mut Screen, waiter: &mut Waiter) -> Result<()> {
        let mut effects = effects;
        while !effects.is_empty() {
            let mut messages = Vec::new();
            for effect in std::mem::take(&mut effects) {
                match effect {
                    Effect::Quit => self.quit = true,
                    Effect::Suspend => {
                        screen.suspend(&waiter.signals()).wrap_err("cannot set up the terminal again")?;
                        let size = terminal::size();
                        messages.push(Message::Resize(size.width, size.height));
                    }
                    Effect::Repaint => screen.repaint(),
                    Effect::Reload => {
                        self.reloading.start(&app.library, None);
                        self.measuring.read();
                    }
                    Effect::WriteProfile(proposal) => {
                        self.reloading.start(&app.library, Some(write_profile(&proposal)));
                    }
                    Effect::Save(saving) => messages.push(save(&saving)),
                    Effect::Edit { path, line } => {
                        let edited = screen.yield_to(&waiter.signals(), || edit(&path, line));
                        waiter.discard_input();
                        if let Err(error) = edited.wrap_err("cannot set up the terminal again")? {
                            messages.push(Message::Failed(format!("{error:#}")));
                        }
                        self.reloading.start(&app.library, None);
                    }
                    Effect::CopyAndEdit { path, line } => {
                        messages.push(copy_shipped_message(&path));
                        if path.exists() {
                            effects.push(Effect::Edit { path, line });
                        }
                    }
                    Effect::Copy { text, what } => messages.push(match text.len() {
                        0..=clipboard::MAX_BYTES => {
                            screen.send(&osc52(&text, Multiplexer::detect(|name| std::env::var(name).ok())));
                            Message::Done(format!("copied {what} (if the terminal supports OSC 52)"))
                        }
                        bytes => Message::Failed(format!("{what} is {bytes} bytes, more than terminals accept")),
                    }),
                    Effect::Export(dialog) => messages.push(write_view(app, dialog)),
                    Effect::WriteBack(plan) => {
                        self.reloading.start(&app.library, Some(rewrite(&plan)));
                    }
                    Effect::After { ms, timer } => {
                        self.timers.push((Instant::now() + Duration::from_millis(ms), timer))
                    }
                    Effect::Paste(on) => screen.set_paste(on),
                    Effect::Work(order) => self.workers.start(order),
                    Effect::Cancel(serial) => self.workers.cancel(serial),
                }
            }
            for message in messages {
                effects.extend(update(app, message));
            }
        }
        Ok(())
    }
}

/// Reports broken files at the start.
fn report_problems(app: &mut App) {
    if app.problems.has_errors() {
        status::fail(app, format!("{} in the files (press ! to see them)", app.problems.summary()));
    }
    app.stale = DirtyRegion::All;
}
