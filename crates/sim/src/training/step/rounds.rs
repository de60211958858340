//! Beginning and end of steps: for all stages together, after a common optimizer step, or per stage, if the schedule
//! lets each stage continue after its own optimizer step (arXiv 2401.10241, section 4).
#![expect(clippy::indexing_slicing, reason = "stages, replicas and chunks are numbered by the job from checked counts")]

use super::{Bucket, Event, Item, Job, NONE, WaitCause, recorded};
use crate::kernel::{EventQueue, Time};
use crate::training::input::{StreamKind, Task, TaskKind};
use std::ops::Range;

/// Progress of a stage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    /// Number of steps that it has finished.
    pub(super) step: u32,
    /// Number of processes with passes left, plus one if its group has collectives left, before the optimizer can run.
    left: u32,
    /// When its last optimizer step ended, and the task of that step.
    pub(super) ended: Time,
    optimizer: u32,
    /// Whether it waits for the data of the next step.
    waits: bool,
}

impl Job<'_> {
    /// Whether every stage continues after its own optimizer step.
    fn steps_are_independent(&self) -> bool {
        self.input.system.schedule.has_independent_optimizers() && self.stages > 1
    }

    /// Range of stages that begin and end a step together with `stage`.
    fn synchronized_stages(&self, stage: u32) -> Range<u32> {
        if self.steps_are_independent() { stage..stage + 1 } else { 0..self.stages }
    }

    /// Begins the first step.
    pub(super) fn begin_first(&mut self, queue: &mut EventQueue<Event>) {
        let each = self.synchronized_stages(0).len();
        for stage in (0..self.stages).step_by(each.max(1)) {
            self.begin_step(self.synchronized_stages(stage), queue);
        }
    }

    /// Begins the next step of some stages, if its data are loaded.
    fn begin_step(&mut self, stages: Range<u32>, queue: &mut EventQueue<Event>) {
        let step = self.rounds[stages.start as usize].step;
        if step >= self.input.steps {
            return;
        }
        if step >= self.loaded {
            self.rounds[stages.start as usize].waits = true;
            return;
        }
        if step >= self.requested && self.input.loading > 0.0 {
            // The loader prepares the data of the next step in the meantime.
            self.requested = step + 1;
            queue.after(Time::from_seconds(self.input.loading), Event::Loaded);
        }
        let gathers = self.max_cost(|costs| costs.gather) > 0.0;
        for stage in stages.clone() {
            self.clear(stage, gathers, queue.now());
        }
        for stage in stages.clone().filter(|_| gathers) {
            let waiting = &mut self.groups[stage as usize].waiting;
            if self.input.system.software.overlap_parameters {
                let pieces = |chunk| [Item::Gather(chunk), Item::Rest(chunk)];
                waiting.extend((0..self.chunks).flat_map(pieces).map(|item| (item, NONE)));
            } else {
                waiting.push_back((Item::Gather(0), NONE));
            }
            self.begin_data(stage, false, queue);
        }
        for replica in 0..self.replicas {
            for stage in stages.clone() {
                self.begin_pass(replica * self.stages + stage, WaitCause::Pipeline, queue);
            }
        }
    }

    /// Resets a stage for a new step.
    fn clear(&mut self, stage: u32, gathers: bool, now: Time) {
        let round = &mut self.rounds[stage as usize];
        let loading = now.since(round.ended).seconds();
        round.left = self.replicas + u32::from(self.buckets > 0);
        round.waits = false;
        let slots = (self.micros * self.chunks) as usize;
        let owed = self.micros_of_chunk();
        for process in self.processes.iter_mut().skip(stage as usize).step_by(self.stages as usize) {
            process.place = 0;
            process.current = None;
            (process.free_at, process.drained_at) = (now, now);
            process.load.loading += loading;
            process.streams.clear();
            process.left = false;
            (process.current_task, process.last_task, process.transfer_task) = (NONE, NONE, NONE);
            process.owed.clear();
            process.owed.resize(self.chunks as usize, owed);
            // Inputs that have already arrived, from a stage that is a step ahead, are kept.
            process.inputs.resize(slots);
            process.gradients.resize(slots);
        }
        let group = &mut self.groups[stage as usize];
        group.buckets.clear();
        group.buckets.resize(self.buckets as usize, Bucket::default());
        group.left = self.buckets;
        group.free_at = now;
        group.last_task = NONE;
        group.gathered.clear();
        group.gathered.resize(self.chunks as usize, if gathers { None } else { Some(NONE) });
        group.gathered_by.clear();
        group.gathered_by.resize(self.chunks as usize, now);
    }

    /// Counts one process, or the group, as finished. Starts the optimizer when none is left.
    pub(super) fn count_finished(&mut self, stage: u32, task: u32, queue: &mut EventQueue<Event>) {
        self.rounds[stage as usize].left -= 1;
        let together = self.synchronized_stages(stage);
        if together.clone().any(|stage| self.rounds[stage as usize].left > 0) {
            return;
        }
        let optimizer = Time::from_seconds(self.max_cost(|costs| costs.optimizer));
        let shared_embedding = Time::from_seconds(self.max_cost(|costs| costs.shared_embedding));
        let now = queue.now();
        let begin = now.plus(shared_embedding);
        let end = begin.plus(optimizer);
        for stage in together.clone() {
            let group = self.groups[stage as usize].free_at;
            for process in self.processes.iter_mut().skip(stage as usize).step_by(self.stages as usize) {
                // After its last pass a stage waits for its group, then for the other stages.
                let own = group.max(process.drained_at).max(process.free_at);
                process.load.exposed_data += own.since(process.free_at).seconds() + shared_embedding.seconds();
                process.load.bubble += now.since(own).seconds();
                process.load.optimizer += optimizer.seconds();
            }
        }
        let stage = together.end - 1;
        self.rounds[stage as usize].optimizer = self.record(Task {
            kind: TaskKind::Optimizer,
            stream: StreamKind::Compute,
            replica: 0,
            stage,
            micro: 0,
            chunk: 0,
            begin: begin.seconds(),
            end: end.seconds(),
            after: recorded(task),
        });
        queue.after(end.since(now), Event::OptimizerEnd(stage));
    }

    /// Handles the end of the optimizer of a stage, or of all stages up to it.
    pub(super) fn end_optimizer(&mut self, stage: u32, queue: &mut EventQueue<Event>) {
        let together = self.synchronized_stages(stage);
        let now = queue.now();
        for stage in together.clone() {
            let round = &mut self.rounds[stage as usize];
            round.step += 1;
            round.ended = now;
        }
        if self.rounds.iter().all(|round| round.step > self.step) {
            self.end_step(self.rounds[stage as usize].optimizer, now);
        }
        self.begin_step(together, queue);
    }

    /// Completes a step that all stages have finished. `optimizer`: the task that ended last.
    fn end_step(&mut self, optimizer: u32, now: Time) {
        self.out.steps.push(now.since(self.step_begin).seconds());
        let before = self.out.critical_path.len();
        let mut next = recorded(optimizer);
        while let Some(number) = next {
            self.out.critical_path.push(number);
            next = self.out.tasks.get(number as usize).and_then(|task| task.after);
        }
        if let Some(path) = self.out.critical_path.get_mut(before..) {
            path.reverse();
        }
        self.step += 1;
        self.step_begin = now;
    }

    /// Handles the arrival of the data of one more step.
    pub(super) fn data_loaded(&mut self, queue: &mut EventQueue<Event>) {
        self.loaded += 1;
        for stage in 0..self.stages {
            if self.rounds[stage as usize].waits {
                self.begin_step(self.synchronized_stages(stage), queue);
            }
        }
    }
}
