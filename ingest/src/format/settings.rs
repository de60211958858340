//! Configuration dumps: Megatron's dotted argument list, YAML of NeMo and Primus, JSON of DeepSpeed, keyword lists of
//! dataclasses and the summary of the Hugging Face Trainer. They are no measurement, but say what was measured.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::lines::Line;
use crate::reading::{Config, Context, Origin, Reading, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::text;

/// Names that tools have for settings, and ours.
const NAMES: [(&str, &str); 48] = [
    ("world_size", "num_gpus"),
    ("data_parallel_size", "data_parallel"),
    ("tensor_model_parallel_size", "tensor_parallel"),
    ("pipeline_model_parallel_size", "pipeline_parallel"),
    ("virtual_pipeline_model_parallel_size", "virtual_pipeline_parallel"),
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

/// All names at once, of those that begin at one place the longest.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let names = NAMES.iter().map(|(name, _)| name);
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(names).ok()
});

/// Words in lines of interest. Shorter names would be found everywhere.
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

/// Gathers configuration.
#[derive(Debug, Default)]
pub struct Settings {
    config: Config,
}

impl Recogniser for Settings {
    fn triggers(&self) -> &'static [&'static str] {
        TRIGGERS
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        // Step lines and whole command lines of other tools are longer than any line of a dump.
        if line.text.len() > 4096 {
            return Outcome::No;
        }
        let mut found = false;
        let Some(words) = &*WORDS else { return Outcome::No };
        for word in words.find_iter(line.text) {
            let Some((name, ours)) = NAMES.get(word.pattern().as_usize()) else { continue };
            let before = line.text.get(..word.start()).unwrap_or_default();
            let behind = line.text.get(word.end()..).unwrap_or_default();
            let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !before.ends_with(inside) && !behind.starts_with(inside) {
                found |= self.assigned(name, ours, behind);
            }
        }
        if found { Outcome::Noted } else { Outcome::No }
    }

    fn settings(&self) -> Option<Config> {
        Some(self.config.clone())
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        Vec::new()
    }
}

impl Settings {
    /// Reads what is assigned to a name: behind dots, a colon, an equals sign, or as an argument on a command line.
    fn assigned(&mut self, name: &str, ours: &'static str, behind: &str) -> bool {
        let value = behind.strip_prefix(['"', '\'']).unwrap_or(behind);
        let value = value.trim_start_matches([' ', '\t']);
        let value = if let Some(dotted) = value.strip_prefix("...") {
            dotted.trim_start_matches('.')
        } else if let Some(value) = value.strip_prefix([':', '=']) {
            value
        } else if behind.starts_with(' ')
            && name.contains("batch_size") | name.contains("_len") | name.contains("stage")
        {
            value
        } else {
            return false;
        };
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let word: String = value.chars().take_while(|c| !c.is_whitespace() && !",\"')}|;".contains(*c)).collect();
        let setting: Value = match (ours, word.as_str()) {
            ("precision", "True" | "true") => name.into(),
            ("precision", "hybrid" | "e4m3") if name == "fp8" => name.into(),
            ("precision", _) | (_, "" | "None" | "null" | "auto") => return false,
            ("sequence_parallel", "True" | "true") => true.into(),
            ("sequence_parallel", "False" | "false") => false.into(),
            ("sequence_parallel", _) => return false,
            ("model", word) => word.into(),
            _ => match text::leading(&word) {
                Some((value, "")) if value.is_finite() && value >= 0.0 => tidy(value),
                _ => return false,
            },
        };
        self.config.note(ours, setting, Origin::File);
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn dumps_of_several_tools_say_the_same() {
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
            let config = settings.settings().unwrap_or_default();
            assert_eq!(config.get("tensor_parallel"), Some(4.0), "{text}");
            assert_eq!(config.get("seq_len"), Some(2048.0), "{text}");
        }
    }
}
