//! Table of metrics and their identifiers.

use atlas_core::count::Count;

use super::super::Estimate;
use super::super::detail::{Serving, SimulatedServing, SimulatedTraining, Training};
use super::Direction::{self, Higher, Lower, Neutral};
use super::Format::{self, Duration, Energy, Hours, Mass, Percent, Si, Usd};
use super::Section::{self, Cost, Latency, Power, Throughput, Utilization};
use super::{Applicability as When, ErrorSource, Metric};
use crate::scenario::Scenario;

/// Generates an enum variant and a table row for every entry, so that a metric is added in one place.
macro_rules! metrics {
    ($(
        entry($id:ident, $name:literal, $label:literal, $get:expr $(,)?)
            .of($($of:tt)*)
            $(.unit($unit:literal))?
            .help($help:literal $(,)?)
    ),* $(,)?) => {
        /// Identifier of a metric, in the order of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum MetricId {
            $(#[doc = $help] $id,)*
        }

        /// All metrics that a search may use as goal or constraint, in the order of [`MetricId`]: [`METRICS`], then
        /// those that are available only to searches.
        pub static SEARCH_METRICS: &[Metric] =
            &[$(entry(MetricId::$id, $name, $label, $get).of($($of)*)$(.unit($unit))?.help($help)),*];
    };
}

/// Starts the definition of a metric; its remaining properties are set by the methods below.
const fn entry(
    id: MetricId,
    name: &'static str,
    label: &'static str,
    get: fn(&Estimate, &Scenario) -> Option<f64>,
) -> Metric {
    let (section, better, format) = (Utilization, Neutral, Si);
    let (applies, trust) = (When::Always, ErrorSource::Unknown);
    Metric { id, name, label, unit: "", section, better, format, applies, trust, help: "", get }
}

impl Metric {
    const fn of(
        self,
        section: Section,
        better: Direction,
        format: Format,
        applies: When,
        trust: ErrorSource,
    ) -> Metric {
        Metric { section, better, format, applies, trust, ..self }
    }

    const fn unit(self, unit: &'static str) -> Metric {
        Metric { unit, ..self }
    }

    const fn help(self, help: &'static str) -> Metric {
        Metric { help, ..self }
    }
}

fn training(estimate: &Estimate, get: impl Fn(&Training) -> f64) -> Option<f64> {
    estimate.detail.as_ref().and_then(|detail| detail.training.as_ref()).map(get)
}

fn serving(estimate: &Estimate, get: impl Fn(&Serving) -> f64) -> Option<f64> {
    estimate.detail.as_ref().and_then(|detail| detail.serving.as_ref()).map(get)
}

fn trained(estimate: &Estimate, get: impl Fn(&SimulatedTraining) -> f64) -> Option<f64> {
    estimate.detail.as_ref().and_then(|detail| detail.simulated?.training).as_ref().map(get)
}

fn served(estimate: &Estimate, get: impl Fn(&SimulatedServing) -> f64) -> Option<f64> {
    estimate.detail.as_ref().and_then(|detail| detail.simulated?.serving).as_ref().map(get)
}

/// Hours to process or generate `tokens` tokens.
fn hours(estimate: &Estimate, tokens: f64) -> f64 {
    tokens / estimate.total.tokens_per_sec.max(1e-9) / 3600.0
}

/// Tokens of the whole training run.
fn run_tokens(estimate: &Estimate) -> Option<f64> {
    training(estimate, |training| training.run_tokens)
}

/// USD for `tokens` tokens.
fn usd(estimate: &Estimate, tokens: f64) -> f64 {
    estimate.cost.usd_per_1k_tokens * tokens * 1e-3
}

/// Energy of the facility for `tokens` tokens, kWh: that of the nodes times the PUE.
fn kwh(estimate: &Estimate, scenario: &Scenario, tokens: f64) -> f64 {
    tokens / tokens_per_joule(estimate, scenario).max(1e-12) / 3.6e6 * scenario.pue
}

/// USD per productive hour of all nodes if they are owned: purchase with interest, network, spares, building, staff and
/// energy.
fn owned_per_hour(estimate: &Estimate, scenario: &Scenario) -> Option<f64> {
    Some(scenario.owned_usd_node_hour()? * scenario.num_nodes + estimate.cost.energy_usd_per_hour)
}

/// USD per million tokens on owned hardware.
fn owned_per_1m_tokens(estimate: &Estimate, scenario: &Scenario) -> Option<f64> {
    Some(owned_per_hour(estimate, scenario)? * estimate.shortfall() * hours(estimate, 1e6))
}

/// Months after which buying a node is cheaper than renting it for the time it is in use.
fn break_even_months(estimate: &Estimate, scenario: &Scenario) -> Option<f64> {
    let energy = if scenario.rent_includes_energy() { estimate.cost.energy_usd_per_hour } else { 0.0 };
    scenario.break_even_months(energy / scenario.num_nodes.max(Count::ONE))
}

/// Tokens per joule of node energy, without PUE, including nodes that the layout requests beyond those of the target.
fn tokens_per_joule(estimate: &Estimate, scenario: &Scenario) -> f64 {
    estimate.total.tokens_per_sec / (estimate.total.node_power_w * scenario.num_nodes * estimate.shortfall())
}

/// Tokens per second per accelerator in use.
fn per_accelerator(estimate: &Estimate, scenario: &Scenario) -> f64 {
    let working = if scenario.engine.models_hardware() {
        scenario.working_accelerators()
    } else {
        scenario.accelerators() * estimate.shortfall()
    };
    estimate.total.tokens_per_sec / working.max(1e-9)
}

/// Upper bound of memory over the capacity of the fullest device.
fn memory_fill(estimate: &Estimate) -> Option<f64> {
    estimate.detail.as_ref().map(|detail| detail.memory.upper / detail.memory.capacity.max(1e-9))
}

/// Accelerators used by the layout: its devices over the devices that software sees per accelerator.
fn accelerators(scenario: &Scenario) -> f64 {
    scenario.working_devices() / scenario.machine.map_or(1.0, |machine| machine.dies)
}

/// Share of memory left free on the fullest device, by the upper bound that decides whether it fits.
fn headroom(estimate: &Estimate, scenario: &Scenario) -> f64 {
    match &estimate.detail {
        Some(detail) => detail.memory.free(),
        None => 1.0 - estimate.total.peak_mem_gb / scenario.memory_gb_per_accel.max(1e-9),
    }
}

/// All metrics in display order.
pub static METRICS: &[Metric] = SEARCH_METRICS.split_at(MetricId::Accelerators as usize).0;

metrics![
    entry(TokensPerSec, "tokens_per_sec", "tokens/s", |e, _| Some(e.total.tokens_per_sec))
        .of(Throughput, Higher, Si, When::Always, ErrorSource::Throughput)
        .unit("tok/s")
        .help("tokens per second of all accelerators; output tokens in inference"),
    entry(TokensPerSecPerAccel, "tokens_per_sec_per_accel", "tok/s/accel", |e, s| Some(per_accelerator(e, s)))
        .of(Throughput, Higher, Si, When::Always, ErrorSource::Throughput)
        .unit("tok/s")
        .help("tokens per second per accelerator used by the layout, as in MFU"),
    entry(TotalTokensPerSec, "total_tokens_per_sec", "total tok/s", |e, _| serving(e, |s| s.total_tokens_per_sec))
        .of(Throughput, Higher, Si, When::AnalyticalServing, ErrorSource::Throughput)
        .unit("tok/s")
        .help("input and output tokens per second of all accelerators"),
    entry(TokensPerSecPerUser, "tokens_per_sec_per_user", "tok/s/user", |e, _| serving(e, |s| s
        .tokens_per_sec_per_user))
    .of(Throughput, Higher, Si, When::Generation, ErrorSource::Unknown)
    .unit("tok/s")
    .help("interactivity: output tokens per second per user, 1 / TPOT"),
    entry(RequestsPerSec, "requests_per_sec", "requests/s", |e, _| serving(e, |s| s.requests_per_sec))
        .of(Throughput, Higher, Si, When::AnalyticalServing, ErrorSource::Throughput)
        .unit("req/s")
        .help("completed requests per second"),
    entry(MaxConcurrency, "max_concurrency", "max sequences", |e, _| serving(e, |s| s.max_concurrency))
        .of(Throughput, Higher, Si, When::Generation, ErrorSource::Unknown)
        .unit("seq")
        .help("sequences that fit in the KV cache of one replica"),
    entry(StepTimeMs, "step_time_ms", "step time", |e, _| e.total.step_time_ms)
        .of(Throughput, Lower, Duration, When::Training, ErrorSource::Inverse)
        .help("time of one optimizer step"),
    entry(MfuCausal, "mfu_causal", "MFU causal", |e, _| training(e, |t| t.mfu_causal))
        .of(Throughput, Higher, Percent, When::AnalyticalTraining, ErrorSource::Throughput)
        .help("model FLOPs utilization with causal attention counted once, as in Megatron-Core since 2025"),
    entry(Mfu, "mfu", "MFU PaLM", |e, _| training(e, |t| t.mfu))
        .of(Throughput, Higher, Percent, When::AnalyticalTraining, ErrorSource::Throughput)
        .help("model FLOPs utilization, PaLM convention: full attention, no recomputation (arXiv 2204.02311, app. B)"),
    entry(Hfu, "hfu", "HFU", |e, _| training(e, |t| t.hfu))
        .of(Throughput, Higher, Percent, When::AnalyticalTraining, ErrorSource::Throughput)
        .help("hardware FLOPs utilization, including recomputation (arXiv 2205.05198, section 6)"),
    entry(TimeToTrainH, "time_to_train_h", "time to train", |e, _| Some(hours(e, run_tokens(e)?)))
        .of(Throughput, Lower, Hours, When::AnalyticalTraining, ErrorSource::Inverse)
        .help("wall-clock time to train on train_tokens, without failures"),
    entry(TimeToPublishedH, "time_to_published_h", "published time", |e, s| Some(hours(e, s.published_tokens?)))
        .of(Throughput, Lower, Hours, When::Published, ErrorSource::Inverse)
        .help("wall-clock time to train on the model's published token count"),
    entry(Goodput, "goodput", "goodput", |e, _| trained(e, |t| t.goodput))
        .of(Throughput, Higher, Percent, When::SimulatedTraining, ErrorSource::Unknown)
        .help("share of wall-clock time spent on useful work, excluding lost work, restarts and checkpoints"),
    entry(StragglerShare, "straggler_share", "stragglers", |e, _| trained(e, |t| t.stragglers))
        .of(Throughput, Lower, Percent, When::SimulatedTraining, ErrorSource::Unknown)
        .help("share of a step lost to slow nodes and jitter, compared with uniform hardware"),
    entry(FailuresPerDay, "failures_per_day", "failures/day", |e, _| trained(e, |t| t.failures_per_day))
        .of(Throughput, Lower, Si, When::SimulatedTraining, ErrorSource::Unknown)
        .help("failures per day of the whole job"),
    entry(GoodShare, "good_share", "good requests", |e, _| served(e, |s| s.good_share))
        .of(Throughput, Higher, Percent, When::SimulatedServing, ErrorSource::Unknown)
        .help("SLO attainment: share of requests that meet slo_ttft_ms, slo_tpot_ms and slo_e2e_ms"),
    entry(GoodputRps, "goodput_rps", "goodput", |e, _| served(e, |s| s.goodput))
        .of(Throughput, Higher, Si, When::SimulatedServing, ErrorSource::Unknown)
        .unit("req/s")
        .help("requests per second that meet all SLOs"),
    entry(GoodputRpsPerAccel, "goodput_rps_per_accel", "goodput/accel", |e, s| {
        Some(served(e, |seen| seen.goodput)? / s.working_accelerators().max(1e-9))
    })
    .of(Throughput, Higher, Si, When::SimulatedServing, ErrorSource::Unknown)
    .unit("req/s")
    .help("goodput per accelerator in use, to compare deployments of different sizes"),
    entry(WaitingRequests, "waiting_requests", "waiting", |e, _| served(e, |s| s.waiting))
        .of(Latency, Lower, Si, When::SimulatedServing, ErrorSource::Unknown)
        .unit("req")
        .help("queue depth: mean number of requests waiting for a batch slot, all replicas"),
    entry(P50Ms, "p50_ms", "E2E p50", |e, _| e.total.latency.map(|latency| latency.p50))
        .of(Latency, Lower, Duration, When::Inference, ErrorSource::Unknown)
        .help("median end-to-end latency, including queueing"),
    entry(P95Ms, "p95_ms", "E2E p95", |e, _| e.total.latency.map(|latency| latency.p95))
        .of(Latency, Lower, Duration, When::Inference, ErrorSource::Unknown)
        .help("95th percentile of end-to-end latency, including queueing"),
    entry(P99Ms, "p99_ms", "E2E p99", |e, _| e.total.latency.map(|latency| latency.p99))
        .of(Latency, Lower, Duration, When::Inference, ErrorSource::Unknown)
        .help("99th percentile of end-to-end latency, including queueing"),
    entry(TtftMs, "ttft_ms", "TTFT", |e, _| e.total.latency.map(|latency| latency.ttft))
        .of(Latency, Lower, Duration, When::Inference, ErrorSource::Ttft)
        .help("time to first token, including queueing"),
    entry(TtftP99Ms, "ttft_p99_ms", "TTFT p99", |e, _| serving(e, |s| s.ttft_ms.p99))
        .of(Latency, Lower, Duration, When::AnalyticalServing, ErrorSource::Unknown)
        .help("99th percentile of time to first token"),
    entry(TpotMs, "tpot_ms", "TPOT", |e, _| serving(e, |s| s.tpot_ms.mean))
        .of(Latency, Lower, Duration, When::Generation, ErrorSource::Tpot)
        .help("time per output token after the first: (end to end - TTFT) / (OSL - 1), mean over requests"),
    entry(ItlP99Ms, "itl_p99_ms", "ITL p99", |e, _| serving(e, |s| s.itl_ms.p99))
        .of(Latency, Lower, Duration, When::Generation, ErrorSource::Unknown)
        .help("99th percentile of inter-token latency; shows interference by prefill, unlike TPOT"),
    entry(QueueWaitP99Ms, "queue_wait_p99_ms", "wait p99", |e, _| e.queue.map(|queue| queue.wait.p99))
        .of(Latency, Lower, Duration, When::Queueing, ErrorSource::Unknown)
        .help("99th percentile of the queueing time"),
    entry(QueueUtilization, "queue_utilization", "queue load", |e, _| e.queue.map(|queue| queue.utilization))
        .of(Latency, Lower, Percent, When::Queueing, ErrorSource::Unknown)
        .help("server utilization"),
    entry(DollarPer1kTokens, "dollar_per_1k_tokens", "$/1k tokens", |e, _| Some(e.cost.usd_per_1k_tokens))
        .of(Cost, Lower, Usd, When::Always, ErrorSource::Inverse)
        .help("cost of all nodes per 1,000 tokens"),
    entry(DollarPer1mTokens, "dollar_per_1m_tokens", "$/1M tokens", |e, _| Some(e.cost.usd_per_1k_tokens * 1000.0))
        .of(Cost, Lower, Usd, When::Always, ErrorSource::Inverse)
        .help("cost of all nodes per million tokens"),
    entry(DollarPer1tTokens, "dollar_per_1t_tokens", "$/1T tokens", |e, _| Some(usd(e, 1e12)))
        .of(Cost, Lower, Usd, When::Analytical, ErrorSource::Inverse)
        .help("cost of all nodes per trillion tokens"),
    entry(UsdPerRun, "usd_per_run", "$/run", |e, _| Some(usd(e, run_tokens(e)?)))
        .of(Cost, Lower, Usd, When::AnalyticalTraining, ErrorSource::Inverse)
        .help("cost to train on train_tokens"),
    entry(UsdToPublished, "usd_to_published", "published $", |e, s| Some(usd(e, s.published_tokens?)))
        .of(Cost, Lower, Usd, When::Published, ErrorSource::Inverse)
        .help("cost to train on the model's published token count"),
    entry(UsdPerHour, "usd_per_hour", "$/hour", |e, _| Some(e.cost.usd_per_hour))
        .of(Cost, Lower, Usd, When::Always, ErrorSource::Unknown)
        .help("hourly cost of all nodes, plus energy if it is billed separately"),
    entry(TokensPerDollar, "tokens_per_dollar", "tokens/$", |e, _| Some(1000.0 / e.cost.usd_per_1k_tokens))
        .of(Cost, Higher, Si, When::Always, ErrorSource::Throughput)
        .unit("tok")
        .help("tokens per dollar"),
    entry(UsdPerHourOwned, "usd_per_hour_owned", "$/hour owned", owned_per_hour)
        .of(Cost, Lower, Usd, When::Owned, ErrorSource::Unknown)
        .help(
            "cost of all nodes per productive hour if owned: \
            purchase, interest, network, spares, colocation, staff, energy",
        ),
    entry(DollarPer1mTokensOwned, "dollar_per_1m_tokens_owned", "$/1M owned", owned_per_1m_tokens)
        .of(Cost, Lower, Usd, When::Owned, ErrorSource::Inverse)
        .help("cost per million tokens if the nodes were owned"),
    entry(BreakEvenMonths, "break_even_months", "break-even", break_even_months)
        .of(Cost, Lower, Si, When::Owned, ErrorSource::Unknown)
        .unit("months")
        .help("months after which buying a node is cheaper than renting it, at this utilization"),
    entry(NodePowerW, "node_power_w", "power/node", |e, _| Some(e.total.node_power_w))
        .of(Power, Lower, Si, When::Always, ErrorSource::Unknown)
        .unit("W")
        .help("power of one node at this utilization"),
    entry(PowerW, "power_w", "power", |e, s| Some(e.total.node_power_w * s.num_nodes))
        .of(Power, Lower, Si, When::Always, ErrorSource::Unknown)
        .unit("W")
        .help("power of all nodes, without facility overhead (PUE)"),
    entry(TokensPerJoule, "tokens_per_joule", "tokens/J", |e, s| Some(tokens_per_joule(e, s)))
        .of(Power, Higher, Si, When::Always, ErrorSource::Throughput)
        .unit("tok/J")
        .help("tokens per joule of node energy, without PUE"),
    entry(TokensPerWh, "tokens_per_wh", "tokens/Wh", |e, s| Some(tokens_per_joule(e, s) * 3600.0))
        .of(Power, Higher, Si, When::Analytical, ErrorSource::Throughput)
        .unit("tok/Wh")
        .help("tokens per watt-hour of node energy, without PUE"),
    entry(JoulesPerToken, "joules_per_token", "energy/token", |e, s| Some(1.0 / tokens_per_joule(e, s).max(1e-12)))
        .of(Power, Lower, Si, When::Analytical, ErrorSource::Inverse)
        .unit("J")
        .help("node energy per token, without PUE"),
    entry(KwhPer1mTokens, "kwh_per_1m_tokens", "energy/1M tok", |e, s| Some(kwh(e, s, 1e6)))
        .of(Power, Lower, Energy, When::AnalyticalServing, ErrorSource::Inverse)
        .help("energy per million tokens, including PUE"),
    entry(KgCo2ePer1mTokens, "kg_co2e_per_1m_tokens", "CO2e/1M tokens", |e, s| Some(
        kwh(e, s, 1e6) * s.kg_co2e_per_kwh
    ))
    .of(Power, Lower, Mass, When::AnalyticalServing, ErrorSource::Inverse)
    .help("emissions per million tokens at the grid's carbon intensity"),
    entry(KwhPerRun, "kwh_per_run", "energy/run", |e, s| Some(kwh(e, s, run_tokens(e)?)))
        .of(Power, Lower, Energy, When::AnalyticalTraining, ErrorSource::Inverse)
        .help("energy to train on train_tokens, including PUE"),
    entry(KgCo2ePerRun, "kg_co2e_per_run", "CO2e/run", |e, s| Some(kwh(e, s, run_tokens(e)?) * s.kg_co2e_per_kwh))
        .of(Power, Lower, Mass, When::AnalyticalTraining, ErrorSource::Inverse)
        .help("emissions to train on train_tokens at the grid's carbon intensity"),
    entry(FlopUtilization, "flop_utilization", "FLOP use", |e, _| Some(e.total.flop_utilization))
        .of(Utilization, Higher, Percent, When::Always, ErrorSource::Unknown)
        .help("share of peak FLOP/s spent on useful work"),
    entry(HbmBwUtil, "hbm_bw_util", "HBM use", |e, _| Some(e.total.hbm_bw_util))
        .of(Utilization, Neutral, Percent, When::Always, ErrorSource::Unknown)
        .help("share of peak memory bandwidth in use"),
    entry(CommComputeRatio, "comm_compute_ratio", "comm share", |e, _| Some(e.total.comm_compute_ratio))
        .of(Utilization, Lower, Percent, When::Always, ErrorSource::Unknown)
        .help("share of time spent on communication"),
    entry(KvUsed, "kv_used", "KV blocks used", |e, _| served(e, |s| s.kv))
        .of(Utilization, Neutral, Percent, When::SimulatedServing, ErrorSource::Unknown)
        .help("mean share of KV cache blocks in use"),
    entry(PreemptionsPerRequest, "preemptions_per_request", "preemptions", |e, _| served(e, |s| s.preemptions))
        .of(Utilization, Lower, Si, When::SimulatedServing, ErrorSource::Unknown)
        .unit("/req")
        .help("preemptions per request, for lack of KV cache memory, followed by recomputation"),
    entry(PeakMemGb, "peak_mem_gb", "memory", |e, _| Some(e.total.peak_mem_gb))
        .of(Utilization, Neutral, Si, When::Always, ErrorSource::Unknown)
        .unit("GB")
        .help("peak memory per accelerator; the semi-empirical engine clips it to the capacity"),
    entry(MemoryFill, "memory_fill", "memory fill", |e, _| memory_fill(e))
        .of(Utilization, Neutral, Percent, When::Analytical, ErrorSource::Unknown)
        .help("upper bound of memory relative to usable device memory; above 100 %, it does not fit"),
    // Metrics for searches only; entries from here on are not shown in panes or tables.
    entry(Accelerators, "accelerators", "accelerators", |_, s| Some(accelerators(s)))
        .of(Cost, Lower, Format::Count, When::Always, ErrorSource::Unknown)
        .help("accelerators used by the layout"),
    entry(Headroom, "headroom", "headroom", |e, s| Some(headroom(e, s)))
        .of(Utilization, Higher, Percent, When::Always, ErrorSource::Unknown)
        .help("share of memory left free on the fullest device, by the upper bound that decides whether it fits"),
];

#[cfg(test)]
mod tests {
    use super::SEARCH_METRICS;

    #[test]
    fn every_metric_id_resolves_to_its_table_entry() {
        for metric in SEARCH_METRICS {
            assert_eq!(metric.id.metric().name, metric.name);
        }
    }

    #[test]
    fn every_metric_has_a_unique_name_a_label_and_help() {
        for (at, metric) in SEARCH_METRICS.iter().enumerate() {
            assert!(!metric.name.is_empty() && !metric.label.is_empty() && !metric.help.is_empty(), "{}", metric.name);
            assert!(SEARCH_METRICS.iter().skip(at + 1).all(|other| other.name != metric.name), "{}", metric.name);
        }
    }
}
