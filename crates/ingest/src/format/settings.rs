//! Configuration dumps: Megatron's dotted argument list, YAML of NeMo and Primus, JSON of DeepSpeed, dataclasses
//! printed as keyword lists, and the summary of the Hugging Face Trainer. They contain no measurements, but the
//! configuration of a run.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::lines::Line;
use crate::reading::{Context, Origin, Reading, Setting, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::text;

/// Names of settings in the tools, and our names.
const NAMES: [(&str, &str); 53] = [
    ("world_size", "num_gpus"),
    ("data_parallel_size", "data_parallel"),
    ("tensor_model_parallel_size", "tensor_parallel"),
    ("pipeline_model_parallel_size", "pipeline_parallel"),
    ("virtual_pipeline_model_parallel_size", "virtual_pipeline_parallel"),
    ("model_parallel_size", "tensor_parallel"),
    ("pipe_parallel_size", "pipeline_parallel"),
    ("model-parallel-size", "tensor_parallel"),
    ("pipe-parallel-size", "pipeline_parallel"),
    ("train_micro_batch_size", "micro_batch_size"),
    ("context_parallel_size", "context_parallel"),
    ("expert_model_parallel_size", "expert_parallel"),
    ("sequence_parallel", "sequence_parallel"),
    ("micro_batch_size", "micro_batch_size"),
    ("global_batch_size", "global_batch_size"),
    ("train_batch_size", "global_batch_size"),
    ("train_micro_batch_size_per_gpu", "micro_batch_size"),
    ("gradient_accumulation_steps", "gradient_accumulation_steps"),
    ("seq_length", "seq_len"),
    ("encoder_seq_length", "seq_len"),
    ("max_seq_len", "seq_len"),
    ("num_layers", "num_layers"),
    ("num_hidden_layers", "num_layers"),
    ("hidden_size", "hidden_size"),
    ("num_attention_heads", "num_attention_heads"),
    ("padded_vocab_size", "vocab_size"),
    ("vocab_size", "vocab_size"),
    ("train_iters", "total_steps"),
    ("zero_stage", "zero_stage"),
    ("zero_optimization_stage", "zero_stage"),
    ("num_gpus_per_node", "gpus_per_node"),
    ("Instantaneous batch size per device", "micro_batch_size"),
    ("Total train batch size (w. parallel, distributed & accumulation)", "global_batch_size"),
    ("Gradient Accumulation steps", "gradient_accumulation_steps"),
    ("Total optimization steps", "total_steps"),
    ("per_device_train_batch_size", "micro_batch_size"),
    ("model_name_or_path", "model"),
    ("GLOBAL_BATCH_SIZE", "global_batch_size"),
    ("MICRO_BATCH_SIZE", "micro_batch_size"),
    ("SEQ_LENGTH", "seq_len"),
    ("sequence_length", "seq_len"),
    ("batch_accumulation_per_replica", "gradient_accumulation_steps"),
    ("tensor-model-parallel size", "tensor_parallel"),
    ("pipeline-model-parallel size", "pipeline_parallel"),
    ("context-parallel size", "context_parallel"),
    ("data-parallel size", "data_parallel"),
    ("data-parallel-size", "data_parallel"),
    ("world size", "num_gpus"),
    ("tensor-model-parallel-size", "tensor_parallel"),
    ("pipeline-model-parallel-size", "pipeline_parallel"),
    ("bf16", "precision"),
    ("fp16", "precision"),
    ("fp8", "precision"),
];

/// Searches for all names at once. The longest match is used.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let names = NAMES.iter().map(|(name, _)| name);
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(names).ok()
});

/// Trigger words. Shorter names would match too many lines.
const TRIGGERS: &[&str] = &[
    "......",
    "parallel_size",
    "parallel size",
    "parallel-size",
    "batch_size",
    "batch size",
    "BATCH_SIZE",
    "seq_length",
    "SEQ_LENGTH",
    "sequence_length",
    "max_seq_len",
    "num_layers",
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "vocab_size",
    "train_iters",
    "zero_stage",
    "zero_optimization_stage",
    "ccumulation",
    "Total optimization steps",
    "model_name_or_path",
];

/// Maximum number of settings. A longer list is not a configuration dump.
const MAX_SETTINGS: usize = 4096;

/// Collects settings.
#[derive(Debug, Default)]
pub struct Settings {
    /// Settings with their names in the file.
    stated: Vec<(&'static str, Setting)>,
}

impl Recognizer for Settings {
    fn triggers(&self) -> &'static [&'static str] {
        TRIGGERS
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let mut found = false;
        assignments(line.text, |theirs, ours, value| {
            found = true;
            let known = |(name, setting): &(&str, Setting)| *name == theirs && setting.value == value;
            if self.stated.len() < MAX_SETTINGS && !self.stated.iter().any(known) {
                let setting = Setting { name: ours, value, origin: Origin::File, line: line.number };
                self.stated.push((theirs, setting));
            }
        });
        if found { Outcome::Settings } else { Outcome::NotRecognized }
    }

    /// Whether the line states another value for a known name.
    fn contradicts(&self, line: Line<'_>) -> bool {
        let mut found = false;
        assignments(line.text, |theirs, _, value| {
            let mut stated = self.stated.iter().filter(|(name, _)| *name == theirs).peekable();
            found |= stated.peek().is_some() && !stated.any(|(_, setting)| setting.value == value);
        });
        found
    }

    fn reads_settings_only(&self) -> bool {
        true
    }

    fn settings(&self) -> Vec<Setting> {
        self.stated.iter().map(|(_, setting)| setting.clone()).collect()
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        Vec::new()
    }
}

/// Passes every assignment of a line to `each`: its name in the file, our name, and the value.
fn assignments(text: &str, mut each: impl FnMut(&'static str, &'static str, Value)) {
    // Longer lines are step lines or command lines of other tools.
    if text.len() > 4096 || is_source_code(text) {
        return;
    }
    let Some(words) = &*WORDS else { return };
    for word in words.find_iter(text) {
        let Some((name, ours)) = NAMES.get(word.pattern().as_usize()) else { continue };
        let before = text.get(..word.start()).unwrap_or_default();
        let behind = text.get(word.end()..).unwrap_or_default();
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // `args.num_layers = 12` is source code.
        if before.ends_with(inside) || before.ends_with('.') || behind.starts_with(inside) {
            continue;
        }
        if let Some(value) = parse_assigned_value(name, ours, behind) {
            each(name, ours, value);
        }
    }
}

/// Whether a line is source code rather than a setting.
fn is_source_code(text: &str) -> bool {
    let text = text.trim_ascii();
    let begins = ["def ", "return ", "assert ", "for ", "if ", "elif ", "while ", "class ", "self.", "parser.add_"];
    begins.iter().any(|word| text.starts_with(word)) || text::has(text, "self.") || text::has(text, "nn.")
}

/// Returns the value assigned to `name`, given the text after the name: after dots, a colon, an equals sign, or as a
/// command-line argument.
fn parse_assigned_value(name: &'static str, ours: &str, behind: &str) -> Option<Value> {
    let value = behind.strip_prefix(['"', '\'']).unwrap_or(behind);
    let value = value.trim_start_matches([' ', '\t']);
    let value = if let Some(dotted) = value.strip_prefix("...") {
        dotted.trim_start_matches('.')
    } else if let Some(value) = value.strip_prefix([':', '=']) {
        value
    } else if behind.starts_with(' ') && name.contains("batch_size") | name.contains("_len") | name.contains("stage") {
        value
    } else {
        return None;
    };
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| c.is_whitespace() || ",\"')}|;".contains(c)).unwrap_or(value.len());
    let word = value.get(..end).unwrap_or_default();
    match (ours, word) {
        ("precision", "True" | "true") => Some(name.into()),
        ("precision", "hybrid" | "e4m3") if name == "fp8" => Some(name.into()),
        ("precision", _) | (_, "" | "None" | "null" | "auto") => None,
        ("sequence_parallel", "True" | "true") => Some(true.into()),
        ("sequence_parallel", "False" | "false") => Some(false.into()),
        ("sequence_parallel", _) => None,
        ("model", word) => Some(word.into()),
        _ => {
            // Parse beyond the first comma, because the number may have thousands separators.
            let (number, rest) = text::parse_leading_number(value)?;
            let ends = rest.chars().next().is_none_or(|c| c.is_whitespace() || ",\"')}]|;".contains(c));
            (ends && number.is_finite() && number >= 0.0).then(|| number_to_json(number))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_dumps_of_several_tools_parse_alike() {
        for text in [
            "  tensor_model_parallel_size ...................... 4\n  seq_length ...... 2048\n  bf16 ........ True\n  fp16 .... False",
            "    tensor_model_parallel_size: 4\n    encoder_seq_length: 2048\n    bf16: true",
            "{\"tensor_model_parallel_size\": 4, \"seq_length\": 2048, \"bf16\": true}",
            "using world size: 8, data-parallel size: 2, tensor-model-parallel size: 4\nGPTConfig(seq_length=2048, bf16=True)",
        ] {
            let mut settings = Settings::default();
            for line in text.lines() {
                settings.line(Line { text: line, number: 1, whole: true });
            }
            let stated = settings.settings();
            let value =
                |name: &str| stated.iter().find(|setting| setting.name == name).map(|setting| setting.value.clone());
            assert_eq!(value("tensor_parallel"), Some(4.into()), "{text}");
            assert_eq!(value("seq_len"), Some(2048.into()), "{text}");
        }
    }
}
