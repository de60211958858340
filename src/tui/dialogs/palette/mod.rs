//! The command line: commands with their keys, metrics, tours and questions, ranked by likely intent.

mod meant;
pub mod state;

pub use state::{Command, CommandAction};

use std::collections::HashSet;
use std::sync::Arc;

use crate::tui::app::{App, Overlay, Palette, Place, View};
use crate::tui::dialogs::finder;
use crate::tui::input::keymap::{self, Action};
use crate::tui::message::Effect;
use crate::tui::tour;
use crate::tui::update::{asking, showing, status};
use crate::tui::views::{assistant, edits, sweep};
use crate::tui::widgets::line::Line;
use atlas_assistant::{Intent, Known, ParseError, Question, offline, parse};
use atlas_core::sort;
use atlas_plan::estimate::MetricId;
use atlas_plan::knob::KNOBS;
use atlas_plan::search::metric;

/// Synonyms for actions other than showing a view.
const SYNONYMS: [(Action, &str); 15] = [
    (Action::Help, "help keys manual"),
    (Action::Quit, "quit exit"),
    (Action::Close, "quit close"),
    (Action::ResetAll, "reset all knobs"),
    (Action::UnmarkAll, "unmark clear marks"),
    (Action::OpenEditor, "edit"),
    (Action::Undo, "undo revert"),
    (Action::Goal, "goal seek"),
    (Action::Detect, "detect nvidia-smi gpu cluster hardware"),
    (Action::Export, "export csv html markdown json svg report"),
    (Action::WriteBack, "save write yaml"),
    (Action::Save, "save record json"),
    (Action::NewEntry, "new add create custom own"),
    (Action::Copy, "copy clipboard yank"),
    (Action::Demos, "tours demos"),
];

/// Opens the palette with the complete list.
pub(in crate::tui) fn open(app: &mut App) {
    let palette = Palette { matches: matches(app, "").0, ..Palette::default() };
    app.overlay = Some(Overlay::Palette(palette));
}

/// Updates the text and the matches.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(Overlay::Palette(mut palette)) = app.overlay.take() else { return };
    let before = palette.line.text().to_owned();
    change(&mut palette.line);
    if palette.line.text() != before {
        (palette.matches, palette.trouble) = matches(app, palette.line.text());
        palette.cursor = 0;
    }
    app.overlay = Some(Overlay::Palette(palette));
}

/// Runs the command under the cursor. If the command stands for a key of the mode below the palette, returns its action
/// for the caller to perform.
#[must_use]
pub(in crate::tui) fn accept(app: &mut App, effects: &mut Vec<Effect>) -> Option<Action> {
    let Some(Overlay::Palette(palette)) = app.overlay.take() else { return None };
    let Some(command) = palette.matches.get(palette.cursor).cloned() else {
        // The text stays so that it can be corrected.
        app.overlay = Some(Overlay::Palette(palette));
        return None;
    };
    match command.deed {
        CommandAction::Ask(question) => asking::ask(app, &question, effects),
        CommandAction::Question(text) => assistant::ask(app, &text),
        CommandAction::Explain(metric) => {
            app.figure = metric;
            showing::explain(app, effects);
        }
        CommandAction::Knob(knob) => finder::go(app, &Place::Knob(knob)),
        CommandAction::Action(action) => return Some(action),
        CommandAction::Theme(index) => {
            app.theme = index;
            let name = app.theme().map(|theme| theme.name().to_owned()).unwrap_or_default();
            status::note(app, format!("theme: {name}"), effects);
        }
        CommandAction::Sweep(across, against) => {
            sweep::choose(app, Some(across), against);
            if app.view != View::Sweep {
                return Some(Action::Show(View::Sweep));
            }
        }
        CommandAction::Point(index) => edits::go_to(app, index, effects),
        CommandAction::Tour(index) => {
            if let Some(demo) = app.demos.get(index).cloned() {
                tour::begin(app, demo, None, effects);
            }
        }
    }
    None
}

/// Every command of the mode below the palette, then points of the history, sweeps, themes and tours.
pub(in crate::tui) fn commands(app: &App) -> Vec<Command> {
    let mut seen = HashSet::new();
    let mut all: Vec<Command> = keymap::rows(app.mode_below())
        .filter(|row| !matches!(row.action, Action::Palette | Action::After(_)) && seen.insert(row.action))
        .map(|row| {
            let name = match row.action {
                Action::Show(view) => view.name(),
                Action::Quit => "quit",
                Action::Help => "help",
                _ => row.hint.unwrap_or_default(),
            };
            // Skip names that the help text begins with.
            let text = if row.help.starts_with(name) { row.help.to_owned() } else { format!("{name}: {}", row.help) };
            Command { text, keys: row.keys, deed: CommandAction::Action(row.action) }
        })
        .collect();
    let themes = app.themes.iter().enumerate().map(|(index, theme)| Command {
        text: format!("theme {}: {}", theme.name(), theme.description()),
        keys: &[],
        deed: CommandAction::Theme(index),
    });
    let tours = app.demos.iter().enumerate().map(|(index, demo)| Command {
        text: format!("tour: {}", demo.title),
        keys: &[],
        deed: CommandAction::Tour(index),
    });
    let (own, seconds) = (sweep::across(app), sweep::seconds(app));
    let sweeps = sweep::knobs(&app.answer).into_iter().flat_map(|knob| {
        let over =
            Command { text: format!("sweep over {}", knob.name()), keys: &[], deed: CommandAction::Sweep(knob, None) };
        let against = own.filter(|_| app.view == View::Sweep && seconds.contains(&knob)).map(|own| Command {
            text: format!("sweep against {}: {} across, {} up", knob.name(), own.name(), knob.name()),
            keys: &[],
            deed: CommandAction::Sweep(own, Some(knob)),
        });
        std::iter::once(over).chain(against)
    });
    all.extend(app.points.iter().enumerate().map(|(index, point)| Command {
        text: format!("point {}: {}", point.name, edits::describe_changes(&app.answer, &app.now.setup, &point.setup)),
        keys: &[],
        deed: CommandAction::Point(index),
    }));
    all.extend(sweeps);
    all.extend(themes);
    all.extend(tours);
    all
}

/// Synonyms for a command.
fn synonyms(command: &Command) -> String {
    match command.deed {
        CommandAction::Action(Action::Show(view)) => view.spec().synonyms.to_owned(),
        CommandAction::Action(action) => {
            SYNONYMS.iter().find(|(known, _)| *known == action).map_or("", |(_, words)| words).to_owned()
        }
        CommandAction::Explain(metric) if matches!(metric.id, MetricId::KgCo2ePer1mTokens | MetricId::KgCo2ePerRun) => {
            format!("{} carbon emissions", metric.name)
        }
        CommandAction::Explain(metric) => metric.name.to_owned(),
        CommandAction::Knob(knob) => knob.spec().aliases.join(" "),
        CommandAction::Theme(_) => "mode colors".to_owned(),
        _ => String::new(),
    }
}

/// Rank of a command for the typed words, smaller is better; `None` if a word does not match.
fn match_rank(command: &Command, words: &[String]) -> Option<(u8, usize)> {
    let text = command.text.to_lowercase();
    let (name, help) = text.split_once(": ").unwrap_or((&text, ""));
    let also = synonyms(command);
    let all = || name.split([' ', ',', ';', '-']).chain(also.split([' ', '_']));
    let typed = words.join(" ");
    let kind = match command.deed {
        CommandAction::Action(_) => 0,
        CommandAction::Explain(_) => 1,
        CommandAction::Knob(_) => 3,
        _ => 2,
    };
    let tier = match () {
        () if name == typed || also == typed || also.split(' ').next() == Some(&typed) => 0,
        () if name.starts_with(&typed) || also.starts_with(&typed) => 1,
        () if words.iter().all(|word| all().any(|known| known.starts_with(word.as_str()))) => 2,
        () if words.iter().all(|word| name.contains(word.as_str()) || also.contains(word.as_str())) => 3,
        () if words.iter().all(|word| text.contains(word.as_str()) || also.contains(word.as_str())) => 4,
        () if words.len() == 1 && is_subsequence(&typed, name.split(' ').next().unwrap_or(name)) => 5,
        () => return None,
    };
    Some((tier, 10 * kind + usize::from(!help.is_empty())))
}

/// Whether `word` is a subsequence of `text` that starts with the same letter, such as `brk` of `breakdown`.
fn is_subsequence(word: &str, text: &str) -> bool {
    let mut rest = text.chars();
    word.chars().next() == text.chars().next() && word.chars().all(|c| rest.any(|other| other == c))
}

/// A typed question as a row of the palette.
fn row_of(question: Question) -> Option<Command> {
    let lead = match question.intent() {
        Intent::Nothing => return None,
        Intent::Race => "race",
        Intent::Jump => "go to",
        Intent::Set => "set",
    };
    let text = format!("{lead}: {question}");
    Some(Command { text, keys: &["Enter"], deed: CommandAction::Ask(Arc::new(question)) })
}

/// A question for the assistant: the text after `ask`, or a question that is not a command.
fn in_words(typed: &str, nothing_else: bool) -> Option<String> {
    let typed = typed.trim();
    let behind = typed.strip_prefix("ask ").or_else(|| typed.strip_prefix("ask:")).map(meant::bare);
    let several = typed.split_whitespace().count() > 2;
    let question = || ((several || nothing_else) && offline::is_question(typed)).then_some(typed);
    behind.or_else(question).filter(|question| !question.is_empty()).map(str::to_owned)
}

/// The matches, best first, or the reason why there are none.
fn matches(app: &App, typed: &str) -> (Vec<Command>, Option<String>) {
    let mut all = commands(app);
    // `set tp 8` is an alias of `tp 8`.
    let typed = typed.strip_prefix("set ").filter(|rest| rest.contains([' ', '='])).unwrap_or(typed);
    let words: Vec<String> = typed.to_lowercase().split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        return (all, None);
    }
    all.extend(app.answer.metrics().map(|metric| Command {
        text: format!("{}: explain {}", metric.label, metric.help),
        keys: &[],
        deed: CommandAction::Explain(metric),
    }));
    let mode = app.answer.mode();
    all.extend(KNOBS.iter().filter(|spec| spec.mode.is_none_or(|of| of == mode)).map(|spec| Command {
        text: format!("{}: {}", spec.name, spec.help),
        keys: &[],
        deed: CommandAction::Knob(spec.knob),
    }));
    let mut ranked: Vec<((u8, usize), Command)> =
        all.iter().filter_map(|command| Some((match_rank(command, &words)?, command.clone()))).collect();
    sort::by_key(&mut ranked, |(tier, _)| *tier);
    let known = Known::of(&app.library);
    let parsed = parse(typed, &known);
    let trouble = parsed.as_ref().err().map(ToString::to_string);
    // A command with that name comes before a question with that text.
    let named = ranked.first().is_some_and(|((tier, _), _)| *tier <= 1);
    let mut matches: Vec<Command> = ranked.into_iter().map(|(_, command)| command).collect();
    if let Some(command) = parsed.as_ref().ok().cloned().and_then(row_of) {
        matches.insert(usize::from(named).min(matches.len()), command);
    }
    if let Some(question) = in_words(typed, matches.is_empty()) {
        let text = format!("ask: {question}");
        matches.insert(0, Command { text, keys: &["Enter"], deed: CommandAction::Question(question) });
    }
    // The text names a metric that does not apply to this scenario. Commands that merely mention it are dropped.
    let silent = metric::named(typed).filter(|metric| !named && !app.answer.metrics().any(|known| known == *metric));
    if silent.is_some() {
        matches.clear();
    }
    // For an unknown workload or target, the error with the known names is more helpful than other commands.
    let misnamed = matches!(parsed, Err(ParseError::NoWorkload { .. } | ParseError::NoTarget { .. }));
    if silent.is_none() && !misnamed && matches.is_empty() {
        let all = all.into_iter().map(|command| (synonyms(&command), command)).map(|(also, command)| (command, also));
        matches = meant::suggest(typed, &known, all.collect());
    }
    let silent = silent.map(|metric| format!("{} does not apply to this scenario: {}", metric.label, metric.help));
    let trouble = silent.or(trouble).filter(|_| matches.is_empty());
    (matches, trouble)
}

#[cfg(test)]
mod tests {
    use crate::tui::app::Overlay;
    use crate::tui::testing::TestApp;

    /// The rows of the palette after something was typed.
    fn rows(typed: &str) -> Vec<String> {
        let mut hands = TestApp::new();
        hands.keys(":").keys(typed);
        match &hands.app.overlay {
            Some(Overlay::Palette(palette)) => palette.matches.iter().map(|command| command.text.clone()).collect(),
            other => vec![format!("{other:?}")],
        }
    }

    #[test]
    fn palette_ranks_the_intended_command_first() {
        let expected = [
            ("help", "help: all keys"),
            ("quit", "quit"),
            ("reset", "reset"),
            ("race", "race"),
            ("roofline", "breakdown"),
            ("tp=4", "set: tp=4"),
            ("tp 4", "set: tp=4"),
            ("set tp 4", "set: tp=4"),
            ("unmark", "unmark"),
            ("undo", "undo"),
            ("brk", "breakdown"),
            ("cheapest tpot under 50ms", "race: cheapest tpot<50ms"),
            ("pipeline stages", "pp: "),
            ("fp8", "set: precision=fp8"),
        ];
        for (typed, first) in expected {
            let rows = rows(typed);
            assert!(rows.first().is_some_and(|row| row.starts_with(first)), "{typed}: {rows:?}");
        }
        assert!(rows("mfu").first().is_some_and(|row| row.starts_with("MFU PaLM: explain")), "{:?}", rows("mfu"));
    }

    /// Users seldom type the exact name of a command. Each text leads to a relevant command within the first three
    /// rows.
    #[test]
    fn paraphrases_match_a_relevant_command_in_the_first_three_rows() {
        let expected = [
            ("upgrade vllm", "software releases"),
            ("newer software version", "software releases"),
            ("disaggregated prefill", "prefill_accelerators"),
            ("disaggregation", "prefill_accelerators"),
            ("ask \"what is kv cache\"", "ask: what is kv cache"),
            ("what is kv cache", "ask: what is kv cache"),
            ("switch to 8xH100", "go to: on 8xh100"),
            ("please set tp to 8", "set: tp=8"),
            ("change the batch size", "microbatch"),
            ("use a bigger batch", "microbatch"),
            ("enable cuda graphs", "cuda_graphs"),
            ("turn on chunked prefill", "chunked_prefill"),
            ("quantized weights", "precision"),
            ("quantize the kv cache", "kv_precision"),
            ("speculative decoding", "speculative"),
            ("show me the bottleneck", "ask: show me the bottleneck"),
            ("where does the time go", "ask: where does the time go"),
            ("cheaper price", "price"),
            ("energy price", "usd_per_kwh"),
            ("carbon footprint", "CO2"),
            ("export to csv", "export"),
            ("make a report", "export"),
            ("launch on slurm", "launch files"),
            ("write a slurm script", "launch files"),
            ("save my changes", "save"),
            ("undo that", "undo"),
            ("dark mode", "theme dark"),
            ("show a plot", "sweep"),
            ("simulate events", "timeline"),
            ("compare gpus", "compare"),
            ("add my cluster", "add an entry"),
            ("which gpus do i have", "detect"),
            ("what fits", "what runs"),
            ("recommend improvements", "advice"),
            ("checkpoint interval", "checkpoint"),
            ("global batch size", "global"),
            ("activation checkpointing", "recompute"),
            ("expert parallelism", "ep"),
            ("number of nodes", "num_nodes"),
            ("context length", "seq"),
        ];
        let mut wrong = Vec::new();
        for (typed, about) in expected {
            let mut hands = TestApp::new();
            if !["batch", "checkpoint", "activation", "context"].iter().any(|word| typed.contains(word)) {
                hands.keys("Wjj");
            }
            hands.keys(":").keys(typed);
            let Some(Overlay::Palette(palette)) = &hands.app.overlay else { unreachable!("{typed}") };
            let first: Vec<&str> = palette.matches.iter().take(3).map(|command| command.text.as_str()).collect();
            if !first.iter().any(|row| row.contains(about)) {
                wrong.push(format!("{typed} ({about}): {first:?} {:?}", palette.trouble));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// A question with a misspelled word gets an error that names the word, not other commands.
    #[test]
    fn misspelled_question_yields_an_error_that_names_the_word() {
        let mut hands = TestApp::new();
        hands.keys(":serve 70b cheapest undr 50ms");
        let Some(Overlay::Palette(palette)) = &hands.app.overlay else { unreachable!("the palette closed") };
        assert!(palette.matches.is_empty() && palette.trouble.as_ref().is_some_and(|text| text.contains("undr")));
    }

    #[test]
    fn unrecognized_palette_input_shows_an_error_and_keeps_the_palette_open() {
        let mut hands = TestApp::new();
        hands.keys(":goodput");
        assert!(hands.text().contains("goodput does not apply to this scenario"), "{}", hands.text());
        hands.keys("<Esc>:zzqx");
        assert!(hands.text().contains("unknown word `zzqx`"), "{}", hands.text());
        hands.keys("<Enter>");
        assert!(matches!(hands.app.overlay, Some(Overlay::Palette(_))), "what was typed stays");
    }
}
