//! Options of a simulation, with the same names on the command line and in the `simulate:` mapping of a configuration.

use atlas_core::count::Count;
use atlas_document::suggestion::{clause, nearest};
use clap::{Args, FromArgMatches as _, ValueEnum};
use serde::Serialize;

use super::words::{ArrivalsWord, CompressionWord, HostsWord, Lengths, Millis, RouterWord, ScaleWord, Span};
use crate::engine::answer::event::serving::log_normal;
use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::plan::Arrivals;

/// A further study of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Study {
    /// Share of the time that failures and checkpoints leave for training, and the best checkpoint interval
    Goodput,
}

/// Declares the options in one list, from which the struct, merging and the list of names are generated.
macro_rules! options {
    ($($(#[$meta:meta])* $name:ident: $type:ty,)+) => {
        /// Options of a simulation; `None` if unset.
        #[derive(Debug, Clone, Default, PartialEq, Args, Serialize)]
        pub struct Options {
            $($(#[$meta])* #[arg(allow_negative_numbers = true)] #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+
        }

        impl Options {
            /// Names of the options in a configuration.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)+];

            /// Returns these options, with those of `other` where unset.
            #[must_use]
            pub fn or(self, other: Options) -> Options {
                Options { $($name: self.$name.or(other.$name),)+ }
            }

            /// Whether no option is set.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                true $(&& self.$name.is_none())+
            }
        }
    };
}

options! {
    /// Random seed [default: 1337]
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: u64,
    /// Number of independent runs, for confidence intervals [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Run")]
    replications: u32,
    /// Additional study; options about failures imply goodput
    #[arg(long, value_enum, help_heading = "Run")]
    study: Study,
    /// Optimizer steps [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Training")]
    steps: u32,
    /// Number of permanently slow nodes, chosen by the seed
    #[arg(long, aliases = ["slow_nodes", "slow-hosts", "slow_hosts"], value_name = "N", help_heading = "Training")]
    slow_nodes: u32,
    /// Slowdown of slow nodes [default: 1.1]
    #[arg(long, alias = "slow_factor", value_name = "F", value_parser = factor, help_heading = "Training")]
    slow_factor: f64,
    /// Replace the accelerator of the last hosts of the job
    #[arg(long, value_name = "ACCELERATOR:HOSTS", help_heading = "Training")]
    hosts: HostsWord,
    /// Coefficient of variation of compute times
    #[arg(long, value_name = "SHARE", value_parser = jitter, help_heading = "Training")]
    jitter: f64,
    /// Coefficient of variation of tokens per micro-batch (dynamic batch sizes, packed sequences)
    #[arg(long, alias = "dynamic_batch", value_name = "SHARE", value_parser = jitter, help_heading = "Training")]
    dynamic_batch: f64,
    /// Number of gradient buckets per model chunk [default: 40 million weights each, as in Megatron-Core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Training")]
    buckets: u32,
    /// Gradient compression: ratio, and optionally its time
    #[arg(long, value_name = "RATIO[:TIME]", help_heading = "Training")]
    compression: CompressionWord,
    /// Time to load the data of a step, one step ahead
    #[arg(long, value_name = "TIME", help_heading = "Training")]
    loading: Span,
    /// Simulate every replica even if all are identical
    #[arg(long, alias = "every_replica", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", help_heading = "Training")]
    every_replica: bool,
    /// Mean time between failures per accelerator, including its share of host and network [default of the study:
    /// 50678h]
    #[arg(long, aliases = ["accelerator_mtbf", "mtbf"], value_name = "TIME", value_parser = with_unit, help_heading = "Failures")]
    accelerator_mtbf: Span,
    /// Time to detect a failure [default: 2m]
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    detection: Span,
    /// Time from detection until training resumes [default: 8m]
    #[arg(long, aliases = ["restart_time", "restart"], value_name = "TIME", help_heading = "Failures")]
    restart_time: Span,
    /// Number of spare nodes [default: 1 % of the job's nodes, at least one]
    #[arg(long, value_name = "N", help_heading = "Failures")]
    spares: u32,
    /// Mean time to repair a failed node [default: 24h]
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    repair: Span,
    /// Time for which a checkpoint stops training [default: its size / storage bandwidth]
    #[arg(long, alias = "checkpoint_seconds", value_name = "TIME", help_heading = "Failures")]
    checkpoint_seconds: Span,
    /// Time after which a checkpoint is complete once training has resumed [default: 0]
    #[arg(long, alias = "checkpoint_flush", value_name = "TIME", help_heading = "Failures")]
    checkpoint_flush: Span,
    /// Time between checkpoints [default: Young's interval]
    #[arg(long, alias = "checkpoint_interval", value_name = "TIME", help_heading = "Failures")]
    checkpoint_interval: Span,
    /// Storage bandwidth per node, GB/s [default: 1]
    #[arg(long, aliases = ["storage_gbytes_per_sec", "storage-gbytes", "storage_gbps"], value_name = "GB/S", value_parser = positive,
        help_heading = "Failures")]
    storage_gbytes_per_sec: f64,
    /// Training time that the goodput study simulates, without failures and checkpoints [default: 30d]
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    work: Span,
    /// Number of measured requests [default: 2000, or the whole trace or schedule]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000_000), help_heading = "Serving")]
    requests: u32,
    /// Number of warm-up requests, served but not measured [default: a tenth, or twice the closed load]
    #[arg(long, alias = "warm_up", value_name = "N", help_heading = "Serving")]
    warm_up: u32,
    /// Arrival process [default: the workload's schedule, rate or concurrency]
    #[arg(long, value_name = "poisson|gamma:CV|closed|burst|schedule|trace:FILE", help_heading = "Serving")]
    arrivals: ArrivalsWord,
    /// Request rate of open arrivals, per second [default: the workload's, else 0.8 of the capacity]
    #[arg(long, value_name = "R", value_parser = positive, help_heading = "Serving")]
    rate: f64,
    /// Input tokens, a number or a distribution [default: the workload's]
    #[arg(long, value_name = "TOKENS", help_heading = "Serving")]
    isl: Lengths,
    /// Output tokens, a number or a distribution [default: the workload's]
    #[arg(long, value_name = "TOKENS", help_heading = "Serving")]
    osl: Lengths,
    /// Maximum input plus output tokens; longer requests are truncated
    #[arg(long, alias = "max_model_len", value_name = "TOKENS", help_heading = "Serving")]
    max_model_len: u32,
    /// Tokens per KV cache block [default: the software's]
    #[arg(long, alias = "block_size", value_name = "TOKENS", help_heading = "Serving")]
    block_size: u32,
    /// Routing policy: round-robin, random, least-requests, two-choices, prefix-affinity
    #[arg(long, value_name = "NAME", help_heading = "Serving")]
    router: RouterWord,
    /// Autoscaling range of replicas, and target requests in flight per replica; a replica starts in 120 s, and stops
    /// after 300 s of low load
    #[arg(long, value_name = "MIN..MAX[:REQUESTS]", help_heading = "Serving")]
    autoscale: ScaleWord,
    /// TTFT objective; a number without a unit is in milliseconds
    #[arg(long, alias = "slo_ttft", value_name = "TIME", help_heading = "Serving")]
    slo_ttft: Millis,
    /// TPOT objective
    #[arg(long, alias = "slo_tpot", value_name = "TIME", help_heading = "Serving")]
    slo_tpot: Millis,
    /// End-to-end latency objective
    #[arg(long, alias = "slo_e2e", value_name = "TIME", help_heading = "Serving")]
    slo_e2e: Millis,
}

/// Parses a time that must state its unit: 50000 is meant as hours, and would be seconds.
fn with_unit(text: &str) -> Result<Span, String> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err(format!("found \"{}\", expected a time with its unit, such as 50000h", text.trim())),
        Err(_) => text.parse(),
    }
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| format!("expected a number from {least} to {most}"))
}

fn factor(text: &str) -> Result<f64, String> {
    within(text, 1.0, 1000.0)
}

fn jitter(text: &str) -> Result<f64, String> {
    within(text, 0.0, 10.0)
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| "expected a positive number".to_owned())
}

impl Options {
    /// Whether a configuration may contain an option of this name. Names of earlier releases are also accepted.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        Self::NAMES.contains(&name) || ["slow_hosts", "mtbf", "restart", "storage_gbytes"].contains(&name)
    }

    /// Parses one option of a configuration.
    ///
    /// # Errors
    ///
    /// A message if the name is unknown or the value is invalid.
    pub fn read(name: &str, value: &str) -> Result<Options, String> {
        if !Self::is_name(name) {
            let suggestion = clause(nearest(name, Self::NAMES.iter().copied()));
            return Err(format!("unknown option{suggestion}"));
        }
        let command = Options::augment_args(clap::Command::new("simulate").no_binary_name(true));
        let flag = format!("--{}={value}", name.replace('_', "-"));
        let matches = command.try_get_matches_from([flag]).map_err(|error| error_message(&error))?;
        Options::from_arg_matches(&matches).map_err(|error| error_message(&error))
    }

    /// Options that follow from a workload and its knobs.
    #[must_use]
    pub fn stated(scenario: &Scenario) -> Options {
        let stated = &scenario.base.plan.simulation;
        let settings = scenario.simulation(&scenario.base);
        let count = |value: Option<Count>| value.and_then(Count::nonzero).map(Count::get);
        let span = |value: Option<f64>| value.filter(|value| *value > 0.0).map(Span);
        let limit = |value: Option<f64>| value.map(|ms| Millis(1e-3 * ms));
        let spread = |mean: f64, cv: Option<f64>, most: Option<Count>| {
            cv.filter(|cv| *cv > 0.0).map(|cv| Lengths(log_normal(mean, cv, most)))
        };
        let shape = &scenario.base.shape;
        let serves = scenario.mode() == Mode::Inference;
        if serves {
            return Options {
                seed: Some(settings.seed),
                replications: count(stated.replications),
                requests: stated.requests.map(Count::get),
                arrivals: stated.arrivals.or(stated.arrival_cv.map(|_| Arrivals::Gamma)).map(|word| match word {
                    Arrivals::Closed => ArrivalsWord::Closed(None),
                    Arrivals::Poisson => ArrivalsWord::Poisson(None),
                    Arrivals::Gamma => ArrivalsWord::Gamma(settings.arrival_cv, None),
                    Arrivals::Burst => ArrivalsWord::Burst,
                }),
                isl: spread(shape.prompt + scenario.image_tokens(&scenario.base), stated.prompt_cv, None),
                osl: spread(shape.generate, stated.generate_cv, scenario.base.plan.serving.generate_max),
                slo_ttft: limit(stated.slo_ttft_ms),
                slo_tpot: limit(stated.slo_tpot_ms),
                slo_e2e: limit(stated.slo_e2e_ms),
                ..Options::default()
            };
        }
        let slow_nodes = count(stated.slow_nodes);
        Options {
            seed: Some(settings.seed),
            replications: count(stated.replications),
            steps: Some(settings.steps),
            jitter: stated.jitter,
            slow_nodes,
            slow_factor: slow_nodes.map(|_| settings.slow_factor),
            // The knob is per node, the option per accelerator.
            accelerator_mtbf: span(stated.node_mtbf_h.map(|hours| hours * 3600.0 * scenario.accelerators_per_node)),
            checkpoint_interval: span(stated.checkpoint_interval_s),
            checkpoint_seconds: span(stated.checkpoint_s),
            restart_time: span(stated.restart_s),
            ..Options::default()
        }
    }

    /// Seed in effect.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(1337)
    }

    /// Whether to study failures, because it is requested or implied by another option.
    #[must_use]
    pub fn wants_goodput(&self) -> bool {
        self.study == Some(Study::Goodput)
            || self.spares.is_some()
            || self.storage_gbytes_per_sec.is_some()
            || [
                self.accelerator_mtbf,
                self.detection,
                self.restart_time,
                self.repair,
                self.checkpoint_seconds,
                self.checkpoint_flush,
                self.checkpoint_interval,
                self.work,
            ]
            .iter()
            .any(Option::is_some)
    }

    /// Number of runs in effect.
    #[must_use]
    pub fn replications(&self) -> u32 {
        self.replications.unwrap_or(1).max(1)
    }
}

/// Message of a clap error, without its context.
fn error_message(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    first.rsplit_once("': ").map_or_else(|| first.to_owned(), |(_, why)| why.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::engine::answer;
    use crate::knob::{Knob, Overrides, Setting};

    use crate::testing;

    use atlas_sim::kernel::Distribution;

    fn command() -> clap::Command {
        Options::augment_args(clap::Command::new("simulate"))
    }

    #[test]
    fn every_option_of_a_configuration_is_a_flag() {
        let command = command();
        command.clone().debug_assert();
        let flags: Vec<String> =
            command.get_arguments().filter_map(|arg| arg.get_long()).map(|long| long.replace('-', "_")).collect();
        assert_eq!(flags, Options::NAMES);
    }

    #[test]
    fn options_parse_individually_and_merge() {
        let steps = Options::read("steps", "20").unwrap();
        let both = Options::read("slow_factor", "2.5").unwrap().or(steps);
        assert_eq!((both.steps, both.slow_factor, both.seed()), (Some(20), Some(2.5), 1337));
        assert_eq!(Options::read("every_replica", "true").unwrap().every_replica, Some(true));
        assert_eq!(Options::read("mtbf", "50000h").unwrap().accelerator_mtbf, Some(Span(1.8e8)));
        assert!(Options::default().is_empty() && !both.is_empty());
    }

    #[test]
    fn simulated_output_lengths_do_not_exceed_generate_max() {
        let parts = testing::parts("h100-sxm-8", "llama3.1-70b-serve");
        let knobs = [(Knob::GenerateCv, Setting::Number(1.0)), (Knob::GenerateMax, Setting::Number(1200.0))];
        let scenario = Scenario::resolve(&parts, &Overrides::from(knobs)).unwrap();
        let expected = Distribution::clipped_log_normal(1024.0, 1.0, 1200.0);
        assert_eq!(Options::stated(&scenario).osl, Some(Lengths(expected)));
        let (system, constants, closed) = answer::serving::closed(&scenario, &scenario.base).unwrap();
        let settings = scenario.simulation(&scenario.base);
        assert_eq!(answer::event::serving::input(&settings, &system, &constants, &closed).lengths.osl, expected);
    }

    #[test]
    fn option_errors_state_the_expected_value() {
        assert!(Options::read("stepps", "1").unwrap_err().contains("did you mean `steps`?"));
        assert!(Options::read("arrivals", "often").unwrap_err().contains("expected"));
        assert!(Options::read("mtbf", "50000").unwrap_err().contains("with its unit"));
        assert!(Options::read("slow_factor", "0.5").unwrap_err().contains("1 to 1000"));
        assert!(Options::read("jitter", "-1").unwrap_err().contains("0 to 10"));
        // A negative value is out of range, and not parsed as a flag.
        let apart = command().try_get_matches_from(["simulate", "--jitter", "-0.5"]).unwrap_err().to_string();
        assert!(apart.contains("0 to 10"), "{apart}");
        assert!(Options::read("steps", "0").unwrap_err().contains("1..=1000000"));
    }
}
