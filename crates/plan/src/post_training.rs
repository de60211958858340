//! Estimates of post-training steps that consist of more than an optimizer step (reinforcement learning and preference
//! optimization), composed of a training scenario and a serving scenario of the same model on the same target.
//!
//! * rollout: estimated by the serving engine, with all requests queued at the start; the samples of a prompt share its
//!   prefix
//! * scoring: a prefill pass by the serving engine for each frozen model (reference, reward), and the time to load those
//!   that do not fit beside training from host memory
//! * training: as many optimizer steps as the sequences fill
//! * sync: all-gather of the weights on the trainers, plus a transfer over the network if rollouts have dedicated nodes
//!
//! * state moves: if training and rollout share all nodes, they alternate. The rollout discards its KV cache and its
//!   weights, which the sync writes anew (verl 0.9.1: `free_cache_engine`, level 2 of vLLM's sleep mode). Optimizer
//!   states and gradients of training are copied to host memory and back if they do not fit beside the rollout
//!   (OpenRLHF 0.11.2, `offload_deepspeed_states` and `reload_deepspeed_states`; `optimizer_offload` of verl); the
//!   16-bit weights stay.

mod host_copies;

use self::host_copies::{loading, moves};
use crate::engine::answer::throttle;
use crate::engine::estimate;
use crate::estimate::{Estimate, MemoryPart, MetricId};
use crate::knob::{Knob, KnobError, Overrides, Setting};
use crate::scenario::{Parts, Scenario, ScenarioError};
use atlas_config::workload::Shape;
use atlas_config::{Mode, Workload};
use atlas_core::count::Count;
use atlas_core::field;
use atlas_core::plan::LoadKind;
use atlas_core::plan_spec::PlanSpec;
use atlas_perf::collective::{Fabric, Group, all_gather, point_to_point};
use std::sync::Arc;

/// Composition of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepOptions {
    /// Prompts per step; pairs of responses in preference optimization.
    pub prompts: Count,
    /// Responses sampled per prompt. `None`: the responses are given by the data set, two per prompt.
    pub samples: Option<Count>,
    /// Frozen models of the same size that process every response: a reference model, a reward model.
    pub scorers: Count,
    /// Nodes dedicated to rollouts. `None`: all nodes alternate between rollout and training.
    pub rollout_nodes: Option<Count>,
    /// Whether rollouts of the next step run concurrently with the training of this step (one step off-policy).
    pub asynchronous: bool,
}

/// Times and cost of a step. All times are in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Number of responses.
    pub sequences: f64,
    /// Number of optimizer steps.
    pub updates: f64,
    /// Time to generate the responses.
    pub rollout: f64,
    /// Part of `rollout` in which accelerators idle while the longest responses finish.
    pub tail: f64,
    /// Time of the frozen models to process the responses, and to load those that do not fit beside training.
    pub scoring: f64,
    /// Time of the optimizer steps.
    pub training: f64,
    /// Time to transfer the new weights to the rollout replicas.
    pub sync: f64,
    /// Time to copy states of training to host memory and back, if they do not fit beside the rollout.
    pub moves: f64,
    /// Time of the whole step; less than the sum of the parts if rollouts run concurrently with training.
    pub seconds: f64,
    /// Share of the total accelerator time in which accelerators are not part of a layout, or wait for the other pool, for
    /// the longest responses, for weights or for states.
    pub idle: f64,
    /// Cost of the step, USD; `None` without a price.
    pub usd: Option<f64>,
    /// Nodes for training and nodes for rollouts; both are all nodes if they alternate.
    pub nodes: [Count; 2],
    /// Tokens of prompts and answers in the training data of the step.
    pub tokens: f64,
    /// Notes on idle accelerators, partial updates and settings without effect.
    pub notes: Vec<String>,
}

impl Step {
    /// Parts of the step with their names, in order.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, f64); 5] {
        [
            ("rollout", self.rollout),
            ("scoring", self.scoring),
            ("training", self.training),
            ("weight sync", self.sync),
            ("state moves", self.moves),
        ]
    }
}

/// Reason why a step cannot be estimated.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A scenario cannot be resolved.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A knob cannot be set.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// A workload has the wrong mode.
    #[error("{workload}: found {found}, expected {expected}")]
    Mode {
        /// Name of the workload.
        workload: String,
        /// Mode of the workload.
        found: &'static str,
        /// Required mode.
        expected: &'static str,
    },
    /// The two workloads have different models.
    #[error("{0} and {1} are of different models: the rollout needs the model that is trained")]
    Models(String, String),
    /// No nodes are left for one of the pools.
    #[error("found {rollout} rollout nodes of {all}, expected from 1 to {}: training needs nodes, too", .all.get().saturating_sub(1))]
    Nodes {
        /// Nodes requested for rollouts.
        rollout: Count,
        /// Nodes of the target.
        all: Count,
    },
    /// Contradictory options.
    #[error("{0}")]
    Setting(&'static str),
    /// One of the two scenarios cannot run.
    #[error("{workload} on {nodes} nodes: {why}")]
    CannotRun {
        /// Name of the workload.
        workload: String,
        /// Nodes of the scenario.
        nodes: Count,
        /// Reason, as text.
        why: String,
    },
}

/// Resolves one of the two scenarios, on `nodes` nodes if given.
fn resolved(parts: &Parts, overrides: &Overrides, nodes: Option<Count>, expected: Mode) -> Result<Scenario, StepError> {
    let mut scenario = Scenario::resolve(parts, overrides)?;
    if scenario.mode() != expected {
        return Err(wrong_mode(&scenario, parts, expected));
    }
    if let Some(nodes) = nodes {
        scenario.set(Knob::NumNodes, &Setting::Number(nodes.into()), parts)?;
    }
    scenario.phases.clear();
    Ok(scenario)
}

/// Estimates a scenario, or returns an error if it cannot run.
fn answered(scenario: &Scenario, parts: &Parts) -> Result<Estimate, StepError> {
    let answer = estimate(scenario);
    let verdict = answer.detail.as_ref().map(|detail| detail.verdict);
    match verdict {
        Some(verdict) if verdict.fits() => Ok(answer),
        other => Err(StepError::CannotRun {
            workload: parts.workload.name.to_string(),
            nodes: scenario.num_nodes,
            why: other.map_or_else(
                || format!("the {} engine does not model layouts", scenario.engine.name()),
                |v| v.describe(),
            ),
        }),
    }
}

/// Estimate of one optimizer step, and its duration, s.
fn update(scenario: &Scenario, parts: &Parts) -> Result<(Estimate, f64), StepError> {
    let answer = answered(scenario, parts)?;
    let ms = answer.total.step_time_ms.ok_or_else(|| wrong_mode(scenario, parts, Mode::Training))?;
    Ok((answer, ms * 1e-3))
}

fn wrong_mode(scenario: &Scenario, parts: &Parts, expected: Mode) -> StepError {
    let (workload, found) = (parts.workload.name.to_string(), scenario.mode().name());
    StepError::Mode { workload, found, expected: expected.name() }
}

/// Requests per second of a deployment under a load of kind `load`, and its estimate.
fn rate_at_load(
    base: &Scenario,
    parts: &Parts,
    load: LoadKind,
    knobs: &[(Knob, f64)],
) -> Result<(f64, Estimate), StepError> {
    let mut scenario = base.clone();
    scenario.set(Knob::Load, &Setting::Choice(load.name().into()), parts)?;
    for (knob, value) in knobs {
        scenario.set(*knob, &Setting::Number(*value), parts)?;
    }
    let answer = answered(&scenario, parts)?;
    let rate = answer.detail.as_ref().and_then(|detail| detail.serving).map_or(0.0, |serving| serving.requests_per_sec);
    Ok((rate.max(1e-12), answer))
}

/// Seconds to transfer the weights from the trainers to the rollout replicas. `rolled` is the estimate of `rollout`;
/// `apart`: they are on different nodes.
fn sync(train: &Scenario, rollout: &Scenario, rolled: &Estimate, apart: bool) -> f64 {
    let (Some(input), Some(served)) = (train.training_input(&train.base), rollout.serving_input(&rollout.base)) else {
        return 0.0;
    };
    let constants = throttle::training(train, &input);
    let fabric = Fabric::new(&input.accelerator, &constants, input.oversubscription);
    // The weights of a device, in the formats and the layout of the rollout.
    let shard = rolled.detail.map_or(0.0, |detail| detail.memory.parts.part(MemoryPart::Weights));
    let ranks = served.layout.replica().max(1.0);
    let gathered = all_gather(&fabric, Group::strided(input.accelerators / ranks, ranks, input.domain), shard);
    // Replicas forward weights as they arrive, so the time over the network is that of one transfer.
    gathered + if apart { point_to_point(&fabric, shard, false) } else { 0.0 }
}

/// Share of the accelerators that the layout of a scenario uses; a note if it does not use all.
fn share_at_work(part: &str, scenario: &Scenario, notes: &mut Vec<String>) -> f64 {
    let (used, all) = (scenario.working_accelerators(), scenario.accelerators());
    if used < all {
        notes.push(format!("{part} uses {used} of {all} accelerators; the rest are idle but paid for"));
    }
    (used / all.max(1.0)).min(1.0)
}

/// Notes on stated knobs that a step replaces: all responses are queued at the start, and have the lengths of the rollout.
fn replaced(train: &Overrides, rollout: &Overrides, options: &StepOptions) -> Vec<String> {
    let mut notes = Vec::new();
    let (lengths, why) = match options.samples {
        Some(_) => (train, "in training: sequences have the lengths of the rollout"),
        None => (rollout, "in scoring: sequences have the length of training"),
    };
    for knob in [Knob::Prompt, Knob::Generate].into_iter().filter(|knob| lengths.contains_key(knob)) {
        notes.push(format!("{} has no effect {why}", knob.name()));
    }
    let load = [Knob::Load, Knob::Concurrency, Knob::RequestRate, Knob::RunRequests];
    for knob in load.into_iter().filter(|knob| rollout.contains_key(knob)) {
        let why = match options.samples {
            Some(_) => {
                "all responses of a step are queued at the start; max_num_seqs limits how many are generated at a time"
            }
            None => "there is no rollout",
        };
        notes.push(format!("{} has no effect in the rollout: {why}", knob.name()));
    }
    notes
}

/// Knobs of the rollout, with those of the target taken from training.
fn with_target_of(rollout: &Overrides, train: &Overrides) -> Overrides {
    let of_target = |knob: &Knob| knob.spec().group == field::Group::Target;
    let mut knobs = rollout.clone();
    knobs.retain(|knob, _| !of_target(knob));
    knobs.extend(train.iter().filter(|(knob, _)| of_target(knob)).map(|(knob, to)| (*knob, to.clone())));
    knobs
}

/// Numbers of nodes for training and rollout. Without dedicated rollout nodes, both use all nodes.
fn node_split(all: Count, options: &StepOptions) -> Result<(Count, Count), StepError> {
    match options.rollout_nodes {
        None => Ok((all, all)),
        Some(nodes) if nodes < 1.0 || nodes >= all => Err(StepError::Nodes { rollout: nodes, all }),
        Some(nodes) => Ok((Count::floor(all - nodes), nodes)),
    }
}

/// Generation of all responses of a step.
struct Rollout {
    estimate: Estimate,
    /// Duration, s.
    seconds: f64,
    /// Part of the duration that is due to responses of different lengths, s.
    tail: f64,
}

impl Rollout {
    fn of(serve: &Scenario, parts: &Parts, sequences: f64) -> Result<Rollout, StepError> {
        let requests = [(Knob::RunRequests, sequences)];
        let (rate, estimate) = rate_at_load(serve, parts, LoadKind::Burst, &requests)?;
        // For comparison: the same number of responses, all of mean length.
        let mut even = serve.clone();
        (even.base.plan.serving.generate_spread, even.base.plan.serving.generate_max) = (None, None);
        let (even_rate, _) = rate_at_load(&even, parts, LoadKind::Burst, &requests)?;
        let seconds = sequences / rate;
        Ok(Rollout { estimate, seconds, tail: (seconds - sequences / even_rate).max(0.0) })
    }
}

/// The optimizer steps ("updates") of a post-training step.
struct Training {
    scenario: Scenario,
    /// Estimate of one update.
    estimate: Estimate,
    /// Number of updates.
    updates: f64,
    /// Duration of all updates, s.
    seconds: f64,
}

impl Training {
    /// Trains on `sequences` sequences of `length` tokens.
    fn of(
        mut scenario: Scenario,
        parts: &Parts,
        (sequences, length): (f64, f64),
        notes: &mut Vec<String>,
    ) -> Result<Training, StepError> {
        let global = scenario.global(&scenario.base).min(sequences);
        for (knob, value) in [(Knob::Prompt, length), (Knob::Generate, 0.0), (Knob::Global, global)] {
            scenario.set(knob, &Setting::Number(value), parts)?;
        }
        let (estimate, update_s) = update(&scenario, parts)?;
        let whole_updates = (sequences / global).floor();
        let rest = sequences - whole_updates * global;
        let (mut updates, mut seconds) = (whole_updates, whole_updates * update_s);
        if rest > 0.0 {
            // Every replica takes whole micro-batches, which are padded.
            let unit = scenario.base.shape.dp * scenario.microbatch;
            let mut last = scenario.clone();
            last.set(Knob::Global, &Setting::Number(((rest / unit).ceil() * unit).min(global)), parts)?;
            updates += 1.0;
            seconds += update(&last, parts)?.1;
            notes.push(format!(
                "{sequences} responses are not a multiple of the global batch of {global}: the last of {updates} updates \
                 has {rest}"
            ));
        }
        Ok(Training { scenario, estimate, updates, seconds })
    }
}

/// Responses per second that a frozen model scores: it reads responses of `length` tokens with the layout of the
/// rollout. Also returns the share of the accelerators in use, and the weights per device, bytes.
fn scoring_rate(
    mut reader: Scenario,
    parts: &Parts,
    length: f64,
    notes: &mut Vec<String>,
) -> Result<(f64, f64, f64), StepError> {
    reader.set(Knob::Prompt, &Setting::Number(length), parts)?;
    reader.set(Knob::Generate, &Setting::Number(1.0), parts)?;
    let share = share_at_work("scoring", &reader, notes);
    let concurrency = f64::from(reader.base.shape.dp.max(Count::ONE));
    let (rate, estimate) = rate_at_load(&reader, parts, LoadKind::PrefillOnly, &[(Knob::Concurrency, concurrency)])?;
    let weights = estimate.detail.map_or(0.0, |detail| detail.memory.parts.part(MemoryPart::Weights));
    Ok((rate, share, weights))
}

/// Serving workload of frozen models whose layout nothing states: the model in the format of training, on as few ranks
/// as fit.
fn frozen_parts(train: &Parts) -> Parts {
    let own = &train.workload;
    let (tp, pp, dp) = (Count::ONE, Count::ONE, Count::ONE);
    let workload = Workload {
        software: None,
        shape: Shape { mode: Mode::Inference, tp, pp, dp, generate: 1.0, ..own.shape },
        plan: PlanSpec { format: own.plan.format, ..PlanSpec::default() },
        post_training: None,
        phases: [].into(),
        ..(**own).clone()
    };
    Parts { workload: Arc::new(workload), ..train.clone() }
}

/// USD per second of all nodes of a scenario, if a price is known.
fn usd_per_second(estimate: &Estimate, scenario: &Scenario) -> Option<f64> {
    MetricId::UsdPerHour.metric().applicable_value(estimate, scenario).map(|usd| usd / 3600.0)
}

/// Estimates a post-training step. Both workloads run on the same target, so the knobs of the target are those of
/// training; the rollout's are ignored. Without responses to generate, the serving workload may be missing; frozen
/// models then have the model and the format of training.
///
/// # Errors
///
/// If a scenario cannot be resolved or cannot run, the workloads do not match, or the options are contradictory.
pub fn step(
    train: (&Parts, &Overrides),
    rollout: (Option<&Parts>, &Overrides),
    options: &StepOptions,
) -> Result<Step, StepError> {
    let (train_parts, train_knobs) = train;
    if rollout.0.is_none() && options.samples.is_some() {
        return Err(StepError::Setting("rollouts need a serving workload"));
    }
    let rollout_parts = &rollout.0.map_or_else(|| frozen_parts(train_parts), Parts::clone);
    let rollout_knobs = &with_target_of(rollout.1, train_knobs);
    if train_parts.model_name() != rollout_parts.model_name() {
        return Err(StepError::Models(train_parts.workload.name.to_string(), rollout_parts.workload.name.to_string()));
    }
    if options.asynchronous && options.rollout_nodes.is_none() {
        return Err(StepError::Setting("asynchronous rollouts need nodes of their own: state how many roll out"));
    }
    if options.samples.is_none() && options.rollout_nodes.is_some() {
        return Err(StepError::Setting("without rollouts no nodes can be set apart for them"));
    }
    let all_nodes = Scenario::resolve(train_parts, train_knobs)?.num_nodes;
    let (train_nodes, rollout_nodes) = node_split(all_nodes, options)?;
    let dedicated = options.rollout_nodes.is_some();

    let sequences = options.prompts * options.samples.unwrap_or(Count::new(2));
    let mut serve = resolved(rollout_parts, rollout_knobs, Some(rollout_nodes), Mode::Inference)?;
    let trained = resolved(train_parts, train_knobs, Some(train_nodes), Mode::Training)?;
    // Without a rollout, the responses are those of the training data.
    let lengths = if options.samples.is_some() { &serve } else { &trained };
    let length = lengths.base.shape.prompt + lengths.base.shape.generate;
    if let Some(samples) = options.samples.filter(|_| serve.follows(Knob::PrefixHit)) {
        // All responses to a prompt except the first find the prompt in the prefix cache.
        serve.set(Knob::PrefixHit, &Setting::Number((samples - 1.0) / samples), rollout_parts)?;
    }
    let mut notes = replaced(train_knobs, rollout_knobs, options);
    let rollout_share = if options.samples.is_some() { share_at_work("the rollout", &serve, &mut notes) } else { 1.0 };
    let rollout = options.samples.map(|_| Rollout::of(&serve, rollout_parts, sequences)).transpose()?;
    let (rollout_s, tail) = rollout.as_ref().map_or((0.0, 0.0), |rollout| (rollout.seconds, rollout.tail));

    let format = trained.get(Knob::Precision);
    let training = Training::of(trained, train_parts, (sequences, length), &mut notes)?;

    // The frozen models run on the training nodes, with the layout of the rollout.
    if training.scenario.corrections.is_some() && options.scorers > 0.0 {
        notes.push("the calibration of this target is not applied to scoring".to_owned());
    }
    let (scoring, scoring_share) = if options.scorers > 0.0 {
        let mut reader = resolved(rollout_parts, rollout_knobs, Some(train_nodes), Mode::Inference)?;
        if options.samples.is_none() && !rollout_knobs.contains_key(&Knob::Precision) {
            // The reference is the model before training, in the format of training.
            reader.set(Knob::Precision, &format, rollout_parts)?;
        }
        let (rate, share, weights) = scoring_rate(reader, rollout_parts, length, &mut notes)?;
        let loading = loading(&training, f64::from(options.scorers), weights, &mut notes);
        (options.scorers * sequences / rate + loading, share)
    } else {
        (0.0, 1.0)
    };
    let sync = rollout.as_ref().map_or(0.0, |rollout| sync(&training.scenario, &serve, &rollout.estimate, dedicated));

    let moves = rollout.as_ref().filter(|_| !dedicated).map_or(0.0, |rollout| moves(&training, rollout, &mut notes));

    // Scoring and training alternate on the same nodes.
    let training_share = share_at_work("training", &training.scenario, &mut notes);
    let learning = scoring + training.seconds;
    let working = scoring_share * scoring + training_share * training.seconds;
    let seconds = sync + moves + if options.asynchronous { rollout_s.max(learning) } else { rollout_s + learning };
    let trainer_usd = usd_per_second(&training.estimate, &training.scenario);
    let server_usd = rollout.as_ref().map_or(Some(0.0), |rollout| usd_per_second(&rollout.estimate, &serve));
    let prices = trainer_usd.zip(server_usd);
    let (busy, all, usd) = if dedicated {
        (
            rollout_nodes * rollout_share * (rollout_s - tail) + train_nodes * working,
            all_nodes * seconds,
            prices.map(|(trainer, server)| seconds * (server + trainer)),
        )
    } else {
        let usd = prices.map(|(trainer, server)| rollout_s * server + (learning + sync + moves) * trainer);
        (rollout_share * (rollout_s - tail) + working, seconds, usd)
    };
    Ok(Step {
        sequences,
        updates: training.updates,
        rollout: rollout_s,
        tail,
        scoring,
        training: training.seconds,
        sync,
        moves,
        seconds,
        idle: (1.0 - busy / all.max(1e-12)).clamp(0.0, 1.0),
        usd,
        nodes: [train_nodes, rollout_nodes],
        tokens: sequences * length,
        notes,
    })
}

#[cfg(test)]
mod tests;
