//! Exports of Weights & Biases: the history as JSON Lines or CSV (`run.history()`, `wandb-history.jsonl`), and the CSV
//! of a chart exported from the browser (`"Step","run - train/loss",…`).

use serde_json::Value;

use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Context, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::scalars::Scalars;

/// Recognizer of these exports.
#[derive(Debug, Default)]
pub struct Wandb {
    scalars: Scalars,
    /// The columns of the current table, without the name of the run.
    columns: Vec<String>,
    step: usize,
    time: Option<usize>,
}

/// Splits a line of CSV into unquoted cells.
fn cells(line: &str) -> Vec<String> {
    let (mut out, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.trim_end().chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    out.push(cell);
    out
}

impl Wandb {
    /// Parses a header. Returns the column names, and the indices of the step and the time column.
    fn header(cells: &[String]) -> Option<(Vec<String>, usize, Option<usize>)> {
        let at = |name: &str| cells.iter().position(|cell| cell.trim() == name);
        let chart = || at("Step").filter(|_| cells.iter().any(|cell| cell.ends_with("__MIN")));
        let step = at("_step").or_else(chart)?;
        // A chart of several runs has separate columns for each. It cannot be read as one run.
        let runs: std::collections::BTreeSet<&str> =
            cells.iter().filter_map(|cell| Some(cell.split_once(" - ")?.0)).collect();
        if runs.len() > 1 {
            return None;
        }
        let name = |cell: &String| cell.split_once(" - ").map_or(cell.as_str(), |(_, name)| name).trim().to_owned();
        Some((cells.iter().map(name).collect(), step, at("_timestamp")))
    }
}

impl Recognizer for Wandb {
    fn triggers(&self) -> &'static [&'static str] {
        &["_step,", "\"_step\"", ",_step", "__MIN"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        if line.text.trim_start().starts_with('{') {
            return Outcome::NotRecognized;
        }
        let cells = cells(line.text);
        if self.columns.is_empty() {
            let Some((columns, step, time)) = Wandb::header(&cells) else { return Outcome::NotRecognized };
            (self.columns, self.step, self.time) = (columns, step, time);
            return Outcome::Settings;
        }
        if cells.len() != self.columns.len() {
            if !line.whole {
                return Outcome::Unusable("a truncated row");
            }
            self.columns.clear();
            return Outcome::NotRecognized;
        }
        let number = |at: usize| cells.get(at).and_then(|cell| cell.trim().parse::<f64>().ok());
        let step = number(self.step).filter(|step| *step >= 0.0 && step.fract() == 0.0 && *step < 1e15);
        let Some(step) = step else { return Outcome::Unusable("a row without a step") };
        let at = self.time.and_then(number);
        let mut took = false;
        for (place, name) in self.columns.iter().enumerate() {
            if let Some(value) = number(place).filter(|_| place != self.step && !name.starts_with('_')) {
                took |= self.scalars.take(name, step as u64, value, at, line.number);
            }
        }
        if took { Outcome::Recognized } else { Outcome::Unusable("a row without training scalars") }
    }

    fn in_block(&self) -> bool {
        !self.columns.is_empty()
    }

    fn in_table(&self) -> bool {
        true
    }

    fn blank_line(&mut self) {
        self.columns.clear();
    }

    fn json(&mut self, document: &Value, line: u64) -> Outcome {
        let Some(fields) = document.as_object() else { return Outcome::NotRecognized };
        let Some(step) = document.get("_step").and_then(Value::as_u64) else { return Outcome::NotRecognized };
        if !["_timestamp", "_runtime"].iter().any(|name| fields.contains_key(*name)) {
            return Outcome::NotRecognized;
        }
        let at = ["_timestamp", "_runtime"].iter().find_map(|name| json_number(document.get(*name)?));
        let mut took = false;
        for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with('_')) {
            if let Some(value) = json_number(value) {
                took |= self.scalars.take(name, step, value, at, line);
            }
        }
        if took { Outcome::Recognized } else { Outcome::Unusable("a record without training scalars") }
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.scalars.finish("wandb", "wandb-history", context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
    use crate::{Context, ingest};

    fn read(text: &str) -> crate::Ingested {
        ingest(text.as_bytes(), &Context::default()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn wandb_history_parses_alike_from_json_lines_and_csv() {
        let (mut lines, mut table) =
            (String::new(), ",_step,_runtime,_timestamp,train/loss,perf/step_time_s\n".to_owned());
        for n in 0..12 {
            let (loss, seconds) = (9.0 - 0.25 * f64::from(n), if n == 0 { 20.0 } else { 1.5 });
            lines += &format!(
                "{{\"train/loss\": {loss}, \"perf/step_time_s\": {seconds}, \"_step\": {n}, \"_runtime\": {n}.5, \"_timestamp\": {}.25}}\n",
                1_700_000_000 + n
            );
            table += &format!("{n},{n},{n}.5,{}.25,{loss},{seconds}\n", 1_700_000_000 + n);
        }
        for text in [lines, table] {
            let ingested = read(&text);
            let reading = &ingested.readings[0];
            assert_eq!((reading.tool, reading.runs[0].n), ("wandb", 12));
            assert_eq!(reading.facts.get("step_time_s").unwrap()["median_no_warmup"], 1.5);
            assert_eq!(reading.runs[0].loss.first(), Some(9.0));
        }
    }

    #[test]
    fn wandb_chart_table_ignores_min_and_max_columns() {
        let mut text =
            "\"Step\",\"run one, a - train/loss\",\"run one, a - train/loss__MIN\",\"run one, a - train/loss__MAX\"\n"
                .to_owned();
        for n in 0..5 {
            text += &format!("\"{n}\",\"{}\",\"0.5\",\"99\"\n", 4 - n);
        }
        let ingested = read(&text);
        let run = &ingested.readings[0].runs[0];
        assert_eq!((run.n, run.loss.first(), run.loss.last()), (5, Some(4.0), Some(0.0)));
    }
}
