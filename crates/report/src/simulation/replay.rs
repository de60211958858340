//! Output of a recorded step and its prediction on other targets.

use atlas_core::sort;
use atlas_core::units;
use atlas_ingest::step_trace::StepTrace;
use atlas_plan::simulation::replay::{Answer, Shares};
use serde_json::{Value, json};

use crate::csv;
use crate::table::{Table, left, right};

/// Answers by target name; the name is empty if there is no target.
type Answers = [(String, Answer)];

/// Renders the step as text.
#[must_use]
pub fn render(label: &str, trace: &StepTrace, answers: &Answers) -> String {
    let mut text = format!("{label}: {}, {} tasks", trace.format, trace.tasks.len());
    if let Some((rank, world)) = trace.rank {
        text += &format!(", rank {rank} of {world}");
    }
    if let Some((device, _)) = &trace.device {
        text += &format!(", {device}");
    }
    if trace.steps > 1 {
        text += &format!("; median step of {}", trace.steps);
    }
    text += "\n\n";
    let recorded = answers.iter().find_map(|(_, answer)| answer.recorded);
    let targets: Vec<(&str, Shares)> =
        answers.iter().filter_map(|(name, answer)| Some((name.as_str(), answer.target?))).collect();
    let columns = recorded.iter().map(|_| "recorded").chain(targets.iter().map(|(name, _)| *name));
    let head = std::iter::once(left("")).chain(columns.map(right));
    let mut table = Table::new(head);
    let all: Vec<Shares> = recorded.into_iter().chain(targets.iter().map(|(_, shares)| *shares)).collect();
    for (name, get) in ROWS {
        table.row(std::iter::once(name.to_owned()).chain(all.iter().map(|shares| units::duration(get(shares)))));
    }
    text += &table.render();
    for (name, answer) in answers.iter().filter(|(_, answer)| !answer.exchanges.is_empty()) {
        let modeled = if name.is_empty() { "" } else { name.as_str() };
        let head = [left("collectives"), right("bytes"), right("ranks"), right("times")];
        let head = head.into_iter().chain([right("recorded, each"), right(modeled)]);
        let mut table = Table::new(head);
        for e in &answer.exchanges {
            let bytes = e.bytes.map_or_else(|| "not stated".to_owned(), units::memory);
            let shown = |seconds: Option<f64>| seconds.map_or_else(String::new, units::duration);
            let cells = [bytes, e.ranks.to_string(), e.count.to_string(), shown(e.recorded_s), shown(e.modeled_s)];
            table.row(std::iter::once(e.collective.to_owned()).chain(cells));
        }
        text += "\n";
        text += &table.render();
    }
    let mut notes: Vec<&String> = answers.iter().flat_map(|(_, answer)| &answer.notes).collect();
    notes.dedup();
    notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

/// Getter of one of the shares.
type Part = fn(&Shares) -> f64;

/// Shares shown for a step, with their names.
const ROWS: [(&str, Part); 5] = [
    ("step", |shares| shares.step_s),
    ("kernels", |shares| shares.compute_s),
    ("collectives", |shares| shares.communication_s),
    ("  exposed", |shares| shares.exposed_communication_s),
    ("idle", |shares| shares.idle_s),
];

/// Returns the step as a JSON value.
#[must_use]
pub fn document(label: &str, trace: &StepTrace, answers: &Answers) -> Value {
    let targets = answers.iter().filter(|(name, _)| !name.is_empty()).map(|(name, answer)| {
        (name.clone(), json!({"step": answer.target, "exchanges": answer.exchanges, "notes": answer.notes}))
    });
    let targets: serde_json::Map<String, Value> = sort::collect_unsorted(targets);
    json!({
        "trace": label,
        "format": trace.format,
        "tasks": trace.tasks.len(),
        "steps": trace.steps,
        "device": trace.device.as_ref().map(|(name, _)| name),
        "rank": trace.rank.map(|(rank, _)| rank),
        "ranks": trace.rank.map(|(_, ranks)| ranks),
        "recorded": answers.iter().find_map(|(_, answer)| answer.recorded),
        "exchanges": answers.first().map(|(_, answer)| &answer.exchanges),
        "notes": answers.first().map(|(_, answer)| &answer.notes),
        "targets": targets,
    })
}

/// Returns the collectives as CSV.
#[must_use]
pub fn csv_of(answers: &Answers) -> String {
    let mut text = csv::line(["target", "collective", "bytes", "ranks", "count", "recorded_s", "modeled_s"]);
    for (name, answer) in answers {
        for e in &answer.exchanges {
            let cells = [
                name.clone(),
                e.collective.to_owned(),
                csv::optional(e.bytes),
                e.ranks.to_string(),
                e.count.to_string(),
                csv::optional(e.recorded_s),
                csv::optional(e.modeled_s),
            ];
            text += &csv::line(&cells);
        }
    }
    text
}
