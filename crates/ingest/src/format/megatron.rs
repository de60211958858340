//! Iteration lines of Megatron-LM and its derivatives: Megatron-DeepSpeed, Primus, MindSpeed, GPT-NeoX.
//!
//! `iteration 10/ 500000 | consumed samples: 10240 | elapsed time per iteration (ms): 13035.3 | … |`, with names and
//! units that differ between versions. Values may be pairs `instant/average` (Primus). A prefix may contain a rank, a
//! date or both, and the output of another rank may be appended.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::{Value, json};

use super::megatron_layout::{Layout, LossName, Meaning};
use super::megatron_surroundings::Surroundings;
use crate::lines::Line;
use crate::reading::{Origin, number_to_json};
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TFLOPS_PER_GPU, TOKENS_PER_GPU};
use crate::text::{self, has, number, parse_integer, parse_leading_number, text_after};
use crate::training::{MAX_LISTED, Step, Training};

/// Recognizer of iteration lines.
pub type Megatron = StepReader<Iterations>;

/// The trigger word of iteration lines.
static ELAPSED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("elapsed time per iteration"));

/// Number of lines whose prefix is examined.
const PREFIXES: usize = 64;
/// Maximum number of layouts that are learned. A log that alternates between several layouts is parsed field by field.
const MAX_LAYOUTS: u32 = 64;

/// Features of the lines from which the derivative is determined.
#[derive(Debug, Default, Clone, Copy)]
struct DialectFeatures {
    dated: bool,
    throughput: bool,
    mindspeed: bool,
    seconds: bool,
    deepspeed: bool,
    primus: bool,
    neox: bool,
}

/// Parser of iteration lines.
#[derive(Debug, Default)]
pub struct Iterations {
    surroundings: Surroundings,
    marks: DialectFeatures,
    dialect: Dialect,
    /// Layout and dialect of the last line that was parsed field by field.
    layout: Option<(Layout, Dialect)>,
    /// Number of layouts learned.
    layouts: u32,
    /// Whether the current line belongs to another log.
    begins: bool,
    skipped: Option<f64>,
    nan: Option<f64>,
    consumed_tokens: [Option<f64>; 2],
    consumed_samples: Option<f64>,
    records: Vec<Value>,
    pairs: Vec<Value>,
    world: Option<u64>,
    /// Rank that writes, and the number of ranks: `63/64`.
    rank: String,
}

/// Fields of an iteration line that [`Step`] does not have.
#[derive(Debug, Default)]
struct Extras {
    /// Values stated as pairs `instant/average`, by name.
    pairs: Vec<(&'static str, Value)>,
    tokens: Option<f64>,
    samples: Option<f64>,
    /// Total memory of the device, GB.
    device_memory: Option<f64>,
    seq_len: Option<f64>,
    skipped: Option<f64>,
    nan: Option<f64>,
    dialect: Dialect,
}

/// Properties shared by all lines of a log. `None` if unknown: a line may lack the loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Dialect {
    loss: Option<LossName>,
    seconds: Option<bool>,
    primus: Option<bool>,
}

impl Dialect {
    /// Whether lines of the two dialects cannot belong to the same log.
    fn differs(self, other: Dialect) -> bool {
        fn known_and_different<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
            matches!((a, b), (Some(a), Some(b)) if a != b)
        }
        known_and_different(self.loss, other.loss)
            || known_and_different(self.seconds, other.seconds)
            || known_and_different(self.primus, other.primus)
    }
}

impl StepFormat for Iterations {
    const SPEC: Spec = Spec {
        tool: "megatron",
        format: "megatron-legacy",
        triggers: &[
            "elapsed time per iteration",
            "max allocated:",
            "number of parameters",
            "number of parameters in billions",
            "Number of parameters in most loaded shard",
            "Theoretical memory footprints",
            "validation loss at",
            "sl_",
        ],
        counter: "iterations",
        series: &[TFLOPS_PER_GPU, TOKENS_PER_GPU],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text;
        if let Some(taken) = self.read_known_layout(line, log) {
            return taken;
        }
        if ELAPSED.find(text.as_bytes()).is_none() {
            let parameters = text_after(text, "Total number of parameters in billions:").and_then(number);
            if !log.is_empty() && log.config.differs("parameters_billion", parameters) {
                return Outcome::NewDocument;
            }
            return if self.surroundings.read(text, &mut log.config) {
                Outcome::Settings
            } else {
                Outcome::NotRecognized
            };
        }
        let marks = self.marks;
        let taken = self.iterations(line, log);
        if self.begins {
            (self.marks, self.begins) = (marks, false);
            return Outcome::NewDocument;
        }
        // The output of another rank may follow the last bar.
        let glued = memchr::memrchr(b'|', text.as_bytes()).and_then(|at| text.get(at + 1..));
        if let Some(glued) = glued.filter(|glued| glued.len() > 8) {
            self.surroundings.read(glued, &mut log.config);
        }
        match taken {
            0 => Outcome::Unusable("an iteration line without a counter or a valid time"),
            _ => Outcome::Recognized,
        }
    }

    fn read_same_layout(&mut self, line: Line<'_>, log: &mut StepLog) -> bool {
        self.read_known_layout(line, log).is_some()
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        (summary.tool, summary.format) = self.names();
        let Summary { training, facts, config, context, .. } = summary;
        self.surroundings.gpus(config, context);
        facts.set_optional("skipped_iterations_total", self.skipped.or(Some(0.0)).map(number_to_json));
        facts.set_optional("nan_iterations_total", self.nan.map(number_to_json));
        facts.set_optional("consumed_samples_last", self.consumed_samples.map(number_to_json));
        facts.set_optional("consumed_tokens_last", self.consumed_tokens[1].map(number_to_json));
        if let ([Some(before), Some(now)], Some(1)) = (self.consumed_tokens, training.all().log_interval()) {
            facts.set("tokens_per_iteration", number_to_json(now - before));
            if let Some(batch) = training.all().batch.filter(|batch| *batch > 0.0) {
                let how = Origin::Derived("tokens per iteration / sequences per iteration");
                config.number("seq_len", Some((now - before) / batch), how);
            }
        }
        self.surroundings.memory(facts);
        facts.set_optional("max_memory_gb", training.all().memory.max());
        let validation = self.surroundings.validation();
        if !validation.is_empty() {
            facts.set("validation", validation);
        }
        if self.marks.primus {
            facts.set("pair_order", "[instant, average]");
            facts.set("records", self.pairs);
            let gpus = training.runs.first().and_then(|run| run.config.get("num_gpus")).or(config.get("num_gpus"));
            let how = Origin::Derived("tokens/s/GPU x step time x GPUs / batch");
            config.number("seq_len", gpus.and_then(|gpus| primus_length(training, gpus)), how);
        } else {
            facts.set("records", self.records);
        }
    }
}

impl Iterations {
    /// Fast path: reads a line that has a known layout, once the prefixes of [`PREFIXES`] lines have been examined.
    fn read_known_layout(&mut self, line: Line<'_>, log: &mut StepLog) -> Option<Outcome> {
        let (layout, dialect) = self.layout.as_mut().filter(|_| line.whole && log.training.all().n >= PREFIXES)?;
        let dialect = *dialect;
        let mut step = Step { line: line.number, ..Step::default() };
        let mut extras = Extras { dialect, ..Extras::default() };
        let (now, planned) = layout.read(line.text, |meaning, value| {
            if let Some(slot) = field_storage(meaning, &mut step, &mut extras) {
                *slot = Some(if meaning == Meaning::Milliseconds { value * 1e-3 } else { value });
            }
        })?;
        (step.step, step.planned) = (Some(now), planned);
        (!self.dialect.differs(dialect) && self.take(step, extras, log) > 0).then_some(Outcome::Recognized)
    }

    /// Parses the iterations of a line field by field. Returns their number.
    fn iterations(&mut self, line: Line<'_>, log: &mut StepLog) -> usize {
        let (mut step, mut extras) = (Step { line: line.number, ..Step::default() }, Extras::default());
        let mut taken = 0;
        let mut rest = line.text;
        while !rest.is_empty() {
            let (field, behind) = match memchr::memchr(b'|', rest.as_bytes()) {
                Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..).unwrap_or_default()),
                // At the end of a truncated file, a field without a bar may end within a number.
                None if !line.whole => break,
                None => (rest, ""),
            };
            rest = behind;
            // Searching for a slash first is much cheaper, because most fields have none.
            let slash = memchr::memchr(b'/', field.as_bytes());
            let counter = slash
                .and_then(|_| text_after(field, "iteration "))
                .filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
            let counter = counter.and_then(parse_leading_number);
            if let Some((now, slash)) = counter.filter(|(_, slash)| slash.trim_start().starts_with('/')) {
                if step.step.is_some() {
                    taken += self.take(std::mem::take(&mut step), std::mem::take(&mut extras), log);
                    step.line = line.number;
                }
                step.step = Some(now as u64);
                step.planned = slash.trim_start().get(1..).and_then(parse_integer);
                if taken == 0 {
                    let primus = has(field, "[rank-");
                    extras.dialect.primus = Some(primus);
                    if log.training.all().n < PREFIXES || primus {
                        self.prefix(field);
                    }
                }
                continue;
            }
            self.field(field.trim_ascii(), &mut step, &mut extras);
        }
        let dialect = extras.dialect;
        taken += self.take(step, extras, log);
        if taken == 1 && self.layouts < MAX_LAYOUTS {
            self.layouts += 1;
            self.layout = Layout::of(line.text).map(|layout| (layout, dialect));
        }
        taken
    }

    /// Examines the prefix of the step counter for features of the derivative.
    fn prefix(&mut self, field: &str) {
        self.marks.dated |= field.find('[').and_then(|at| field.get(at + 1..)).is_some_and(|rest| {
            rest.starts_with("20") && rest.as_bytes().get(4).is_some_and(|byte| matches!(byte, b'-' | b'/'))
        });
        self.marks.mindspeed |= has(field, ">>");
        if let Some(rank) = text_after(field, "[rank-") {
            self.rank = rank.split(']').next().unwrap_or_default().chars().take(24).collect();
            if let Some((_, behind)) = parse_leading_number(rank) {
                self.world = behind.strip_prefix('/').and_then(parse_integer).or(self.world);
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
                // Some versions state binary units.
                let binary = value.contains("GiB");
                let decimal = |gigabytes: f64| if binary { gigabytes * 1.073_741_824 } else { gigabytes };
                step.memory_gb = parts.first().copied().map(decimal);
                if let Some(total) = parts.get(2) {
                    extras.device_memory = Some(decimal(*total));
                }
                if self.pairs.len() < MAX_LISTED {
                    extras.pairs.push(("hip_mem_gb", json!(parts)));
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
                if let Some(slot) = field_storage(meaning, step, extras) {
                    *slot = number(value);
                }
            }
        }
    }

    fn take(&mut self, step: Step, extras: Extras, log: &mut StepLog) -> usize {
        if step.step.is_none() || step.seconds.is_none() {
            return 0;
        }
        let dialect = extras.dialect;
        if self.begins || !log.is_empty() && self.dialect.differs(dialect) {
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
        if !log.push(step) {
            return 1;
        }
        log.training.add_setting("num_gpus", self.world.take().map(|world| world as f64));
        log.training.add_setting("device_memory_gb", extras.device_memory);
        log.training.add_setting("seq_len", extras.seq_len);
        self.marks.primus |= extras.pairs.iter().any(|(name, _)| *name == "step_time_ms");
        self.consumed_samples = extras.samples.or(self.consumed_samples);
        if extras.tokens.is_some() {
            self.consumed_tokens = [self.consumed_tokens[1], extras.tokens];
        }
        if self.records.len() < MAX_LISTED {
            self.records.push(json!([step.step, step.seconds]));
        }
        if self.marks.primus && self.pairs.len() < MAX_LISTED {
            let pairs = extras.pairs.into_iter();
            let mut record: serde_json::Map<_, _> = pairs.map(|(name, pair)| (name.to_owned(), pair)).collect();
            record.insert("iteration".to_owned(), json!(step.step));
            record.insert("planned".to_owned(), json!(step.planned));
            record.insert("global_batch_size".to_owned(), step.batch.map_or(Value::Null, number_to_json));
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
}

/// Infers the sequence length from the tokens per GPU and step, rounded to a multiple of 128.
fn primus_length(training: &Training, gpus: f64) -> Option<f64> {
    let all = training.all();
    let length = all.tokens.first()? * all.seconds.first()? * gpus / all.batch?;
    let near = (length / 128.0).round() * 128.0;
    let only = training.runs.len() == 1;
    (only && near > 0.0 && (length / near - 1.0).abs() < 0.005).then_some(near)
}

/// Returns the variable in which the value of a field is stored.
fn field_storage<'a>(meaning: Meaning, step: &'a mut Step, extras: &'a mut Extras) -> Option<&'a mut Option<f64>> {
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

/// Parses the value of a field. Of a pair `instant/average` the first is returned, and both are added to the list of
/// pairs.
fn paired(extras: &mut Extras, name: &'static str, value: &str, scale: f64) -> Option<f64> {
    let (instant, rest) = parse_leading_number(value)?;
    if let Some(average) = rest.strip_prefix('/').and_then(text::number) {
        extras.pairs.push((name, json!([instant * scale, average * scale])));
    }
    Some(instant).filter(|instant| instant.is_finite())
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}
