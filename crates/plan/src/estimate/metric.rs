//! The registry of metrics: every figure of an estimate, described once for panes, tables, demos and reports.

use atlas_core::count::Count;
use std::sync::OnceLock;

use super::Estimate;
use super::detail::{Interval, Serving, SimulatedServing, SimulatedTraining, Training};
use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::units;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neutral,
}

/// How a metric is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// SI prefix, four digits.
    Si,
    /// Per cent.
    Percent,
    /// Dollars.
    Usd,
    /// A duration given in milliseconds.
    Duration,
    /// A duration given in hours.
    Hours,
    /// Energy given in kilowatt-hours.
    Energy,
    /// Mass given in kilograms.
    Mass,
    /// A whole number.
    Count,
}

impl Format {
    /// Writes a value without its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Format::Si => units::si(value),
            Format::Percent => units::percent(value),
            Format::Usd => units::usd(value),
            Format::Duration => units::duration_ms(value),
            Format::Hours => units::duration_ms(value * 3.6e6),
            Format::Energy => units::with_unit(&units::si(value * 1e3), "Wh"),
            Format::Mass if value.abs() >= 999.95 => units::with_unit(&units::si(value * 1e-3), "t"),
            Format::Mass => units::with_unit(&units::si(value), "kg"),
            Format::Count => format!("{value:.0}"),
        }
    }
}

/// When a metric says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// Always.
    Always,
    /// In training.
    Training,
    /// In inference.
    Inference,
    /// In inference with a schedule.
    Queueing,
    /// In training, of engines that know the model.
    AnalyticalTraining,
    /// In inference, of engines that know the model.
    AnalyticalServing,
    /// Of engines that know the model.
    Analytical,
    /// In training, of engines that simulate.
    SimulatedTraining,
    /// In inference, of engines that simulate.
    SimulatedServing,
    /// As [`Applies::Analytical`], where a purchase price is known.
    Owned,
    /// As [`Applies::AnalyticalTraining`], where the makers of the model say what they trained it on.
    Published,
}

/// Which measured error applies to a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// None was measured.
    Unknown,
    /// The throughput's.
    Throughput,
    /// The throughput's, upside down: times and prices of a given work.
    Inverse,
    /// The time to first token's.
    Ttft,
    /// The time per output token's.
    Tpot,
}

/// The section that shows a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// How fast.
    Throughput,
    /// How soon.
    Latency,
    /// Cost.
    Cost,
    /// How hungry.
    Power,
    /// How full.
    Utilization,
}

impl Section {
    /// All of them, in their order.
    pub const ALL: [Section; 5] =
        [Section::Throughput, Section::Latency, Section::Cost, Section::Power, Section::Utilization];

    /// The section of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|section| section.name() == name)
    }

    /// Its heading.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Section::Throughput => "throughput",
            Section::Latency => "latency",
            Section::Cost => "cost",
            Section::Power => "power",
            Section::Utilization => "utilization",
        }
    }
}

/// One figure of an estimate, described once for panes, tables, demos and reports.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in files, flags and JSON.
    pub name: &'static str,
    /// Its label on screens.
    pub label: &'static str,
    /// Its unit, where the format does not write one.
    pub unit: &'static str,
    /// The section that shows it.
    pub section: Section,
    /// Which way is better.
    pub better: Better,
    /// How it is written.
    pub format: Format,
    /// When it says something.
    pub applies: Applies,
    /// What is known of its error.
    pub trust: Trust,
    /// One line of explanation.
    pub help: &'static str,
    /// Reads it.
    pub get: fn(&Estimate, &Scenario) -> f64,
}

impl PartialEq for Metric {
    fn eq(&self, other: &Metric) -> bool {
        self.name == other.name
    }
}

#[expect(clippy::too_many_arguments, reason = "the columns of the table below")]
const fn entry(
    name: &'static str,
    label: &'static str,
    section: Section,
    better: Better,
    format: Format,
    applies: Applies,
    help: &'static str,
    get: fn(&Estimate, &Scenario) -> f64,
) -> Metric {
    Metric { name, label, unit: "", section, better, format, applies, trust: Trust::Unknown, help, get }
}

impl Metric {
    const fn unit(self, unit: &'static str) -> Metric {
        Metric { unit, ..self }
    }

    const fn trust(self, trust: Trust) -> Metric {
        Metric { trust, ..self }
    }
}

use Better::{Higher, Lower, Neutral};
use Section::{Cost, Latency, Power, Throughput, Utilization};

fn training(estimate: &Estimate, get: impl Fn(&Training) -> f64) -> f64 {
    estimate.detail.as_ref().and_then(|detail| detail.training.as_ref()).map_or(0.0, get)
}

fn serving(estimate: &Estimate, get: impl Fn(&Serving) -> f64) -> f64 {
    estimate.detail.as_ref().and_then(|detail| detail.serving.as_ref()).map_or(0.0, get)
}

fn trained(estimate: &Estimate, get: impl Fn(&SimulatedTraining) -> f64) -> f64 {
    estimate.detail.as_ref().and_then(|detail| detail.simulated?.training).as_ref().map_or(0.0, get)
}

fn served(estimate: &Estimate, get: impl Fn(&SimulatedServing) -> f64) -> f64 {
    estimate.detail.as_ref().and_then(|detail| detail.simulated?.serving).as_ref().map_or(0.0, get)
}

/// Hours to generate or learn this many tokens.
fn hours(estimate: &Estimate, tokens: f64) -> f64 {
    tokens / estimate.total.tokens_per_sec.max(1e-9) / 3600.0
}

/// Tokens of the whole training run.
fn run_tokens(estimate: &Estimate) -> f64 {
    training(estimate, |training| training.run_tokens)
}

/// Tokens that the model was trained on; metrics of them apply only where they are published.
fn published(scenario: &Scenario) -> f64 {
    scenario.published_tokens.unwrap_or(0.0)
}

/// USD for this many tokens.
fn usd(estimate: &Estimate, tokens: f64) -> f64 {
    estimate.cost.usd_per_1k_tokens * tokens * 1e-3
}

/// Energy that the facility draws for this many tokens, kWh: the nodes' and, by the PUE, what cools and feeds them.
fn kwh(estimate: &Estimate, scenario: &Scenario, tokens: f64) -> f64 {
    tokens / tokens_per_joule(estimate, scenario).max(1e-12) / 3.6e6 * scenario.pue
}

/// USD of an hour of work on hardware that is owned, all nodes: purchase with interest, network, spares, building, people
/// and energy.
fn owned_per_hour(estimate: &Estimate, scenario: &Scenario) -> f64 {
    scenario.owned_usd_node_hour() * scenario.num_nodes + estimate.cost.energy_usd_per_hour
}

/// Months after which buying a node has cost less than renting it for the time it works.
fn break_even_months(estimate: &Estimate, scenario: &Scenario) -> f64 {
    let energy = if scenario.rent_includes_energy() { estimate.cost.energy_usd_per_hour } else { 0.0 };
    scenario.break_even_months(energy / scenario.num_nodes.max(Count::ONE))
}

/// Tokens per joule at the plugs of all nodes, and of those that the layout requests beyond them.
fn tokens_per_joule(estimate: &Estimate, scenario: &Scenario) -> f64 {
    estimate.total.tokens_per_sec / (estimate.total.node_power_w * scenario.num_nodes * estimate.shortfall())
}

/// Tokens per second of one accelerator at work.
fn per_accelerator(estimate: &Estimate, scenario: &Scenario) -> f64 {
    let working = if scenario.engine.reasons() {
        scenario.working_accelerators()
    } else {
        scenario.accelerators() * estimate.shortfall()
    };
    estimate.total.tokens_per_sec / working.max(1e-9)
}

/// Upper bound of the memory in use over what the fullest device has for it.
fn memory_fill(estimate: &Estimate) -> f64 {
    estimate.detail.as_ref().map_or(0.0, |detail| detail.memory.upper / detail.memory.capacity.max(1e-9))
}

/// Every metric, in the order in which panes and tables show them.
pub static METRICS: [Metric; 53] = [
    entry(
        "tokens_per_sec",
        "tokens/s",
        Throughput,
        Higher,
        Format::Si,
        Applies::Always,
        "tokens per second of all accelerators; output tokens in inference",
        |e, _| e.total.tokens_per_sec,
    )
    .unit("tok/s")
    .trust(Trust::Throughput),
    entry(
        "tokens_per_sec_per_accel",
        "tok/s/accel",
        Throughput,
        Higher,
        Format::Si,
        Applies::Always,
        "tokens per second per accelerator used by the layout, as in MFU",
        per_accelerator,
    )
    .unit("tok/s")
    .trust(Trust::Throughput),
    entry(
        "total_tokens_per_sec",
        "total tok/s",
        Throughput,
        Higher,
        Format::Si,
        Applies::AnalyticalServing,
        "input and output tokens per second of all accelerators",
        |e, _| serving(e, |s| s.total_tokens_per_sec),
    )
    .unit("tok/s")
    .trust(Trust::Throughput),
    entry(
        "tokens_per_sec_per_user",
        "tok/s/user",
        Throughput,
        Higher,
        Format::Si,
        Applies::AnalyticalServing,
        "interactivity: output tokens per second per user, 1 / TPOT",
        |e, _| serving(e, |s| s.tokens_per_sec_per_user),
    )
    .unit("tok/s"),
    entry(
        "requests_per_sec",
        "requests/s",
        Throughput,
        Higher,
        Format::Si,
        Applies::AnalyticalServing,
        "completed requests per second",
        |e, _| serving(e, |s| s.requests_per_sec),
    )
    .unit("req/s")
    .trust(Trust::Throughput),
    entry(
        "max_concurrency",
        "max sequences",
        Throughput,
        Higher,
        Format::Si,
        Applies::AnalyticalServing,
        "sequences that fit in the KV cache of one replica",
        |e, _| serving(e, |s| s.max_concurrency),
    )
    .unit("seq"),
    entry(
        "step_time_ms",
        "step time",
        Throughput,
        Lower,
        Format::Duration,
        Applies::Training,
        "time of one optimizer step",
        |e, _| e.total.step_time_ms,
    )
    .trust(Trust::Inverse),
    entry(
        "mfu_causal",
        "MFU causal",
        Throughput,
        Higher,
        Format::Percent,
        Applies::AnalyticalTraining,
        "model FLOPs utilization with causal attention counted once, as in Megatron-Core since 2025",
        |e, _| training(e, |t| t.mfu_causal),
    )
    .trust(Trust::Throughput),
    entry(
        "mfu",
        "MFU PaLM",
        Throughput,
        Higher,
        Format::Percent,
        Applies::AnalyticalTraining,
        "model FLOPs utilization, PaLM convention: full attention, without recomputation (arXiv 2204.02311, app. B)",
        |e, _| training(e, |t| t.mfu),
    )
    .trust(Trust::Throughput),
    entry(
        "hfu",
        "HFU",
        Throughput,
        Higher,
        Format::Percent,
        Applies::AnalyticalTraining,
        "hardware FLOPs utilization, including recomputation (arXiv 2205.05198, section 6)",
        |e, _| training(e, |t| t.hfu),
    )
    .trust(Trust::Throughput),
    entry(
        "time_to_train_h",
        "time to train",
        Throughput,
        Lower,
        Format::Hours,
        Applies::AnalyticalTraining,
        "wall-clock time to train on train_tokens, without failures",
        |e, _| hours(e, run_tokens(e)),
    )
    .trust(Trust::Inverse),
    entry(
        "time_to_published_h",
        "published time",
        Throughput,
        Lower,
        Format::Hours,
        Applies::Published,
        "wall-clock time to train on the model's published token count",
        |e, s| hours(e, published(s)),
    )
    .trust(Trust::Inverse),
    entry(
        "goodput",
        "goodput",
        Throughput,
        Higher,
        Format::Percent,
        Applies::SimulatedTraining,
        "share of wall-clock time spent on useful work, excluding lost work, restarts and checkpoints",
        |e, _| trained(e, |t| t.goodput),
    ),
    entry(
        "straggler_share",
        "stragglers",
        Throughput,
        Lower,
        Format::Percent,
        Applies::SimulatedTraining,
        "share of a step lost to slow nodes and jitter, compared with uniform hardware",
        |e, _| trained(e, |t| t.stragglers),
    ),
    entry(
        "failures_per_day",
        "failures/day",
        Throughput,
        Lower,
        Format::Si,
        Applies::SimulatedTraining,
        "failures per day of the whole job",
        |e, _| trained(e, |t| t.failures_per_day),
    ),
    entry(
        "good_share",
        "good requests",
        Throughput,
        Higher,
        Format::Percent,
        Applies::SimulatedServing,
        "SLO attainment: share of requests that meet slo_ttft_ms, slo_tpot_ms and slo_e2e_ms",
        |e, _| served(e, |s| s.good_share),
    ),
    entry(
        "goodput_rps",
        "goodput",
        Throughput,
        Higher,
        Format::Si,
        Applies::SimulatedServing,
        "requests per second that meet all SLOs",
        |e, _| served(e, |s| s.goodput),
    )
    .unit("req/s"),
    entry(
        "waiting_requests",
        "waiting",
        Latency,
        Lower,
        Format::Si,
        Applies::SimulatedServing,
        "queue depth: mean number of requests waiting for a batch slot, all replicas",
        |e, _| served(e, |s| s.waiting),
    )
    .unit("req"),
    entry(
        "p50_ms",
        "E2E p50",
        Latency,
        Lower,
        Format::Duration,
        Applies::Inference,
        "median end-to-end latency, including queueing",
        |e, _| e.total.latency.p50,
    ),
    entry(
        "p95_ms",
        "E2E p95",
        Latency,
        Lower,
        Format::Duration,
        Applies::Inference,
        "95th percentile of end-to-end latency, including queueing",
        |e, _| e.total.latency.p95,
    ),
    entry(
        "p99_ms",
        "E2E p99",
        Latency,
        Lower,
        Format::Duration,
        Applies::Inference,
        "99th percentile of end-to-end latency, including queueing",
        |e, _| e.total.latency.p99,
    ),
    entry(
        "ttft_ms",
        "TTFT",
        Latency,
        Lower,
        Format::Duration,
        Applies::Inference,
        "time to first token, including queueing",
        |e, _| e.total.latency.ttft,
    )
    .trust(Trust::Ttft),
    entry(
        "ttft_p99_ms",
        "TTFT p99",
        Latency,
        Lower,
        Format::Duration,
        Applies::AnalyticalServing,
        "99th percentile of time to first token",
        |e, _| serving(e, |s| s.ttft_ms[3]),
    ),
    entry(
        "tpot_ms",
        "TPOT",
        Latency,
        Lower,
        Format::Duration,
        Applies::AnalyticalServing,
        "time per output token after the first: (end to end - TTFT) / (OSL - 1), mean over requests",
        |e, _| serving(e, |s| s.tpot_ms[0]),
    )
    .trust(Trust::Tpot),
    entry(
        "itl_p99_ms",
        "ITL p99",
        Latency,
        Lower,
        Format::Duration,
        Applies::AnalyticalServing,
        "99th percentile of inter-token latency; shows interference by prefill, unlike TPOT",
        |e, _| serving(e, |s| s.itl_ms[3]),
    ),
    entry(
        "queue_wait_p99_ms",
        "wait p99",
        Latency,
        Lower,
        Format::Duration,
        Applies::Queueing,
        "99th percentile of the queueing time",
        |e, _| e.queue.wait.p99,
    ),
    entry(
        "queue_utilization",
        "queue load",
        Latency,
        Lower,
        Format::Percent,
        Applies::Queueing,
        "server utilization",
        |e, _| e.queue.utilization,
    ),
    entry(
        "dollar_per_1k_tokens",
        "$/1k tokens",
        Cost,
        Lower,
        Format::Usd,
        Applies::Always,
        "cost of all nodes per 1,000 tokens",
        |e, _| e.cost.usd_per_1k_tokens,
    )
    .trust(Trust::Inverse),
    entry(
        "dollar_per_1m_tokens",
        "$/1M tokens",
        Cost,
        Lower,
        Format::Usd,
        Applies::Always,
        "cost of all nodes per million tokens",
        |e, _| e.cost.usd_per_1k_tokens * 1000.0,
    )
    .trust(Trust::Inverse),
    entry(
        "dollar_per_1t_tokens",
        "$/1T tokens",
        Cost,
        Lower,
        Format::Usd,
        Applies::Analytical,
        "cost of all nodes per trillion tokens",
        |e, _| usd(e, 1e12),
    )
    .trust(Trust::Inverse),
    entry(
        "usd_per_run",
        "$/run",
        Cost,
        Lower,
        Format::Usd,
        Applies::AnalyticalTraining,
        "cost to train on train_tokens",
        |e, _| usd(e, run_tokens(e)),
    )
    .trust(Trust::Inverse),
    entry(
        "usd_to_published",
        "published $",
        Cost,
        Lower,
        Format::Usd,
        Applies::Published,
        "cost to train on the model's published token count",
        |e, s| usd(e, published(s)),
    )
    .trust(Trust::Inverse),
    entry(
        "usd_per_hour",
        "$/hour",
        Cost,
        Lower,
        Format::Usd,
        Applies::Always,
        "hourly cost of all nodes, plus energy if it is billed separately",
        |e, _| e.cost.usd_per_hour,
    ),
    entry("tokens_per_dollar", "tokens/$", Cost, Higher, Format::Si, Applies::Always, "tokens per dollar", |e, _| {
        1000.0 / e.cost.usd_per_1k_tokens
    })
    .unit("tok")
    .trust(Trust::Throughput),
    entry(
        "usd_per_hour_owned",
        "$/hour owned",
        Cost,
        Lower,
        Format::Usd,
        Applies::Owned,
        "hourly cost of all nodes if owned: purchase with interest, network, spares, colocation, staff and energy, per productive hour",
        owned_per_hour,
    ),
    entry(
        "dollar_per_1m_tokens_owned",
        "$/1M owned",
        Cost,
        Lower,
        Format::Usd,
        Applies::Owned,
        "cost per million tokens if the nodes were owned",
        |e, s| owned_per_hour(e, s) * e.shortfall() * hours(e, 1e6),
    )
    .trust(Trust::Inverse),
    entry(
        "break_even_months",
        "break-even",
        Cost,
        Lower,
        Format::Si,
        Applies::Owned,
        "months after which buying a node is cheaper than renting it, at this utilization",
        break_even_months,
    )
    .unit("months"),
    entry(
        "node_power_w",
        "power/node",
        Power,
        Lower,
        Format::Si,
        Applies::Always,
        "power of one node at this utilization",
        |e, _| e.total.node_power_w,
    )
    .unit("W"),
    entry(
        "power_w",
        "power",
        Power,
        Lower,
        Format::Si,
        Applies::Always,
        "power of all nodes, without facility overhead (PUE)",
        |e, s| e.total.node_power_w * s.num_nodes,
    )
    .unit("W"),
    entry(
        "tokens_per_joule",
        "tokens/J",
        Power,
        Higher,
        Format::Si,
        Applies::Always,
        "tokens per joule of node energy, without PUE",
        tokens_per_joule,
    )
    .unit("tok/J")
    .trust(Trust::Throughput),
    entry(
        "tokens_per_wh",
        "tokens/Wh",
        Power,
        Higher,
        Format::Si,
        Applies::Analytical,
        "tokens per watt-hour of node energy, without PUE",
        |e, s| tokens_per_joule(e, s) * 3600.0,
    )
    .unit("tok/Wh")
    .trust(Trust::Throughput),
    entry(
        "joules_per_token",
        "energy/token",
        Power,
        Lower,
        Format::Si,
        Applies::Analytical,
        "node energy per token, without PUE",
        |e, s| 1.0 / tokens_per_joule(e, s).max(1e-12),
    )
    .unit("J")
    .trust(Trust::Inverse),
    entry(
        "kwh_per_1m_tokens",
        "energy/1M tok",
        Power,
        Lower,
        Format::Energy,
        Applies::AnalyticalServing,
        "energy per million tokens, including PUE",
        |e, s| kwh(e, s, 1e6),
    )
    .trust(Trust::Inverse),
    entry(
        "kg_co2e_per_1m_tokens",
        "CO2e/1M tokens",
        Power,
        Lower,
        Format::Mass,
        Applies::AnalyticalServing,
        "emissions per million tokens at the grid's carbon intensity",
        |e, s| kwh(e, s, 1e6) * s.kg_co2e_per_kwh,
    )
    .trust(Trust::Inverse),
    entry(
        "kwh_per_run",
        "energy/run",
        Power,
        Lower,
        Format::Energy,
        Applies::AnalyticalTraining,
        "energy to train on train_tokens, including PUE",
        |e, s| kwh(e, s, run_tokens(e)),
    )
    .trust(Trust::Inverse),
    entry(
        "kg_co2e_per_run",
        "CO2e/run",
        Power,
        Lower,
        Format::Mass,
        Applies::AnalyticalTraining,
        "emissions to train on train_tokens at the grid's carbon intensity",
        |e, s| kwh(e, s, run_tokens(e)) * s.kg_co2e_per_kwh,
    )
    .trust(Trust::Inverse),
    entry(
        "flop_utilization",
        "FLOP use",
        Utilization,
        Higher,
        Format::Percent,
        Applies::Always,
        "share of peak FLOP/s spent on useful work",
        |e, _| e.total.flop_utilization,
    ),
    entry(
        "hbm_bw_util",
        "HBM use",
        Utilization,
        Neutral,
        Format::Percent,
        Applies::Always,
        "share of peak memory bandwidth in use",
        |e, _| e.total.hbm_bw_util,
    ),
    entry(
        "comm_compute_ratio",
        "comm share",
        Utilization,
        Lower,
        Format::Percent,
        Applies::Always,
        "share of time spent on communication",
        |e, _| e.total.comm_compute_ratio,
    ),
    entry(
        "kv_used",
        "KV blocks used",
        Utilization,
        Neutral,
        Format::Percent,
        Applies::SimulatedServing,
        "mean share of KV cache blocks in use",
        |e, _| served(e, |s| s.kv),
    ),
    entry(
        "preemptions_per_request",
        "preemptions",
        Utilization,
        Lower,
        Format::Si,
        Applies::SimulatedServing,
        "preemptions per request, for lack of KV cache memory, followed by recomputation",
        |e, _| served(e, |s| s.preemptions),
    )
    .unit("/req"),
    entry(
        "peak_mem_gb",
        "memory",
        Utilization,
        Neutral,
        Format::Si,
        Applies::Always,
        "peak memory per accelerator; the semi-empirical engine clips it to the capacity",
        |e, _| e.total.peak_mem_gb,
    )
    .unit("GB"),
    entry(
        "memory_fill",
        "memory fill",
        Utilization,
        Neutral,
        Format::Percent,
        Applies::Analytical,
        "upper bound of memory relative to usable device memory; above 100 %, it does not fit",
        |e, _| memory_fill(e),
    ),
];

/// The unit that suits times up to this many milliseconds, and what milliseconds are multiplied by for it.
fn time_unit(high: f64) -> (f64, &'static str) {
    const SECOND: f64 = 1e3;
    const MINUTE: f64 = 60.0 * SECOND;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    match high.abs() {
        high if high < 2.0 * SECOND => (1.0, "ms"),
        high if high < 10.0 * MINUTE => (1.0 / SECOND, "s"),
        high if high < 5.0 * HOUR => (1.0 / MINUTE, "min"),
        high if high < 5.0 * DAY => (1.0 / HOUR, "h"),
        _ => (1.0 / DAY, "d"),
    }
}

/// The metrics that answer what users ask first, in the order in which they are shown.
const HEADLINES: [(Mode, &[&str]); 2] = [
    (
        Mode::Inference,
        &[
            "tpot_ms",
            "ttft_ms",
            "tokens_per_sec_per_user",
            "tokens_per_sec_per_accel",
            "dollar_per_1m_tokens",
            "tokens_per_sec",
            "memory_fill",
        ],
    ),
    (
        Mode::Training,
        &[
            "time_to_train_h",
            "step_time_ms",
            "mfu_causal",
            "tokens_per_sec_per_accel",
            "dollar_per_1m_tokens",
            "tokens_per_sec",
            "usd_per_run",
            "memory_fill",
        ],
    ),
];

/// [`HEADLINES`] looked up once, since every frame lists its figures in this order.
struct Ranking {
    headlines: Vec<&'static Metric>,
    all: Vec<&'static Metric>,
}

impl Ranking {
    fn of(mode: Mode) -> &'static Ranking {
        static TRAINING: OnceLock<Ranking> = OnceLock::new();
        static INFERENCE: OnceLock<Ranking> = OnceLock::new();
        let known = match mode {
            Mode::Training => &TRAINING,
            Mode::Inference => &INFERENCE,
        };
        known.get_or_init(|| {
            let names = HEADLINES.iter().find(|(known, _)| *known == mode).map_or(&[][..], |(_, names)| names);
            let headlines: Vec<_> = names.iter().filter_map(|name| Metric::named(name)).collect();
            let rest = METRICS.iter().filter(|metric| !headlines.contains(metric));
            let all = headlines.iter().copied().chain(rest).collect();
            Ranking { headlines, all }
        })
    }
}

impl Metric {
    /// The metrics that answer what users ask first of training or serving, most important first.
    pub fn headlines(mode: Mode) -> impl Iterator<Item = &'static Metric> {
        Ranking::of(mode).headlines.iter().copied()
    }

    /// Every metric, those that answer what users ask first before the others.
    pub fn by_importance(mode: Mode) -> impl Iterator<Item = &'static Metric> {
        Ranking::of(mode).all.iter().copied()
    }

    /// The metric of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Whether it says something about this scenario.
    #[must_use]
    pub fn applies_to(&self, scenario: &Scenario) -> bool {
        let inference = scenario.mode() == Mode::Inference;
        // The dashboard's estimator answers everything as a training step: it knows no latency.
        let dashboard = scenario.engine == Engine::Benchboard;
        // Without a price there is no cost to show, and no cheapest.
        let unpriced = scenario.engine.reasons() && scenario.usd_node_hour() <= 0.0;
        if unpriced && self.section == Section::Cost && self.applies != Applies::Owned {
            return false;
        }
        match self.applies {
            Applies::Always => true,
            Applies::Training => !inference || dashboard,
            Applies::Inference => inference && !dashboard,
            Applies::Queueing => inference && !dashboard && !scenario.phases.is_empty(),
            Applies::AnalyticalTraining => !inference && scenario.engine.reasons(),
            Applies::AnalyticalServing => inference && scenario.engine.reasons(),
            Applies::Analytical => scenario.engine.reasons(),
            Applies::SimulatedTraining => !inference && scenario.engine.simulates(),
            Applies::SimulatedServing => inference && scenario.engine.simulates(),
            Applies::Owned => scenario.engine.reasons() && scenario.capex_usd_node.is_some(),
            Applies::Published => !inference && scenario.engine.reasons() && scenario.published_tokens.is_some(),
        }
    }

    /// The ends between which nine measurements of ten lie, where that is known.
    #[must_use]
    pub fn interval(&self, estimate: &Estimate, scenario: &Scenario) -> Option<(f64, f64)> {
        let detail = estimate.detail.as_ref().filter(|_| scenario.engine != Engine::Benchboard)?;
        let factors: Option<Interval> = match self.trust {
            Trust::Unknown => None,
            Trust::Throughput => Some(detail.throughput_interval),
            Trust::Inverse => Some(detail.throughput_interval.inverse()),
            Trust::Ttft => detail.serving.map(|serving| serving.ttft_interval),
            Trust::Tpot => detail.serving.map(|serving| serving.tpot_interval),
        };
        factors.map(|factors| factors.around((self.get)(estimate, scenario)))
    }

    /// The unit in which an axis for values up to this one is labeled, and what values are multiplied by for it.
    #[must_use]
    pub fn axis_unit(&self, high: f64) -> (f64, &'static str) {
        match self.format {
            Format::Percent => (100.0, "%"),
            Format::Duration => time_unit(high),
            Format::Hours => {
                let (factor, unit) = time_unit(high * 3.6e6);
                (factor * 3.6e6, unit)
            }
            Format::Energy => (1e3, "Wh"),
            Format::Mass if high.abs() >= 999.95 => (1e-3, "t"),
            Format::Mass => (1.0, "kg"),
            // The label says the currency.
            Format::Usd => (1.0, if self.label.contains('$') { "" } else { "USD" }),
            Format::Si | Format::Count => (1.0, self.unit),
        }
    }

    /// Its value with its unit.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        let text = self.format.show(value);
        if self.unit.is_empty() { text } else { units::with_unit(&text, self.unit) }
    }
}
