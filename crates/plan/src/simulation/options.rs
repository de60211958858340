//! What a user may say about a simulation besides what is simulated: on the command line and in the `simulate:` mapping of
//! a configuration, under the same names.

use atlas_core::count::Count;
use clap::{Args, FromArgMatches as _, ValueEnum};
use serde::Serialize;

use super::words::{ArrivalsWord, CompressionWord, HostsWord, Lengths, Millis, RouterWord, ScaleWord, Span};
use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::plan::Arrivals;
use atlas_document::decode::nearest;
use atlas_sim::kernel::Distribution;

/// A further study of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Study {
    /// Failures, checkpoints and what they leave of the time; the best interval between checkpoints
    Goodput,
}

/// Declares the options: one list for the struct, for laying one over another, and for their names.
macro_rules! options {
    ($($(#[$meta:meta])* $name:ident: $type:ty,)+) => {
        /// Options of a simulation; what is not said is `None`.
        #[derive(Debug, Clone, Default, PartialEq, Args, Serialize)]
        pub struct Options {
            $($(#[$meta])* #[arg(allow_negative_numbers = true)] #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+
        }

        impl Options {
            /// Names in a configuration.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)+];

            /// These, and where they are silent those of `other`.
            #[must_use]
            pub fn or(self, other: Options) -> Options {
                Options { $($name: self.$name.or(other.$name),)+ }
            }

            /// Whether nothing is said.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                true $(&& self.$name.is_none())+
            }
        }
    };
}

options! {
    /// Seed of everything random [default: 1337]
    #[arg(long, value_name = "N", help_heading = "Run")]
    seed: u64,
    /// Independent runs, from which confidence intervals come [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Run")]
    replications: u32,
    /// A further study; anything said about failures requests goodput
    #[arg(long, value_enum, help_heading = "Run")]
    study: Study,
    /// Optimizer steps [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Training")]
    steps: u32,
    /// Hosts that are slow all the time, drawn by the seed
    #[arg(long, alias = "slow_hosts", value_name = "N", help_heading = "Training")]
    slow_hosts: u32,
    /// Their time over the others' [default: 1.1]
    #[arg(long, alias = "slow_factor", value_name = "F", value_parser = factor, help_heading = "Training")]
    slow_factor: f64,
    /// Hosts with another accelerator than the job's, its last ones: each computes as fast as its own operators do
    #[arg(long, value_name = "ACCELERATOR:HOSTS", help_heading = "Training")]
    hosts: HostsWord,
    /// Standard deviation of a pass over its mean
    #[arg(long, value_name = "SHARE", value_parser = jitter, help_heading = "Training")]
    jitter: f64,
    /// Standard deviation of a micro-batch's tokens over its mean: dynamic batch sizes, packed sequences
    #[arg(long, alias = "dynamic_batch", value_name = "SHARE", value_parser = jitter, help_heading = "Training")]
    dynamic_batch: f64,
    /// Pieces in which a chunk's gradients are reduced [default: of 40 million weights, as Megatron-Core cuts them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Training")]
    buckets: u32,
    /// Compression of gradients: bytes before over bytes after, and its time
    #[arg(long, value_name = "RATIO[:TIME]", help_heading = "Training")]
    compression: CompressionWord,
    /// Time in which a step's data are loaded, one step ahead
    #[arg(long, value_name = "TIME", help_heading = "Training")]
    loading: Span,
    /// Simulate every replica even where all are alike
    #[arg(long, alias = "every_replica", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", help_heading = "Training")]
    every_replica: bool,
    /// Mean time between failures of one accelerator with its share of host and network [default of the study: 50678h]
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    mtbf: Span,
    /// From a failure until it is noticed [default: 2m]
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    detection: Span,
    /// From there until work goes on [default: 8m]
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    restart: Span,
    /// Nodes that stand by [default: 1 % of the job's, at least one]
    #[arg(long, value_name = "N", help_heading = "Failures")]
    spares: u32,
    /// Mean time until a failed node can stand by again [default: 24h]
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    repair: Span,
    /// For which a checkpoint stops the work [default: its bytes over the storage's bandwidth]
    #[arg(long, alias = "checkpoint_seconds", value_name = "TIME", help_heading = "Failures")]
    checkpoint_seconds: Span,
    /// From a checkpoint's end until it is safe, while work goes on [default: 0]
    #[arg(long, alias = "checkpoint_flush", value_name = "TIME", help_heading = "Failures")]
    checkpoint_flush: Span,
    /// Work between two checkpoints [default: Young's]
    #[arg(long, alias = "checkpoint_interval", value_name = "TIME", help_heading = "Failures")]
    checkpoint_interval: Span,
    /// Storage bandwidth of one node, GB/s [default: 1]
    #[arg(long, alias = "storage_gbps", value_name = "GB/S", value_parser = positive, help_heading = "Failures")]
    storage_gbytes: f64,
    /// Work of the long run [default: 30d]
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    work: Span,
    /// Requests that are counted [default: 2000, or the whole trace or schedule]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000_000), help_heading = "Serving")]
    requests: u32,
    /// Requests before them, that are served and not counted [default: a tenth, or what fills a closed load twice]
    #[arg(long, alias = "warm_up", value_name = "N", help_heading = "Serving")]
    warm_up: u32,
    /// How requests arrive [default: the workload's schedule, rate or concurrency]
    #[arg(long, value_name = "poisson|gamma:CV|closed|burst|schedule|trace:FILE", help_heading = "Serving")]
    arrivals: ArrivalsWord,
    /// Requests per second of open arrivals [default: the workload's, else 0.8 of what the deployment can serve]
    #[arg(long, value_name = "R", value_parser = positive, help_heading = "Serving")]
    rate: f64,
    /// Prompt tokens, one number or a distribution [default: the workload's]
    #[arg(long, value_name = "TOKENS", help_heading = "Serving")]
    isl: Lengths,
    /// Generated tokens, one number or a distribution [default: the workload's]
    #[arg(long, value_name = "TOKENS", help_heading = "Serving")]
    osl: Lengths,
    /// Longest prompt and answer together; longer ones are cut
    #[arg(long, alias = "max_model_len", value_name = "TOKENS", help_heading = "Serving")]
    max_model_len: u32,
    /// Tokens of a KV block [default: 16]
    #[arg(long, alias = "block_size", value_name = "TOKENS", help_heading = "Serving")]
    block_size: u32,
    /// Which replica a request goes to: round-robin, random, least-requests, two-choices, prefix-affinity
    #[arg(long, value_name = "NAME", help_heading = "Serving")]
    router: RouterWord,
    /// Replicas that come and go with the load, and the requests in flight aimed at on each
    #[arg(long, value_name = "LEAST..MOST[:REQUESTS]", help_heading = "Serving")]
    autoscale: ScaleWord,
    /// Limit of the time to first token; a bare number is milliseconds
    #[arg(long, alias = "slo_ttft", value_name = "TIME", help_heading = "Serving")]
    slo_ttft: Millis,
    /// Limit of the time per output token
    #[arg(long, alias = "slo_tpot", value_name = "TIME", help_heading = "Serving")]
    slo_tpot: Millis,
    /// Limit of the time to the last token
    #[arg(long, alias = "slo_e2e", value_name = "TIME", help_heading = "Serving")]
    slo_e2e: Millis,
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| format!("expected a number from {least} to {most}"))
}

fn factor(text: &str) -> Result<f64, String> {
    within(text, 0.01, 1000.0)
}

fn jitter(text: &str) -> Result<f64, String> {
    within(text, 0.0, 10.0)
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| "expected a positive number".to_owned())
}

impl Options {
    /// Reads one option as a configuration writes it.
    ///
    /// # Errors
    /// An unknown name, or a value that the option does not take, in words.
    pub fn read(name: &str, value: &str) -> Result<Options, String> {
        if !Self::NAMES.contains(&name) {
            let near = nearest(name, Self::NAMES.iter().copied());
            return Err(format!(
                "no option of that name{}",
                near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
            ));
        }
        let command = Options::augment_args(clap::Command::new("simulate").no_binary_name(true));
        let flag = format!("--{}={value}", name.replace('_', "-"));
        let matches = command.try_get_matches_from([flag]).map_err(|error| complaint(&error))?;
        Options::from_arg_matches(&matches).map_err(|error| complaint(&error))
    }

    /// What a workload and the knobs say under their own names; nothing where they are silent.
    #[must_use]
    pub fn stated(scenario: &Scenario) -> Options {
        let said = &scenario.base.plan.simulation;
        let settings = scenario.simulation(&scenario.base);
        let count = |value: Option<Count>| value.and_then(Count::nonzero).map(Count::get);
        let span = |value: Option<f64>| value.filter(|value| *value > 0.0).map(Span);
        let limit = |value: Option<f64>| value.map(|ms| Millis(1e-3 * ms));
        let spread = |mean: f64, cv: Option<f64>| {
            cv.filter(|cv| *cv > 0.0).map(|cv| Lengths(Distribution::LogNormal { mean, cv }))
        };
        let shape = &scenario.base.shape;
        let serves = scenario.mode() == Mode::Inference;
        if serves {
            return Options {
                seed: Some(settings.seed),
                replications: count(said.replications),
                requests: said.requests.map(Count::get),
                arrivals: said.arrivals.or(said.arrival_cv.map(|_| Arrivals::Gamma)).map(|word| match word {
                    Arrivals::Closed => ArrivalsWord::Closed(None),
                    Arrivals::Poisson => ArrivalsWord::Poisson(None),
                    Arrivals::Gamma => ArrivalsWord::Gamma(settings.arrival_cv, None),
                    Arrivals::Burst => ArrivalsWord::Burst,
                }),
                isl: spread(shape.prompt + scenario.image_tokens(&scenario.base), said.prompt_cv),
                osl: spread(shape.generate, said.generate_cv),
                slo_ttft: limit(said.slo_ttft_ms),
                slo_tpot: limit(said.slo_tpot_ms),
                slo_e2e: limit(said.slo_e2e_ms),
                ..Options::default()
            };
        }
        let slow_hosts = count(said.slow_nodes);
        Options {
            seed: Some(settings.seed),
            replications: count(said.replications),
            steps: Some(settings.steps),
            jitter: said.jitter,
            slow_hosts,
            slow_factor: slow_hosts.map(|_| settings.slow_factor),
            // Of a node there, of an accelerator here.
            mtbf: span(said.node_mtbf_h.map(|hours| hours * 3600.0 * scenario.accelerators_per_node)),
            checkpoint_interval: span(said.checkpoint_interval_s),
            checkpoint_seconds: span(said.checkpoint_s),
            restart: span(said.restart_s),
            ..Options::default()
        }
    }

    /// The seed in force.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(1337)
    }

    /// Whether failures are to be studied: said so, or something said about them.
    #[must_use]
    pub fn wants_goodput(&self) -> bool {
        self.study == Some(Study::Goodput)
            || self.spares.is_some()
            || self.storage_gbytes.is_some()
            || [
                self.mtbf,
                self.detection,
                self.restart,
                self.repair,
                self.checkpoint_seconds,
                self.checkpoint_flush,
                self.checkpoint_interval,
                self.work,
            ]
            .iter()
            .any(Option::is_some)
    }

    /// The number of runs in force.
    #[must_use]
    pub fn replications(&self) -> u32 {
        self.replications.unwrap_or(1).max(1)
    }
}

/// What is wrong with a value, without the words about the command line around it.
fn complaint(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    first.rsplit_once("': ").map_or_else(|| first.to_owned(), |(_, why)| why.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
    fn options_are_read_one_by_one_and_laid_over_each_other() {
        let steps = Options::read("steps", "20").unwrap();
        let both = Options::read("slow_factor", "2.5").unwrap().or(steps);
        assert_eq!((both.steps, both.slow_factor, both.seed()), (Some(20), Some(2.5), 1337));
        assert_eq!(Options::read("every_replica", "true").unwrap().every_replica, Some(true));
        assert_eq!(Options::read("mtbf", "50000h").unwrap().mtbf, Some(Span(1.8e8)));
        assert!(Options::default().is_empty() && !both.is_empty());
    }

    #[test]
    fn complaints_say_what_was_expected() {
        assert!(Options::read("stepps", "1").unwrap_err().contains("did you mean `steps`?"));
        assert!(Options::read("arrivals", "often").unwrap_err().contains("expected"));
        assert!(Options::read("jitter", "-1").unwrap_err().contains("0 to 10"));
        // What is negative is a value out of range, no flag.
        let apart = command().try_get_matches_from(["simulate", "--jitter", "-0.5"]).unwrap_err().to_string();
        assert!(apart.contains("0 to 10"), "{apart}");
        assert!(Options::read("steps", "0").unwrap_err().contains("1..=1000000"));
    }
}
