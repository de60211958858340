//! State of a request in the system.

use super::workload::{Demand, Workload};
use crate::kernel::{Histogram, Time};

/// State of a request in the system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) demand: Demand,
    pub(super) arrival: Time,
    /// When it joined the queue of its replica.
    pub(super) queued: Time,
    /// When it was first admitted to a batch, how long it had waited for this, and whether for lack of a slot or
    /// memory.
    pub(super) admitted: Time,
    pub(super) waited: Time,
    pub(super) passed_over: bool,
    /// When its first token was generated, when the front end returned it, and when its latest token was generated.
    pub(super) first: Time,
    pub(super) handed_out: Time,
    pub(super) last: Time,
    /// How long after the end of a step of the prefill pool the last chunk of its prompt leaves the pipeline.
    pub(super) late: Time,
    /// When the front end returned the last token.
    pub(super) returned: Time,
    /// Tokens in the KV cache, and tokens that must be in it before the next one is sampled.
    pub(super) computed: u32,
    pub(super) target: u32,
    pub(super) emitted: u32,
    /// Its tokens in the step in flight.
    pub(super) scheduled: u32,
    /// Blocks of its own, pieces of the prefix cache that it uses, and the capacity of both in tokens.
    pub(super) blocks: u32,
    pub(super) shared: u32,
    pub(super) covered: u32,
    /// Blocks and pieces on the replica that prefilled it, until they are transferred.
    pub(super) remote: (u32, u32),
    pub(super) replica: u32,
    /// Its attention group.
    pub(super) group: u32,
    pub(super) preemptions: u32,
    /// Number of full blocks it held when it was last preempted, and `KvPool::taken` at that time.
    pub(super) left: (u64, u64),
}

impl Request {
    pub(super) fn new(demand: Demand, arrival: Time) -> Self {
        Request {
            demand,
            arrival,
            queued: arrival,
            admitted: arrival,
            waited: Time::ZERO,
            passed_over: false,
            first: Time::ZERO,
            handed_out: Time::ZERO,
            last: Time::ZERO,
            late: Time::ZERO,
            returned: Time::ZERO,
            computed: 0,
            target: demand.isl,
            emitted: 0,
            scheduled: 0,
            blocks: 0,
            shared: 0,
            covered: 0,
            remote: (0, 0),
            replica: 0,
            group: 0,
            preemptions: 0,
            left: (0, 0),
        }
    }

    pub(super) fn emit(&mut self, tokens: u32, now: Time, gaps: &mut Histogram) {
        if self.emitted == 0 {
            self.first = now;
        } else {
            let gap = now.since(self.last).seconds() / f64::from(tokens);
            gaps.add(gap, u64::from(tokens));
        }
        self.emitted += tokens;
        self.last = now;
    }
}

/// Names of the pieces that the prompt fills completely.
pub(super) fn whole_pieces<'w>(workload: &'w Workload<'_>, r: &Request) -> &'w [u64] {
    first_names(workload, r, r.demand.isl / workload.piece().max(1))
}

/// Names of the pieces that the request uses.
pub(super) fn used_pieces<'w>(workload: &'w Workload<'_>, r: &Request) -> &'w [u64] {
    first_names(workload, r, r.shared)
}

pub(super) fn first_names<'w>(workload: &'w Workload<'_>, r: &Request, count: u32) -> &'w [u64] {
    let names = workload.names(r.demand.prefix);
    names.get(..count as usize).unwrap_or(names)
}
