//! Results of a serving simulation.

use super::input::Slo;
use crate::kernel::{Quantiles, Time};
use atlas_perf::serving::step::StepTime;

/// Times of one request, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestRecord {
    /// When it arrived.
    pub arrival: f64,
    /// Time from arrival to its first token.
    pub ttft: f64,
    /// Time per output token after the first, as generated; 0 if there is only one.
    pub tpot: f64,
    /// Time from arrival to its last token.
    pub e2e: f64,
    /// Prompt tokens.
    pub isl: u32,
    /// Output tokens.
    pub osl: u32,
    /// Replica that decoded it.
    pub replica: u32,
    /// Number of preemptions.
    pub preemptions: u32,
    /// Whether its whole output was simulated: the first requests of a staggered load start partway.
    pub complete: bool,
}

impl RequestRecord {
    /// Whether it met every limit of `slo`.
    pub fn meets(&self, slo: &Slo) -> bool {
        let within = |seconds: f64, limit: Option<f64>| limit.is_none_or(|limit| seconds <= limit);
        within(self.ttft, slo.ttft) && within(self.tpot, slo.tpot) && within(self.e2e, slo.e2e)
    }
}

/// Mean levels over one cell of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Levels {
    /// Requests waiting to join a batch.
    pub waiting: f64,
    /// Requests in batches.
    pub running: f64,
    /// Share of KV blocks in use.
    pub kv_share: f64,
    /// Replicas, including those that are starting.
    pub replicas: f64,
}

/// Sums between the first counted arrival and the last arrival, while the system neither fills nor drains; over the
/// whole run if all requests arrive together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Steady {
    /// Length of the period, s.
    pub seconds: f64,
    /// Tokens generated.
    pub tokens: u64,
    /// Requests finished.
    pub finished: u64,
    /// Requests arrived.
    pub arrived: u64,
    /// Time of all replicas' steps by cause, s.
    pub work: StepTime,
    /// Time of all replicas' steps as simulated, s.
    pub stepping: f64,
    /// Replica-seconds.
    pub replicas: f64,
    /// Mean number of requests in batches.
    pub running: f64,
    /// Mean number of requests waiting for a batch.
    pub waiting: f64,
    /// Trend of the number of requests in the system, per arrival: the smaller of its increases between consecutive
    /// thirds of the arrivals, scaled to the whole period. Positive under overload, but not after a burst.
    pub growth: f64,
}

/// Parts of the time to first token: means over the counted requests, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FirstToken {
    /// Waiting for a slot in a batch or for memory.
    pub slot: f64,
    /// Waiting for the step in flight and for earlier prompts.
    pub queue: f64,
    /// From admission to the first token.
    pub prefill: f64,
    /// Front end and batching of responses.
    pub overhead: f64,
}

/// Results of a simulation. Requests of the warm-up are included only in [`Output::timeline`] and the mean levels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// Number of counted requests.
    pub requests: u64,
    /// Number of requests that do not fit any replica.
    pub rejected: u64,
    /// Time to first token, s.
    pub ttft: Quantiles,
    /// Mean parts of the time to first token.
    pub first_token: FirstToken,
    /// Time per output token after the first, of a request, s.
    pub tpot: Quantiles,
    /// Time between two tokens of a request, s. Its quantiles are binned to 1.6 %.
    pub itl: Quantiles,
    /// Time from arrival to last token, s.
    pub e2e: Quantiles,
    /// Seconds from the first counted arrival to the last token.
    pub seconds: f64,
    /// Finished requests per second.
    pub requests_per_sec: f64,
    /// Generated tokens per second.
    pub output_tokens_per_sec: f64,
    /// Prompt and generated tokens per second.
    pub total_tokens_per_sec: f64,
    /// Generated tokens per second between the first counted arrival and the last arrival, while the system neither
    /// fills nor drains. 0 if all requests arrive together.
    pub steady_output_tokens_per_sec: f64,
    /// Sums while the system neither fills nor drains.
    pub steady: Steady,
    /// Requests per second that met all latency limits.
    pub goodput: f64,
    /// Share of the counted requests that met all latency limits.
    pub slo_share: f64,
    /// Mean number of requests waiting for a batch.
    pub waiting: f64,
    /// Largest number of waiting requests.
    pub max_waiting: u64,
    /// Mean number of requests in batches.
    pub running: f64,
    /// Mean share of KV blocks in use.
    pub kv_share: f64,
    /// Largest share of KV blocks in use.
    pub max_kv_share: f64,
    /// Share of replica time spent in steps.
    pub busy: f64,
    /// Mean number of replicas.
    pub replicas: f64,
    /// Largest number of replicas.
    pub max_replicas: f64,
    /// Replica-hours.
    pub replica_hours: f64,
    /// Number of preemptions.
    pub preemptions: u64,
    /// Share of prompt tokens found in the prefix cache.
    pub prefix_hit: f64,
    /// Engine steps.
    pub steps: u64,
    /// Events handled.
    pub events: u64,
    /// Whether the run was canceled before its end.
    pub canceled: bool,
    /// Length of a cell of the timeline, s.
    pub cell: f64,
    /// Levels over time.
    pub timeline: Vec<Levels>,
    /// Every counted request, in order of finishing.
    pub records: Vec<RequestRecord>,
}

/// Period over which results are computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) begin: Time,
    pub(super) last_arrival: Time,
    pub(super) end: Time,
    /// Tokens generated from `begin` to `last_arrival`.
    pub(super) tokens_to_last_arrival: u64,
}

impl Output {
    /// Computes statistics from the records.
    pub(super) fn summarize(&mut self, window: &Window, slo: &Slo) {
        let mut sample = Vec::with_capacity(self.records.len());
        let mut quantiles = |records: &[RequestRecord], tells: fn(&RequestRecord) -> bool, figure: fn(&_) -> f64| {
            sample.clear();
            sample.extend(records.iter().filter(|r| tells(r)).map(figure));
            Quantiles::of(&mut sample)
        };
        self.ttft = quantiles(&self.records, |_| true, |r| r.ttft);
        self.tpot = quantiles(&self.records, |r| r.osl > 1 && r.complete, |r| r.tpot);
        self.e2e = quantiles(&self.records, |r| r.complete, |r| r.e2e);
        self.requests = self.records.len() as u64;
        self.seconds = window.end.since(window.begin).seconds();
        let per_second = |n: f64| if self.seconds > 0.0 { n / self.seconds } else { 0.0 };
        let output: u64 = self.records.iter().map(|r| u64::from(r.osl)).sum();
        let prompts: u64 = self.records.iter().map(|r| u64::from(r.isl)).sum();
        let good = self.records.iter().filter(|r| r.meets(slo)).count() as f64;
        self.requests_per_sec = per_second(self.requests as f64);
        self.output_tokens_per_sec = per_second(output as f64);
        self.total_tokens_per_sec = per_second((output + prompts) as f64);
        self.goodput = per_second(good);
        self.slo_share = if self.requests > 0 { good / self.requests as f64 } else { 0.0 };
        let steady = window.last_arrival.since(window.begin).seconds();
        self.steady_output_tokens_per_sec =
            if steady > 0.0 { window.tokens_to_last_arrival as f64 / steady } else { 0.0 };
    }
}
