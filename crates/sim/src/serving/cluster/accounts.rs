//! Accounting of a run: levels over time, cumulative sums, the results.

use super::Cluster;
use super::Event;
use crate::kernel::{EventQueue, StopReason, Time};
use crate::serving::output::{FirstToken, Levels, Output, Steady, Window};
use atlas_perf::serving::step::StepTime;

/// Cumulative sums at a point in time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CumulativeSums {
    pub(super) at: Time,
    pub(super) tokens: u64,
    pub(super) left: u64,
    pub(super) arrived: u64,
    pub(super) work: StepTime,
    pub(super) stepping: f64,
    pub(super) paid: f64,
    pub(super) running: f64,
    pub(super) waiting: f64,
    pub(super) present: f64,
}

impl CumulativeSums {
    /// Differences since an earlier mark.
    pub(super) fn since(&self, from: &CumulativeSums) -> Steady {
        let seconds = self.at.since(from.at).seconds();
        let mean = |sum: f64| if seconds > 0.0 { sum / seconds } else { 0.0 };
        Steady {
            seconds,
            tokens: self.tokens.saturating_sub(from.tokens),
            finished: self.left.saturating_sub(from.left),
            arrived: self.arrived.saturating_sub(from.arrived),
            work: self.work.add(&from.work, -1.0),
            stepping: self.stepping - from.stepping,
            replicas: self.paid - from.paid,
            running: mean(self.running - from.running),
            waiting: mean(self.waiting - from.waiting),
            growth: 0.0,
        }
    }

    /// Mean number of requests in the system since an earlier mark.
    fn present_since(&self, from: &CumulativeSums) -> f64 {
        let seconds = self.at.since(from.at).seconds();
        if seconds > 0.0 { (self.present - from.present) / seconds } else { 0.0 }
    }
}

impl Cluster<'_> {
    /// Returns the cumulative sums at `now`.
    pub(super) fn cumulative_sums(&self, now: Time) -> CumulativeSums {
        CumulativeSums {
            at: now,
            tokens: self.tokens,
            left: self.left,
            arrived: self.requests.len() as u64,
            work: self.replicas.iter().fold(StepTime::default(), |sum, r| sum.add(&r.work, 1.0)),
            stepping: self.stepping.integral(now),
            paid: self.paid.integral(now),
            running: self.running.integral(now),
            waiting: self.waiting.integral(now),
            present: self.present.integral(now),
        }
    }

    /// Updates the levels after a change of one replica from `before` to `after`: waiting, running, used blocks,
    /// stepping.
    pub(super) fn update_levels(
        &mut self,
        now: Time,
        before: (usize, usize, u64, bool),
        after: (usize, usize, u64, bool),
    ) {
        let change = |a: usize, b: usize| b as f64 - a as f64;
        self.waiting.change(now, change(before.0, after.0));
        self.running.change(now, change(before.1, after.1));
        self.used.change(now, after.2 as f64 - before.2 as f64);
        self.stepping.change(now, f64::from(u8::from(after.3)) - f64::from(u8::from(before.3)));
        let blocks = self.capacity.level().max(1.0);
        self.strip
            .set(now, [self.waiting.level(), self.running.level(), self.used.level() / blocks, self.paid.level()]);
    }

    /// Returns the results after the run.
    pub(in super::super) fn finish(mut self, queue: &EventQueue<Event>, ended: StopReason) -> Output {
        let now = self.last_token.max(self.last_arrival);
        let (looked_up, found) = self
            .replicas
            .iter()
            .fold((0, 0), |(looked_up, found), r| (looked_up + r.prompt_tokens.0, found + r.prompt_tokens.1));
        debug_assert!(ended != StopReason::Empty || self.used.level() == 0.0, "blocks are left over");
        let steady = self.upto.at > self.from.at;
        let window = Window {
            begin: self.from.at,
            last_arrival: self.last_arrival,
            end: now,
            tokens_to_last_arrival: if steady { self.upto.tokens.saturating_sub(self.from.tokens) } else { 0 },
        };
        self.out.steady = if steady {
            self.upto.since(&self.from)
        } else {
            self.cumulative_sums(now).since(&CumulativeSums::default())
        };
        if steady {
            let [first, second] = self.between;
            let means =
                [first.present_since(&self.from), second.present_since(&first), self.upto.present_since(&second)];
            let [a, b, c] = means;
            // Means over consecutive thirds differ by one third of the total increase.
            self.out.steady.growth = 3.0 * (b - a).min(c - b) / self.out.steady.arrived.max(1) as f64;
        }
        let counted = (self.out.records.len() as f64).max(1.0);
        let FirstToken { slot, queue: ahead, prefill, overhead } = self.first_token;
        let mean = |sum: f64| sum / counted;
        self.out.first_token =
            FirstToken { slot: mean(slot), queue: mean(ahead), prefill: mean(prefill), overhead: mean(overhead) };
        let paid = self.paid.integral(now).max(1e-12);
        self.out.itl = self.gaps.quantiles();
        self.out.waiting = self.waiting.mean(now);
        self.out.max_waiting = self.waiting.max() as u64;
        self.out.running = self.running.mean(now);
        self.out.kv_share = self.used.integral(now) / self.capacity.integral(now).max(1e-12);
        self.out.max_kv_share = self.used.max() / self.capacity.max().max(1.0);
        self.out.busy = self.stepping.integral(now) / paid;
        self.out.replicas = self.paid.mean(now);
        self.out.max_replicas = self.paid.max();
        self.out.replica_hours = paid / 3600.0;
        self.out.prefix_hit = if looked_up > 0 { found as f64 / looked_up as f64 } else { 0.0 };
        self.out.events = queue.handled();
        self.out.canceled = ended == StopReason::Canceled;
        let (cell, cells) = self.strip.cells(now);
        self.out.cell = cell.seconds();
        let levels = |[waiting, running, kv, replicas]: [f64; 4]| Levels { waiting, running, kv_share: kv, replicas };
        self.out.timeline = cells.into_iter().map(levels).collect();
        self.out.summarize(&window, &self.input.slo);
        self.out
    }
}
