//! Other output of Megatron-LM and its derivatives, besides the iterations: memory of ranks, sizes, validation.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::reading::{Config, Context, Facts, Origin};
use crate::text::{has, number, number_after, parse_integer, parse_leading_number, text_after};
use crate::training::MAX_LISTED;

/// Values stated by such lines.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    ranks: BTreeSet<u64>,
    memory_records: u64,
    max_allocated: Option<f64>,
    max_reserved: Option<f64>,
    validation: Vec<Value>,
    footprint_mb: Option<f64>,
    shard_billion: Option<f64>,
}

impl Surroundings {
    /// Parses a line. Returns whether it contained anything known.
    pub(super) fn read(&mut self, text: &str, config: &mut Config) -> bool {
        let mut found = false;
        let mut rest = text;
        while let Some(value) = text_after(rest, "max allocated:") {
            let before = rest.get(..rest.len() - value.len()).unwrap_or_default();
            let rank = before.rfind("[Rank").and_then(|at| before.get(at + 5..)).and_then(|rank| {
                // `[Rank 3]`. Some forks print `[Rank (0, 1)]`, which is not a number.
                parse_integer(rank)
            });
            if let Some((figure, unit)) = parse_leading_number(value).filter(|(figure, _)| figure.is_finite()) {
                let gigabytes = unit.trim_start().starts_with('G');
                let megabytes = if gigabytes { figure * 1024.0 } else { figure };
                found = true;
                self.memory_records += 1;
                self.max_allocated = Some(self.max_allocated.map_or(megabytes, |known| known.max(megabytes)));
                if self.ranks.len() < 1 << 20 {
                    self.ranks.extend(rank);
                }
            }
            if let Some(reserved) = number_after(value, "max reserved:") {
                self.max_reserved = Some(self.max_reserved.map_or(reserved, |known: f64| known.max(reserved)));
            }
            rest = value;
        }
        if let Some(value) = text_after(text, "Total number of parameters in billions:") {
            config.number("parameters_billion", number(value), Origin::File);
            found = true;
        }
        if let Some(value) = text_after(text, "number of parameters on (tensor, pipeline) model parallel rank (0, 0):")
        {
            self.shard_billion = number(value).map(|parameters| parameters / 1e9);
            found = true;
        }
        if let Some(value) = text_after(text, "Number of parameters in most loaded shard in billions:") {
            self.shard_billion = number(value);
            found = true;
        }
        if let Some(value) = number_after(text, "weight and optimizer=").filter(|_| has(text, "Theoretical memory")) {
            self.footprint_mb = Some(value);
            found = true;
        }
        // File names of sample indices contain the sequence length: `…_40ns_1024sl_1234s_doc_idx.npy`.
        if let Some(at) = text.find("sl_").filter(|_| has(text, "indexmap") || has(text, "_idx.npy")) {
            let digits = text.get(..at).unwrap_or_default();
            let digits = digits.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            config.number("seq_len", digits.parse().ok(), Origin::File);
            found = true;
        }
        if let Some(rest) = text_after(text, "validation loss at iteration")
            && let (Some(iteration), Some(loss)) = (parse_integer(rest), number_after(rest, "loss value:"))
        {
            if self.validation.len() < MAX_LISTED {
                self.validation.push(json!([iteration, loss]));
            }
            found = true;
        }
        found
    }

    /// Infers the number of GPUs if it is not stated.
    pub(super) fn gpus(&self, config: &mut Config, context: &Context) {
        let hint = |name| context.number_in_file_name(name);
        if let (Some(tp), Some(pp), Some(dp)) = (hint("tp"), hint("pp"), hint("dp")) {
            config.number("num_gpus", Some(tp * pp * dp), Origin::FileName);
        }
        for (name, short) in [("tensor_parallel", "tp"), ("pipeline_parallel", "pp"), ("data_parallel", "dp")] {
            config.number(name, hint(short), Origin::FileName);
        }
        // The ranks with data-parallel rank 0, one for every TP and PP rank, print their memory. More than eight
        // contiguous ranks cannot be one TP group within a node.
        let contiguous = self.ranks.len() > 8 && self.ranks.last() == Some(&(self.ranks.len() as u64 - 1));
        if contiguous {
            let how = Origin::Derived("number of ranks that print their memory");
            config.number("num_gpus", Some(self.ranks.len() as f64), how);
        }
        // Megatron-LM's theoretical_memory_usage.py: 18 bytes per parameter without the distributed optimizer, 6 +
        // 12/DP with it. The most loaded shard has all parameters if TP x PP is 1.
        if let (Some(megabytes), Some(shard)) = (self.footprint_mb, self.shard_billion) {
            let bytes = megabytes * 1_048_576.0 / (shard * 1e9);
            let dp = 12.0 / (bytes - 6.0);
            // Number of shards of the model. Discarded if the shards are uneven (embeddings on one stage).
            let shards = config.get("parameters_billion").map(|all| all / shard);
            let shards = shards.filter(|shards| (shards / shards.round() - 1.0).abs() < 0.02).map(f64::round);
            if bytes > 6.0 && bytes < 17.5 && (dp - dp.round()).abs() < 0.02 * dp {
                let how = Origin::Derived("weights and optimizer states take 6 + 12/DP bytes per parameter");
                config.number("data_parallel", Some(dp.round()), how);
                config.number("num_gpus", shards.map(|shards| shards * dp.round()), how);
            }
        }
    }

    /// Adds facts on the memory printed by ranks.
    pub(super) fn memory(&self, facts: &mut Facts) {
        if self.memory_records > 0 {
            facts.set("rank_memory_records", self.memory_records);
            facts.set_optional("max_allocated_mb_max", self.max_allocated);
            facts.set_optional("max_reserved_mb_max", self.max_reserved);
        }
    }

    /// Returns pairs of iteration and validation loss.
    pub(super) fn validation(self) -> Vec<Value> {
        self.validation
    }
}
