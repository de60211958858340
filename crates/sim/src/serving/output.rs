//! What a serving simulation answers: distributions, not means.

use super::input::Slo;
use crate::kernel::{Quantiles, Time};
use atlas_perf::serving::step::StepTime;

/// One request's life, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestRecord {
    /// When it arrived.
    pub arrival: f64,
    /// From there to its first token.
    pub ttft: f64,
    /// Per output token after the first; 0 for a single one.
    pub tpot: f64,
    /// From arrival to its last token.
    pub e2e: f64,
    /// Prompt tokens.
    pub isl: u32,
    /// Output tokens.
    pub osl: u32,
    /// The replica that decoded it.
    pub replica: u32,
    /// How often it was preempted.
    pub preemptions: u32,
    /// Whether it generated the whole of its output, and not what was left of it at the beginning: a staggered load is
    /// found under way.
    pub whole: bool,
}

impl RequestRecord {
    /// Whether it kept every limit.
    pub fn keeps(&self, slo: &Slo) -> bool {
        let within = |seconds: f64, limit: Option<f64>| limit.is_none_or(|limit| seconds <= limit);
        within(self.ttft, slo.ttft) && within(self.tpot, slo.tpot) && within(self.e2e, slo.e2e)
    }
}

/// Mean levels of one cell of time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Levels {
    /// Requests that wait for a replica's batch.
    pub waiting: f64,
    /// Requests in batches.
    pub running: f64,
    /// Share of KV blocks in use.
    pub kv: f64,
    /// Replicas that are paid for.
    pub replicas: f64,
}

/// What happens between the first counted arrival and the last arrival: the system neither filling nor draining. Where
/// all arrive together, in the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Steady {
    /// Its length, s.
    pub seconds: f64,
    /// Tokens generated.
    pub tokens: u64,
    /// Requests finished.
    pub finished: u64,
    /// Requests arrived.
    pub arrived: u64,
    /// Seconds that all replicas stepped, by cause.
    pub work: StepTime,
    /// Seconds that all replicas stepped, as the events have it.
    pub stepping: f64,
    /// Replica-seconds.
    pub replicas: f64,
    /// Mean number in batches.
    pub running: f64,
    /// Mean number waiting for a batch.
    pub waiting: f64,
    /// Requests that stay behind for every one that arrives, as the trend has it: the least rise of the mean number in
    /// the system from one third of the arrivals to the next. An overload grows throughout, a burst passes.
    pub growth: f64,
}

/// What the time to first token is made of: means over the counted requests, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FirstToken {
    /// Waiting for a place in a batch, or for memory.
    pub slot: f64,
    /// Waiting for the step in flight, and for prompts ahead.
    pub queue: f64,
    /// From being let in to the first token.
    pub prefill: f64,
    /// Front end and cadence of responses.
    pub overhead: f64,
}

/// The answer. Requests of the warm-up count nowhere but in [`Output::timeline`] and the mean levels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// Requests that were counted.
    pub requests: u64,
    /// Requests that no replica could ever hold.
    pub rejected: u64,
    /// Time to first token, s.
    pub ttft: Quantiles,
    /// What it is made of.
    pub first_token: FirstToken,
    /// Time per output token after the first, of a request, s.
    pub tpot: Quantiles,
    /// Time between two tokens of a stream, s. Its quantiles are binned to 1.6 %.
    pub itl: Quantiles,
    /// Time from arrival to last token, s.
    pub e2e: Quantiles,
    /// Seconds from the first counted arrival to the last token.
    pub seconds: f64,
    /// Finished requests per second of that.
    pub requests_per_sec: f64,
    /// Generated tokens per second of that.
    pub output_tokens_per_sec: f64,
    /// Prompt and generated tokens per second of that.
    pub total_tokens_per_sec: f64,
    /// Generated tokens per second between the first counted arrival and the last arrival: the system neither filling
    /// nor draining. 0 if all arrive together.
    pub steady_output_tokens_per_sec: f64,
    /// The system neither filling nor draining.
    pub steady: Steady,
    /// Requests per second that kept all limits.
    pub goodput: f64,
    /// Share of the counted requests that kept all limits.
    pub good_share: f64,
    /// Mean number waiting for a batch.
    pub waiting: f64,
    /// Most that waited at once.
    pub most_waiting: u64,
    /// Mean number in batches.
    pub running: f64,
    /// Mean share of KV blocks in use.
    pub kv: f64,
    /// Largest share of KV blocks in use.
    pub most_kv: f64,
    /// Share of time in which the replicas step.
    pub busy: f64,
    /// Replica-hours.
    pub replica_hours: f64,
    /// Preempted sequences, counted each time.
    pub preemptions: u64,
    /// Share of prompt tokens that the prefix cache had.
    pub prefix_hit: f64,
    /// Engine steps.
    pub steps: u64,
    /// Events handled.
    pub events: u64,
    /// Whether the run was cancelled before its end.
    pub cancelled: bool,
    /// Length of a cell of the timeline, s.
    pub cell: f64,
    /// Levels over time.
    pub timeline: Vec<Levels>,
    /// Every counted request, in order of finishing.
    pub records: Vec<RequestRecord>,
}

/// Bounds of what is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) begin: Time,
    pub(super) last_arrival: Time,
    pub(super) end: Time,
    /// Tokens from `begin` to `last_arrival`.
    pub(super) tokens_to_last_arrival: u64,
}

impl Output {
    /// Figures that follow from the records.
    pub(super) fn summarize(&mut self, window: &Window, slo: &Slo) {
        let mut sample = Vec::with_capacity(self.records.len());
        let mut quantiles = |records: &[RequestRecord], tells: fn(&RequestRecord) -> bool, figure: fn(&_) -> f64| {
            sample.clear();
            sample.extend(records.iter().filter(|r| tells(r)).map(figure));
            Quantiles::of(&mut sample)
        };
        self.ttft = quantiles(&self.records, |_| true, |r| r.ttft);
        self.tpot = quantiles(&self.records, |r| r.osl > 1 && r.whole, |r| r.tpot);
        self.e2e = quantiles(&self.records, |r| r.whole, |r| r.e2e);
        self.requests = self.records.len() as u64;
        self.seconds = window.end.since(window.begin).seconds();
        let per_second = |n: f64| if self.seconds > 0.0 { n / self.seconds } else { 0.0 };
        let output: u64 = self.records.iter().map(|r| u64::from(r.osl)).sum();
        let prompts: u64 = self.records.iter().map(|r| u64::from(r.isl)).sum();
        let good = self.records.iter().filter(|r| r.keeps(slo)).count() as f64;
        self.requests_per_sec = per_second(self.requests as f64);
        self.output_tokens_per_sec = per_second(output as f64);
        self.total_tokens_per_sec = per_second((output + prompts) as f64);
        self.goodput = per_second(good);
        self.good_share = if self.requests > 0 { good / self.requests as f64 } else { 0.0 };
        let steady = window.last_arrival.since(window.begin).seconds();
        self.steady_output_tokens_per_sec =
            if steady > 0.0 { window.tokens_to_last_arrival as f64 / steady } else { 0.0 };
    }
}
