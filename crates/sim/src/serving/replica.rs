//! One engine: requests wait, run in batches, are preempted when memory runs out, and finish.
#![expect(
    clippy::indexing_slicing,
    reason = "request ids are minted by the cluster and never outlive its list, groups by the replica that has them"
)]

mod memory;

use super::engine::{Engine, accepted};
use super::kv::KvPool;
use super::request::{Request, used_pieces};
use super::workload::Workload;
use crate::kernel::{Histogram, Time};
use atlas_perf::serving::step::{StepTime, Tokens};
use std::collections::VecDeque;

/// Lifecycle of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    Ready,
    Draining,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepKind {
    All,
    Prompts,
    Decodes,
}

/// One replica: queue, batch and KV cache.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    pub(super) phase: Phase,
    pub(super) kv: KvPool,
    pub(super) waiting: VecDeque<u32>,
    pub(super) running: Vec<u32>,
    /// Requests prefilled elsewhere that wait for memory here.
    pub(super) incoming: VecDeque<u32>,
    pub(super) in_transfer: usize,
    /// Unfinished requests routed here.
    pub(super) outstanding: u32,
    pub(super) stepping: bool,
    pub(super) woken: bool,
    pub(super) step_seconds: f64,
    /// Prompt tokens admitted, and how many of them were in the prefix cache.
    pub(super) prompt_tokens: (u64, u64),
    /// When its front end and its transfer link become free.
    pub(super) front_end_free_at: Time,
    pub(super) link_free_at: Time,
    /// Requests received since its last step.
    pub(super) received: u32,
    /// When the prompts of its last step have left the last stage of the pipeline.
    pipeline_free_at: Time,
    /// Time of its steps by cause.
    pub(super) work: StepTime,
    batch: Vec<u32>,
    began: Time,
    groups: Vec<Group>,
    /// Steps for which prompts have been held back.
    held: u32,
    /// Steps since the scheduler last polled the queue; `seen_upto` is the time of that poll.
    steps_unseen: u32,
    /// Decode steps since requests were last admitted.
    steps_gathered: u32,
    seen_upto: Time,
    preempted: bool,
    /// Whether requests waited in the last step for lack of a slot or memory, and when that step was composed.
    full: bool,
    composed: Time,
    sum: Sum,
}

/// One attention group: an engine rank with its own scheduler.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// Tokens left in the budget of the step being composed.
    budget: u32,
    /// Prompt tokens scheduled in the step being composed.
    prefill: u32,
    /// Number of its running sequences.
    running: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    decode: u32,
    context: u64,
    prefill: u64,
    prefill_keys: f64,
    /// Tokens of the chunk of each prompt token, summed over the tokens.
    prefill_span: f64,
    /// Keys of earlier chunks, summed over the chunks.
    earlier: f64,
    /// Tokens of the largest chunk of a prompt, and number of prompts whose last token is computed.
    chunk: u32,
    prompts: u32,
}

/// The outcome of a step.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) finished: Vec<u32>,
    pub(super) handed_over: Vec<u32>,
    pub(super) tokens: u64,
}

impl Replica {
    pub(super) fn new(engine: &Engine, phase: Phase) -> Self {
        Replica {
            phase,
            kv: KvPool::new(engine.total_blocks, u64::from(engine.piece_tokens / engine.block_size)),
            waiting: VecDeque::new(),
            running: Vec::new(),
            incoming: VecDeque::new(),
            in_transfer: 0,
            outstanding: 0,
            stepping: false,
            woken: false,
            step_seconds: 0.0,
            prompt_tokens: (0, 0),
            front_end_free_at: Time::ZERO,
            link_free_at: Time::ZERO,
            received: 0,
            pipeline_free_at: Time::ZERO,
            work: StepTime::default(),
            batch: Vec::new(),
            began: Time::ZERO,
            groups: vec![Group::default(); engine.groups],
            held: 0,
            steps_unseen: 0,
            steps_gathered: 0,
            seen_upto: Time::ZERO,
            preempted: false,
            full: false,
            composed: Time::ZERO,
            sum: Sum::default(),
        }
    }

    /// Composes the next step. Returns its duration, or `None` if there is nothing to do.
    pub(super) fn begin_step(
        &mut self,
        requests: &mut [Request],
        workload: &Workload<'_>,
        e: &Engine,
        now: Time,
    ) -> Option<Time> {
        let e = &e.for_batch(self.running.len());
        self.batch.clear();
        self.sum = Sum::default();
        for group in &mut self.groups {
            (group.budget, group.prefill) = (e.max_num_batched_tokens, 0);
        }
        self.preempted = false;
        self.steps_unseen += 1;
        if self.steps_unseen >= e.recv_interval || self.running.is_empty() {
            (self.steps_unseen, self.seen_upto) = (0, now);
        }
        if e.chunked_prefill {
            self.advance(requests, workload, e, StepKind::All);
            self.admit(requests, workload, e, now);
        } else {
            // Prompts go first, in separate steps.
            self.advance(requests, workload, e, StepKind::Prompts);
            self.admit(requests, workload, e, now);
            if self.batch.is_empty() {
                self.advance(requests, workload, e, StepKind::Decodes);
            }
        }
        if self.batch.is_empty() {
            self.stepping = false;
            return None;
        }
        let sum = &self.sum;
        let per = |total: f64, n: f64| if n > 0.0 { total / n } else { 0.0 };
        let busiest = self.groups.iter().map(|group| group.prefill).max().unwrap_or(0);
        if sum.prefill > 0 {
            // After a step with prompts the scheduler polls again immediately (`SchedulerRecvSkipper`).
            self.steps_unseen = e.recv_interval;
        }
        let tokens = Tokens {
            decode: f64::from(sum.decode),
            context: per(sum.context as f64, f64::from(sum.decode)),
            prefill: sum.prefill as f64,
            prefill_context: per(sum.prefill_keys, sum.prefill as f64),
            prefill_span: per(sum.prefill_span, sum.prefill as f64),
            earlier: sum.earlier,
            prefix: sum.earlier,
            prompts: f64::from(sum.prompts),
            verified: f64::from(e.verified_tokens),
            prefill_groups: per(sum.prefill as f64, f64::from(busiest)),
            chunk: f64::from(sum.chunk.min(e.chunk)),
        };
        let work = e.seconds(&tokens);
        let step = work.total();
        let ahead = self.pipeline_free_at.since(now).seconds();
        let seconds = step.max(ahead + step / e.stages());
        self.pipeline_free_at = now.plus(Time::from_seconds(seconds + e.pipeline_tail(&tokens, step)));
        self.work = self.work.add(&work, 1.0);
        self.began = now;
        self.stepping = true;
        self.step_seconds = seconds;
        Some(Time::from_seconds(seconds))
    }

    /// Schedules running sequences, oldest first.
    fn advance(&mut self, requests: &mut [Request], workload: &Workload<'_>, e: &Engine, wanted: StepKind) {
        let mut place = 0;
        while place < self.running.len() {
            let id = self.running[place];
            let r = &requests[id as usize];
            let prompt = r.computed < r.target;
            let budget = self.groups[r.group as usize].budget;
            if budget == 0 || (wanted == StepKind::Prompts && !prompt) || (wanted == StepKind::Decodes && prompt) {
                place += 1;
                continue;
            }
            let tokens = if prompt { (r.target - r.computed).min(e.threshold) } else { e.verified_tokens }.min(budget);
            let length = r.computed + tokens;
            if length > r.covered && !self.grow(&mut requests[id as usize], length, e) {
                // Memory is full: the youngest sequence is preempted.
                self.preempted = true;
                if let Some(youngest) = self.running.pop() {
                    self.preempt(&mut requests[youngest as usize], youngest, workload, e);
                }
                continue;
            }
            self.schedule(&mut requests[id as usize], id, tokens, e);
            place += 1;
        }
    }

    /// Admits waiting requests, first come, first served.
    fn admit(&mut self, requests: &mut [Request], workload: &Workload<'_>, e: &Engine, now: Time) {
        let (was_full, composed) = (self.full, self.composed);
        (self.full, self.composed) = (false, now);
        if e.balance_steps > 0 && self.delays_prompts(requests, e) {
            return;
        }
        if self.waits_for_more_requests(e) {
            self.steps_gathered += 1;
            return;
        }
        self.steps_gathered = 0;
        while let Some(&id) = self.waiting.front() {
            let group = self.least_loaded_group();
            let budget = self.groups[group].budget;
            if budget == 0 {
                break;
            }
            if self.preempted || self.running.len() + self.in_transfer >= e.max_num_seqs {
                self.full = true;
                break;
            }
            let r = &mut requests[id as usize];
            // An overlapped scheduler composed this step when the last one began.
            let late = e.overlapped && r.queued > self.step_start() && !self.running.is_empty();
            if late || r.queued > self.seen_upto {
                break;
            }
            self.find_prefix(r, workload, e);
            let rest = if r.computed < r.target { r.target - r.computed } else { e.verified_tokens };
            let tokens = rest.min(e.threshold).min(budget);
            // Prompts beyond the budget of a micro-batch are divided anyway.
            let whole = !e.chunked_prefill && (e.stages() <= 1.0 || rest <= e.chunk);
            let cut = tokens < rest && whole && budget < e.max_num_batched_tokens;
            // A request is admitted only if its whole prompt fits, even with chunked prefill. Otherwise it would be
            // preempted halfway.
            let length = if e.reserve_output { r.demand.isl + r.demand.osl } else { r.target.max(r.computed + tokens) };
            let room = self.kv.total() - self.kv.used() + u64::from(r.shared * (e.piece_tokens / e.block_size));
            let short = room < u64::from(e.blocks(e.kv_tokens(r.demand.isl, length))) + e.watermark;
            if cut || (short && !self.running.is_empty()) || !self.grow(r, length, e) {
                self.kv.release(used_pieces(workload, r));
                (r.shared, r.computed) = (0, 0);
                self.full = !cut;
                break;
            }
            if r.emitted == 0 && r.preemptions == 0 {
                (r.admitted, r.waited) = (now, now.since(r.queued));
                r.passed_over = was_full && r.queued <= composed;
                self.prompt_tokens.0 += u64::from(r.demand.isl);
                self.prompt_tokens.1 += u64::from(r.computed);
            }
            self.waiting.pop_front();
            self.enter(&mut requests[id as usize], id, group);
            self.schedule(&mut requests[id as usize], id, tokens, e);
        }
    }

    /// Whether prompts wait until every attention group has one, so that groups do not wait for each other. This
    /// applies only while all groups decode, and for a limited number of steps.
    fn delays_prompts(&mut self, requests: &[Request], e: &Engine) -> bool {
        let Some(&first) = self.waiting.front() else {
            self.held = 0;
            return false;
        };
        let places = e.max_num_seqs.saturating_sub(self.running.len() + self.in_transfer);
        let rooms = (self.kv.total() - self.kv.used()) / u64::from(e.needed(&requests[first as usize].demand)).max(1);
        let few = self.waiting.len().min(places).min(usize::try_from(rooms).unwrap_or(usize::MAX)) < e.groups;
        let all_decode = self.sum.decode as usize >= e.groups;
        let holds = few && all_decode && self.held < e.balance_steps;
        self.held = if holds { self.held + 1 } else { 0 };
        holds
    }

    /// Whether admission waits until more requests are queued.
    fn waits_for_more_requests(&self, e: &Engine) -> bool {
        e.gathering.is_some_and(|gathering| {
            let few = (self.waiting.len() as f64) < gathering.ratio * self.running.len() as f64;
            few && self.steps_gathered < gathering.steps.get() && !self.running.is_empty()
        })
    }

    /// Attention group with the largest remaining budget; of equals, the one with the fewest sequences.
    fn least_loaded_group(&self) -> usize {
        let mut best = 0;
        for (at, group) in self.groups.iter().enumerate() {
            let kept = &self.groups[best];
            if group.budget > kept.budget || (group.budget == kept.budget && group.running < kept.running) {
                best = at;
            }
        }
        best
    }

    /// Adds a sequence to the batch and to an attention group.
    fn enter(&mut self, r: &mut Request, id: u32, group: usize) {
        r.group = group as u32;
        // The blocks it left behind are its own again, and do not exist on a replica to which it may be transferred.
        r.left = (0, 0);
        self.groups[group].running += 1;
        self.running.push(id);
    }

    /// Start of the step that has just ended.
    fn step_start(&self) -> Time {
        if self.stepping { self.began } else { Time::MAX }
    }

    fn schedule(&mut self, r: &mut Request, id: u32, tokens: u32, e: &Engine) {
        r.scheduled = tokens;
        let group = &mut self.groups[r.group as usize];
        // Every beam of a decoding sequence takes its tokens.
        let beams = if r.computed < r.target { 1 } else { e.beams };
        group.budget = group.budget.saturating_sub(tokens.saturating_mul(beams));
        self.batch.push(id);
        let sum = &mut self.sum;
        if r.computed < r.target {
            group.prefill += tokens;
            sum.prefill += u64::from(tokens);
            sum.chunk = sum.chunk.max(tokens);
            sum.prefill_keys += f64::from(tokens) * (f64::from(r.computed) + 0.5 * f64::from(tokens));
            sum.prefill_span += f64::from(tokens) * f64::from(tokens);
            let (chunks, start) = (f64::from(tokens.div_ceil(e.chunk.max(1))), f64::from(r.computed));
            sum.earlier += chunks * start + 0.5 * (chunks - 1.0) * f64::from(tokens);
            sum.prompts += u32::from(r.computed + tokens == r.target);
        } else {
            sum.decode += 1;
            sum.context += u64::from(r.computed) + 1;
        }
    }

    fn preempt(&mut self, r: &mut Request, id: u32, workload: &Workload<'_>, e: &Engine) {
        self.free(r, workload);
        if e.caches_prefixes {
            r.left = (u64::from(r.computed / e.block_size), self.kv.taken());
        }
        self.groups[r.group as usize].running -= 1;
        r.computed = 0;
        r.target = r.demand.isl + r.emitted;
        r.preemptions += 1;
        self.waiting.push_front(id);
    }

    /// Completes the step in flight.
    pub(super) fn end_step(
        &mut self,
        requests: &mut [Request],
        workload: &Workload<'_>,
        e: &Engine,
        now: Time,
        gaps: &mut Histogram,
        out: &mut Outcome,
    ) {
        let left = (out.finished.len(), out.handed_over.len());
        for place in 0..self.batch.len() {
            let id = self.batch[place];
            let r = &mut requests[id as usize];
            let mut tokens = 1;
            if r.computed < r.target {
                r.computed += r.scheduled;
                if r.computed < r.target {
                    continue;
                }
                if e.cached {
                    self.keep_prefix(r, workload, e);
                }
                if e.prefill_only {
                    r.late = e.chunk_delay(r.scheduled, self.step_seconds);
                    out.handed_over.push(id);
                    continue;
                }
            } else {
                if e.verified_tokens > 1 {
                    tokens = (1 + accepted(e, r, id)).min(r.scheduled).min(r.demand.osl - r.emitted);
                }
                r.computed += tokens;
            }
            let late = if r.emitted == 0 { e.chunk_delay(r.scheduled, self.step_seconds) } else { Time::ZERO };
            r.emit(tokens, now.plus(late), gaps);
            if r.emitted == tokens {
                // The front end returns the token after taking in earlier requests.
                r.handed_out = r.first.max(self.front_end_free_at);
            }
            out.tokens += u64::from(tokens);
            if r.emitted >= r.demand.osl {
                r.returned = now.max(self.front_end_free_at).max(r.handed_out);
                self.free(r, workload);
                out.finished.push(id);
            }
        }
        if left != (out.finished.len(), out.handed_over.len()) {
            let groups = &mut self.groups;
            self.running.retain(|&id| {
                let r = &requests[id as usize];
                let stays = r.emitted < r.demand.osl && !(e.prefill_only && r.computed >= r.target);
                groups[r.group as usize].running -= u32::from(!stays);
                stays
            });
        }
    }

    /// Adds a transferred sequence to the batch with its first token. Returns whether that was also its last.
    pub(super) fn join(
        &mut self,
        r: &mut Request,
        id: u32,
        workload: &Workload<'_>,
        now: Time,
        gaps: &mut Histogram,
    ) -> bool {
        self.in_transfer -= 1;
        r.emit(1, now, gaps);
        // The received sequence is noticed when the step in flight ends.
        let ends = self.began.plus(Time::from_seconds(self.step_seconds));
        r.handed_out = if self.stepping { now.max(ends) } else { now };
        if r.emitted >= r.demand.osl {
            r.returned = r.handed_out;
            self.free(r, workload);
            return true;
        }
        let fewest = self.groups.iter().enumerate().min_by_key(|(_, group)| group.running);
        self.enter(r, id, fewest.map_or(0, |(at, _)| at));
        false
    }
}
