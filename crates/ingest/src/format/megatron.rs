//! Iteration lines of Megatron-LM and its descendants: Megatron-DeepSpeed, Primus, MindSpeed, GPT-NeoX.
//!
//! `iteration 10/ 500000 | consumed samples: 10240 | elapsed time per iteration (ms): 13035.3 | … |`, with names and
//! units that changed over the years. Values may be pairs `instant/average` (Primus); a prefix may have a rank, a
//! date or both, and the output of another rank may be appended.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::{Value, json};

use super::megatron_layout::{Layout, LossName, Meaning};
use crate::lines::Line;
use crate::observation::Observation;
use crate::reading::{Config, Context, Origin, Reading, Weight, tidy};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{self, after, has, leading, number, number_after, whole};
use crate::training::{LISTED, Step, Training};

/// The trigger word of iteration lines.
static ELAPSED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("elapsed time per iteration"));

/// Lines whose prefix is looked at.
const PREFIXES: usize = 64;
/// Layouts that are learned: a log that goes back and forth between several is searched.
const MOST_LAYOUTS: u32 = 64;

/// The differences between descendants.
#[derive(Debug, Default, Clone, Copy)]
struct Marks {
    dated: bool,
    throughput: bool,
    mindspeed: bool,
    seconds: bool,
    deepspeed: bool,
    primus: bool,
    neox: bool,
}

/// Reads iteration lines.
#[derive(Debug, Default)]
pub struct Megatron {
    training: Training,
    config: Config,
    marks: Marks,
    dialect: Dialect,
    /// How the last line was laid out that was searched for its fields, and the dialect of such lines.
    layout: Option<(Layout, Dialect)>,
    /// Layouts so far.
    layouts: u32,
    /// Whether the current line belongs to another log.
    begins: bool,
    skipped: Option<f64>,
    nan: Option<f64>,
    consumed_tokens: [Option<f64>; 2],
    consumed_samples: Option<f64>,
    ranks: BTreeSet<u64>,
    memory_records: u64,
    max_allocated: Option<f64>,
    max_reserved: Option<f64>,
    validation: Vec<Value>,
    records: Vec<Value>,
    pairs: Vec<Value>,
    footprint_mb: Option<f64>,
    shard_billion: Option<f64>,
    world: Option<u64>,
    /// `63/64`: the rank that writes, of how many.
    rank: String,
}

/// The fields of an iteration line that the shared [`Step`] lacks.
#[derive(Debug, Default)]
struct Extras {
    pairs: serde_json::Map<String, Value>,
    tokens: Option<f64>,
    samples: Option<f64>,
    /// Memory of the device, GB.
    device_memory: Option<f64>,
    seq_len: Option<f64>,
    skipped: Option<f64>,
    nan: Option<f64>,
    dialect: Dialect,
}

/// Common properties of the lines of a descendant. A line may lack the loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Dialect {
    loss: Option<LossName>,
    seconds: Option<bool>,
    primus: Option<bool>,
}

impl Dialect {
    /// Whether two lines cannot belong to the same log.
    fn differs(self, other: Dialect) -> bool {
        fn apart<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
            matches!((a, b), (Some(a), Some(b)) if a != b)
        }
        apart(self.loss, other.loss) || apart(self.seconds, other.seconds) || apart(self.primus, other.primus)
    }
}

impl Recognizer for Megatron {
    fn triggers(&self) -> &'static [&'static str] {
        &[
            "elapsed time per iteration",
            "max allocated:",
            "number of parameters",
            "number of parameters in billions",
            "Number of parameters in most loaded shard",
            "Theoretical memory footprints",
            "validation loss at",
            "sl_",
        ]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if let Some(taken) = self.laid_out(line) {
            return taken;
        }
        if ELAPSED.find(text.as_bytes()).is_none() {
            let parameters = after(text, "Total number of parameters in billions:").and_then(number);
            if !self.training.is_empty() && self.config.differs("parameters_billion", parameters) {
                return Outcome::Begins;
            }
            return if self.about(text) { Outcome::Noted } else { Outcome::No };
        }
        let marks = self.marks;
        let taken = self.iterations(line);
        if self.begins {
            (self.marks, self.begins) = (marks, false);
            return Outcome::Begins;
        }
        // The output of another rank may follow the last bar.
        let glued = memchr::memrchr(b'|', text.as_bytes()).and_then(|at| text.get(at + 1..));
        if let Some(glued) = glued.filter(|glued| glued.len() > 8) {
            self.about(glued);
        }
        match taken {
            0 => Outcome::Skipped("an iteration line without a counter or a readable time"),
            _ => Outcome::Took,
        }
    }

    fn observed(&mut self, out: &mut Vec<Observation>) {
        self.training.observed(out);
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.training.is_empty() { Vec::new() } else { vec![self.reading(context)] }
    }
}

impl Megatron {
    /// Reads a line that is laid out as one before, once the prefixes of enough lines were looked at.
    fn laid_out(&mut self, line: Line<'_>) -> Option<Outcome> {
        let (layout, dialect) = self.layout.as_ref().filter(|_| line.whole && self.training.all().n >= PREFIXES)?;
        let dialect = *dialect;
        let mut step = Step { line: line.number, ..Step::default() };
        let mut extras = Extras { dialect, ..Extras::default() };
        let (now, planned) = layout.read(line.text, |meaning, value| {
            if let Some(slot) = slot(meaning, &mut step, &mut extras) {
                *slot = Some(if meaning == Meaning::Milliseconds { value * 1e-3 } else { value });
            }
        })?;
        (step.step, step.planned) = (Some(now), planned);
        (!self.dialect.differs(dialect) && self.take(step, extras) > 0).then_some(Outcome::Took)
    }

    /// Lines around the iterations: memory of ranks, sizes, validation.
    fn about(&mut self, text: &str) -> bool {
        let mut found = false;
        let mut rest = text;
        while let Some(value) = after(rest, "max allocated:") {
            let before = rest.get(..rest.len() - value.len()).unwrap_or_default();
            let rank = before.rfind("[Rank").and_then(|at| before.get(at + 5..)).and_then(|rank| {
                // `[Rank 3]`; `[Rank (0, 1)]` of other forks is no number.
                whole(rank)
            });
            if let Some((figure, unit)) = leading(value).filter(|(figure, _)| figure.is_finite()) {
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
        if let Some(value) = after(text, "Total number of parameters in billions:") {
            self.config.number("parameters_billion", number(value), Origin::File);
            found = true;
        }
        if let Some(value) = after(text, "number of parameters on (tensor, pipeline) model parallel rank (0, 0):") {
            self.shard_billion = number(value).map(|parameters| parameters / 1e9);
            found = true;
        }
        if let Some(value) = after(text, "Number of parameters in most loaded shard in billions:") {
            self.shard_billion = number(value);
            found = true;
        }
        if let Some(value) = number_after(text, "weight and optimizer=").filter(|_| has(text, "Theoretical memory")) {
            self.footprint_mb = Some(value);
            found = true;
        }
        // The name of an index of samples holds their length: `…_40ns_1024sl_1234s_doc_idx.npy`.
        if let Some(at) = text.find("sl_").filter(|_| has(text, "indexmap") || has(text, "_idx.npy")) {
            let digits = text.get(..at).unwrap_or_default();
            let digits = digits.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            self.config.number("seq_len", digits.parse().ok(), Origin::File);
            found = true;
        }
        if let Some(rest) = after(text, "validation loss at iteration")
            && let (Some(iteration), Some(loss)) = (whole(rest), number_after(rest, "loss value:"))
        {
            if self.validation.len() < LISTED {
                self.validation.push(json!([iteration, loss]));
            }
            found = true;
        }
        found
    }

    /// Reads the iterations of a line; returns how many.
    fn iterations(&mut self, line: Line<'_>) -> usize {
        let (mut step, mut extras) = (Step { line: line.number, ..Step::default() }, Extras::default());
        let mut taken = 0;
        let mut rest = line.text;
        while !rest.is_empty() {
            let (field, behind) = match memchr::memchr(b'|', rest.as_bytes()) {
                Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..).unwrap_or_default()),
                // A field without a bar at the end of a truncated file may be half a number.
                None if !line.whole => break,
                None => (rest, ""),
            };
            rest = behind;
            // Searching for a slash first is much cheaper, and most fields have none.
            let slash = memchr::memchr(b'/', field.as_bytes());
            let counter = slash
                .and_then(|_| after(field, "iteration "))
                .filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
            let counter = counter.and_then(leading);
            if let Some((now, slash)) = counter.filter(|(_, slash)| slash.trim_start().starts_with('/')) {
                if step.step.is_some() {
                    taken += self.take(std::mem::take(&mut step), std::mem::take(&mut extras));
                    step.line = line.number;
                }
                step.step = Some(now as u64);
                step.planned = slash.trim_start().get(1..).and_then(whole);
                if taken == 0 {
                    let primus = has(field, "[rank-");
                    extras.dialect.primus = Some(primus);
                    if self.training.all().n < PREFIXES || primus {
                        self.prefix(field);
                    }
                }
                continue;
            }
            self.field(field.trim_ascii(), &mut step, &mut extras);
        }
        let dialect = extras.dialect;
        taken += self.take(step, extras);
        if taken == 1 && self.layouts < MOST_LAYOUTS {
            self.layouts += 1;
            self.layout = Layout::of(line.text).map(|layout| (layout, dialect));
        }
        taken
    }

    /// The prefix of the counter.
    fn prefix(&mut self, field: &str) {
        self.marks.dated |= field.find('[').and_then(|at| field.get(at + 1..)).is_some_and(|rest| {
            rest.starts_with("20") && rest.as_bytes().get(4).is_some_and(|byte| matches!(byte, b'-' | b'/'))
        });
        self.marks.mindspeed |= has(field, ">>");
        if let Some(rank) = after(field, "[rank-") {
            self.rank = rank.split(']').next().unwrap_or_default().chars().take(24).collect();
            if let Some((_, behind)) = leading(rank) {
                self.world = behind.strip_prefix('/').and_then(whole).or(self.world);
            }
        }
    }

    fn field(&mut self, field: &str, step: &mut Step, extras: &mut Extras) {
        // The first versions had no colon: `lm loss 7.2E+00`.
        let bytes = field.as_bytes();
        let colon = memchr::memchr(b':', bytes).or_else(|| memchr::memrchr(b' ', bytes));
        let parts = colon.and_then(|at| Some((field.get(..at)?, field.get(at + 1..)?)));
        let Some((key, value)) = parts else { return };
        let meaning = Meaning::of(key.trim_ascii_end());
        match meaning {
            Meaning::Seconds | Meaning::Milliseconds => {
                let scale = if meaning == Meaning::Seconds { 1.0 } else { 1e-3 };
                extras.dialect.seconds = Some(scale == 1.0);
                step.seconds = paired(extras, "step_time_ms", value, 1e3 * scale).map(|time| time * scale);
            }
            Meaning::Throughput => {
                self.marks.throughput = true;
                step.tflops_per_gpu = paired(extras, "tflops_per_gpu", value, 1.0);
            }
            Meaning::TokensPerGpu => step.tokens_per_gpu = paired(extras, "tokens_per_s_per_gpu", value, 1.0),
            Meaning::MemoryUsage => {
                self.marks.primus = true;
                let parts: Vec<f64> = value.split('/').filter_map(number).collect();
                // Some versions count binary and say so.
                let binary = value.contains("GiB");
                let decimal = |gigabytes: f64| if binary { gigabytes * 1.073_741_824 } else { gigabytes };
                step.memory_gb = parts.first().copied().map(decimal);
                if let Some(total) = parts.get(2) {
                    extras.device_memory = Some(decimal(*total));
                }
                if self.pairs.len() < LISTED {
                    extras.pairs.insert("hip_mem_gb".to_owned(), json!(parts));
                }
            }
            _ => {
                match meaning {
                    Meaning::Loss(name) => extras.dialect.loss = name,
                    Meaning::DeepSpeedRate | Meaning::DeepSpeedTflops | Meaning::ActualSeqLen => {
                        self.marks.deepspeed = true;
                    }
                    Meaning::NeoxRate => self.marks.neox = true,
                    _ => {}
                }
                if let Some(slot) = slot(meaning, step, extras) {
                    *slot = number(value);
                }
            }
        }
    }

    fn take(&mut self, step: Step, extras: Extras) -> usize {
        if step.step.is_none() || step.seconds.is_none() {
            return 0;
        }
        let dialect = extras.dialect;
        if self.begins || !self.training.is_empty() && self.dialect.differs(dialect) {
            self.begins = true;
            return 0;
        }
        self.dialect.loss = self.dialect.loss.or(dialect.loss);
        self.dialect.seconds = self.dialect.seconds.or(dialect.seconds);
        self.dialect.primus = self.dialect.primus.or(dialect.primus);
        self.marks.seconds |= dialect.seconds == Some(true);
        self.marks.deepspeed |= dialect.loss == Some(LossName::Hyphened);
        self.marks.neox |= dialect.loss == Some(LossName::Underscored);
        self.marks.primus |= dialect.primus == Some(true);
        add(&mut self.skipped, extras.skipped);
        add(&mut self.nan, extras.nan);
        if !self.training.push(step) {
            return 1;
        }
        self.training.stated("num_gpus", self.world.take().map(|world| world as f64));
        self.training.stated("device_memory_gb", extras.device_memory);
        self.training.stated("seq_len", extras.seq_len);
        self.marks.primus |= extras.pairs.contains_key("step_time_ms");
        self.consumed_samples = extras.samples.or(self.consumed_samples);
        if extras.tokens.is_some() {
            self.consumed_tokens = [self.consumed_tokens[1], extras.tokens];
        }
        if self.records.len() < LISTED {
            self.records.push(json!([step.step, step.seconds]));
        }
        if self.marks.primus && self.pairs.len() < LISTED {
            let mut record = extras.pairs;
            record.insert("iteration".to_owned(), json!(step.step));
            record.insert("planned".to_owned(), json!(step.planned));
            record.insert("global_batch_size".to_owned(), step.batch.map_or(Value::Null, tidy));
            record.insert("lm_loss".to_owned(), json!(step.loss));
            if !self.rank.is_empty() {
                record.insert("rank_world".to_owned(), self.rank.as_str().into());
            }
            self.pairs.push(Value::Object(record));
        }
        1
    }

    fn names(&self) -> (&'static str, &'static str) {
        let marks = self.marks;
        if marks.primus {
            ("primus", "primus")
        } else if marks.neox {
            ("gpt_neox", "gpt-neox")
        } else if marks.seconds {
            ("megatron_deepspeed", "megatron-deepspeed-seconds")
        } else if marks.deepspeed {
            ("megatron_deepspeed", "megatron-deepspeed")
        } else if marks.mindspeed {
            ("megatron", "megatron-mindspeed")
        } else if marks.dated || marks.throughput {
            ("megatron", "megatron-current")
        } else {
            ("megatron", "megatron-legacy")
        }
    }

    /// Derives the number of GPUs if nothing states it.
    fn gpus(&mut self, context: &Context) {
        let config = &mut self.config;
        let hint = |name| context.hint(name);
        if let (Some(tp), Some(pp), Some(dp)) = (hint("tp"), hint("pp"), hint("dp")) {
            config.number("num_gpus", Some(tp * pp * dp), Origin::FileName);
        }
        for (name, short) in [("tensor_parallel", "tp"), ("pipeline_parallel", "pp"), ("data_parallel", "dp")] {
            config.number(name, hint(short), Origin::FileName);
        }
        // Data-parallel rank 0 prints its memory, on every tensor- and pipeline-parallel rank. More than eight ranks
        // without a gap cannot be one tensor-parallel group inside a node.
        let contiguous = self.ranks.len() > 8 && self.ranks.last() == Some(&(self.ranks.len() as u64 - 1));
        if contiguous {
            let how = Origin::Derived("every rank from 0 prints its memory");
            config.number("num_gpus", Some(self.ranks.len() as f64), how);
        }
        // Megatron-LM's theoretical_memory_usage.py: 18 bytes a parameter without the distributed optimizer, with it
        // 6 + 12/DP. The most loaded shard holds all parameters where TP x PP is 1.
        if let (Some(megabytes), Some(shard)) = (self.footprint_mb, self.shard_billion) {
            let bytes = megabytes * 1_048_576.0 / (shard * 1e9);
            let dp = 12.0 / (bytes - 6.0);
            // Number of shards of the model; uneven ones (embeddings on one stage) are left out.
            let shards = config.get("parameters_billion").map(|all| all / shard);
            let shards = shards.filter(|shards| (shards / shards.round() - 1.0).abs() < 0.02).map(f64::round);
            if bytes > 6.0 && bytes < 17.5 && (dp - dp.round()).abs() < 0.02 * dp {
                let how = Origin::Derived("weight and optimizer take 6 + 12/DP bytes a parameter");
                config.number("data_parallel", Some(dp.round()), how);
                config.number("num_gpus", shards.map(|shards| shards * dp.round()), how);
            }
        }
    }

    fn reading(mut self, context: &Context) -> Reading {
        self.gpus(context);
        let (tool, format) = self.names();
        let training = &self.training;
        let mut facts = training.facts("iterations", 1, context);
        facts.some("tflops_per_gpu_reported", {
            training.all().stats(&training.all().tflops, 1, context).map(|stats| stats.json())
        });
        facts.some("tokens_per_s_per_gpu", {
            training.all().stats(&training.all().tokens, 1, context).map(|stats| stats.json())
        });
        facts.some("skipped_iterations_total", self.skipped.or(Some(0.0)).map(tidy));
        facts.some("nan_iterations_total", self.nan.map(tidy));
        facts.some("consumed_samples_last", self.consumed_samples.map(tidy));
        facts.some("consumed_tokens_last", self.consumed_tokens[1].map(tidy));
        if let ([Some(before), Some(now)], Some(1)) = (self.consumed_tokens, training.all().log_interval()) {
            facts.set("tokens_per_iteration", tidy(now - before));
            if let Some(batch) = training.all().batch.filter(|batch| *batch > 0.0) {
                let how = Origin::Derived("tokens an iteration / sequences an iteration");
                self.config.number("seq_len", Some((now - before) / batch), how);
            }
        }
        if self.memory_records > 0 {
            facts.set("rank_memory_records", self.memory_records);
            facts.some("max_allocated_mb_max", self.max_allocated);
            facts.some("max_reserved_mb_max", self.max_reserved);
        }
        facts.some("max_memory_gb", training.all().memory.max());
        if !self.validation.is_empty() {
            facts.set("validation", self.validation);
        }
        if self.marks.primus {
            facts.set("pair_order", "[instant, average]");
            facts.set("records", self.pairs);
            // The tokens of one GPU and step give the sequence length.
            let all = training.all();
            let gpus = training.runs.first().and_then(|run| run.config.get("num_gpus"));
            let known = (all.tokens.first(), all.seconds.first(), all.batch, gpus.or(self.config.get("num_gpus")));
            if let (Some(tokens), Some(seconds), Some(batch), Some(gpus)) = known {
                let length = tokens * seconds * gpus / batch;
                let how = Origin::Derived("tokens/s/GPU x step time x GPUs / batch");
                let near = (length / 128.0).round() * 128.0;
                if training.runs.len() == 1 && near > 0.0 && (length / near - 1.0).abs() < 0.005 {
                    self.config.number("seq_len", Some(near), how);
                }
            }
        } else {
            facts.set("records", self.records);
        }
        let reading = Reading { tool, format, weight: Weight::Steps, facts, config: self.config, ..Reading::default() };
        self.training.reading(reading, 1, context)
    }
}

/// Where the number of a field is kept.
fn slot<'a>(meaning: Meaning, step: &'a mut Step, extras: &'a mut Extras) -> Option<&'a mut Option<f64>> {
    Some(match meaning {
        Meaning::Seconds | Meaning::Milliseconds => &mut step.seconds,
        Meaning::Throughput | Meaning::DeepSpeedTflops | Meaning::ApproximateFlops => &mut step.tflops_per_gpu,
        Meaning::TokensPerGpu => &mut step.tokens_per_gpu,
        Meaning::Loss(_) => &mut step.loss,
        Meaning::LearningRate => &mut step.learning_rate,
        Meaning::Batch => &mut step.batch,
        Meaning::GradNorm => &mut step.grad_norm,
        Meaning::MaxMemory => &mut step.memory_gb,
        Meaning::Skipped => &mut extras.skipped,
        Meaning::Nan => &mut extras.nan,
        Meaning::Samples => &mut extras.samples,
        Meaning::Tokens => &mut extras.tokens,
        Meaning::ActualSeqLen => &mut extras.seq_len,
        Meaning::DeepSpeedRate | Meaning::NeoxRate | Meaning::MemoryUsage | Meaning::Other => return None,
    })
}

/// The number that a field states; of `instant/average` the instant, and both are added to the list of records.
fn paired(extras: &mut Extras, name: &str, value: &str, scale: f64) -> Option<f64> {
    let (instant, rest) = leading(value)?;
    if let Some(average) = rest.strip_prefix('/').and_then(text::number) {
        extras.pairs.insert(name.to_owned(), json!([instant * scale, average * scale]));
    }
    Some(instant).filter(|instant| instant.is_finite())
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}
