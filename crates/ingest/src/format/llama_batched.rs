//! Tables and JSON lines of llama.cpp's `llama-batched-bench` and `llama-sweep-bench`: prefill and decode of several
//! concurrent sequences, or at increasing depths of the KV cache.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::markdown;
use crate::reading::{Config, Context, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{has, number_after, parse_leading_number};
use crate::training::MAX_LISTED;

/// Columns of the table, names in the JSON, and our names.
const COLUMNS: [(&str, &str, &str); 10] = [
    ("PP", "pp", "n_prompt"),
    ("TG", "tg", "n_gen"),
    ("B", "pl", "batch_size"),
    ("N_KV", "n_kv", "n_kv"),
    ("T_PP s", "t_pp", "prompt_time_s"),
    ("S_PP t/s", "speed_pp", "prompt_tokens_per_s"),
    ("T_TG s", "t_tg", "gen_time_s"),
    ("S_TG t/s", "speed_tg", "gen_tokens_per_s"),
    ("T s", "t", "total_time_s"),
    ("S t/s", "speed", "tokens_per_s"),
];

/// Recognizer of both tools.
#[derive(Debug, Default)]
pub struct LlamaBatched {
    batched: Vec<Value>,
    sweep: Vec<Value>,
    /// Content of each column of the open table.
    columns: Vec<Option<&'static str>>,
    /// The arguments of the current run.
    arguments: Map<String, Value>,
}

impl Recognizer for LlamaBatched {
    fn triggers(&self) -> &'static [&'static str] {
        &["S_TG t/s |", "n_kv_max = "]
    }

    fn in_table(&self) -> bool {
        !self.columns.is_empty()
    }

    fn blank_line(&mut self) {
        self.columns.clear();
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if !text.starts_with('|') {
            self.columns.clear();
            if !has(text, "n_kv_max = ") {
                return Outcome::NotRecognized;
            }
            self.arguments.clear();
            for name in ["n_kv_max", "n_batch", "n_ubatch", "n_gpu_layers", "flash_attn", "is_pp_shared"] {
                if let Some(value) = number_after(text, &format!("{name} =")) {
                    self.arguments.insert(name.to_owned(), number_to_json(value));
                }
            }
            return Outcome::Settings;
        }
        let cells = markdown::cells(text);
        if cells.contains(&"S_TG t/s") {
            let of = |cell: &&str| COLUMNS.iter().find(|(name, ..)| name == cell).map(|(.., ours)| *ours);
            self.columns = cells.iter().map(of).collect();
            return Outcome::Recognized;
        }
        let other_width = "a llama.cpp table row whose number of columns differs from the header";
        if let Some(outcome) = markdown::not_values(&cells, self.columns.len(), other_width) {
            return outcome;
        }
        let mut result = Map::new();
        for (column, cell) in self.columns.iter().zip(&cells) {
            let Some(name) = column else { continue };
            let figure = parse_leading_number(cell).filter(|(value, rest)| value.is_finite() && rest.is_empty());
            let Some((value, _)) = figure else {
                // A row of words is the header of another table.
                self.columns.clear();
                return Outcome::NotRecognized;
            };
            result.insert((*name).to_owned(), number_to_json(value));
        }
        self.push(result)
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        if let Some(list) = document.as_array() {
            return Outcome::of_entries(list, |entry| self.json(entry, 0));
        }
        let figure = |name: &str| document.get(name).and_then(json_number).filter(|value| value.is_finite());
        if figure("speed_pp").is_none() || figure("speed_tg").is_none() {
            return Outcome::NotRecognized;
        }
        let mut result = Map::new();
        for (_, theirs, ours) in COLUMNS {
            if let Some(value) = figure(theirs) {
                result.insert(ours.to_owned(), number_to_json(value));
            }
        }
        self.arguments.clear();
        for name in ["n_kv_max", "n_batch", "n_ubatch", "n_gpu_layers", "flash_attn", "is_pp_shared"] {
            if let Some(value) = figure(name) {
                self.arguments.insert(name.to_owned(), number_to_json(value));
            }
        }
        self.push(result)
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let mut out = Vec::new();
        for (format, results) in [("llama-batched-bench", self.batched), ("llama-sweep-bench", self.sweep)] {
            let Some(reading) = Reading::of_results("n_records", results) else { continue };
            let mut config = Config::default();
            config.merge(&context.settings);
            out.push(Reading {
                tool: "llama_bench",
                format,
                kind: "llama_bench",
                importance: Importance::Result,
                config,
                ..reading
            });
        }
        out
    }
}

impl LlamaBatched {
    fn push(&mut self, mut result: Map<String, Value>) -> Outcome {
        if !result.contains_key("prompt_tokens_per_s") && !result.contains_key("gen_tokens_per_s") {
            return Outcome::Unusable("a llama.cpp table row without a rate");
        }
        let list = if result.contains_key("batch_size") { &mut self.batched } else { &mut self.sweep };
        if list.len() < MAX_LISTED {
            result.extend(self.arguments.iter().map(|(name, value)| (name.clone(), value.clone())));
            list.push(Value::Object(result));
        }
        Outcome::Recognized
    }
}
