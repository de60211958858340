//! What a workload says of how it is run: batch, sharding, formats, the serving software. All of it is optional; the
//! founding system's files have none of it.

use super::SimulationSpec;
use crate::plan::{Format, PipelineSchedule, Recompute, Server, Sharding};
use crate::spec::decode::{Bounds, Fields};

/// The plan as written; `None` where the file is silent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PlanSpec {
    /// `batch.micro`: sequences of a micro-batch.
    pub micro: Option<f64>,
    /// `batch.global`: sequences of an optimizer step.
    pub global: Option<f64>,
    /// `parallelism.cp`: context-parallel ranks.
    pub cp: Option<f64>,
    /// `parallelism.ep`: expert-parallel ranks.
    pub ep: Option<f64>,
    /// `parallelism.vpp`: model chunks of each pipeline stage.
    pub vpp: Option<f64>,
    /// `parallelism.sp`: sequence parallelism.
    pub sp: Option<bool>,
    /// `parallelism.dp`: absent means that replicas fill the target.
    pub dp: Option<f64>,
    /// `sharding`.
    pub sharding: Option<Sharding>,
    /// `shard`: ranks that states are sharded over (HSDP).
    pub shard: Option<f64>,
    /// `recompute`.
    pub recompute: Option<Recompute>,
    /// `pipeline_schedule`.
    pub schedule: Option<PipelineSchedule>,
    /// `overlap`: communication runs beside computation.
    pub overlap: Option<bool>,
    /// `expert_imbalance`: load of the busiest expert-parallel rank over the mean.
    pub imbalance: Option<f64>,
    /// `precision.weights`: the format in which matrices are multiplied.
    pub format: Option<Format>,
    /// `precision.kv`: the format of the KV cache.
    pub kv: Option<Format>,
    /// Steps are replayed as captured graphs (`runtime_tuning.cuda_graphs`, where the serving software decides else).
    pub graphs: Option<bool>,
    /// `train_tokens`: tokens of the whole training run.
    pub train_tokens: Option<f64>,
    /// `serving`.
    pub serving: ServingSpec,
    /// `simulation`, and what of `serving` and `sequence` only simulations heed.
    pub simulation: SimulationSpec,
}

/// `serving`: load and scheduler, under vLLM's names.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ServingSpec {
    /// The software.
    pub server: Option<Server>,
    /// Requests in flight, of all replicas together.
    pub concurrency: Option<f64>,
    /// Requests per second, of all replicas together; replaces the concurrency.
    pub request_rate: Option<f64>,
    /// Most sequences in one step of a replica.
    pub max_num_seqs: Option<f64>,
    /// Most tokens in one step of a replica.
    pub max_num_batched_tokens: Option<f64>,
    /// Share of device memory that the engine may use.
    pub gpu_memory_utilization: Option<f64>,
    /// Prompt chunks share steps with decoding.
    pub chunked_prefill: Option<bool>,
    /// Share of prompt tokens found in the prefix cache.
    pub prefix_hit: Option<f64>,
    /// Tokens drafted per step.
    pub draft_tokens: Option<f64>,
    /// Probability that a drafted token is accepted.
    pub draft_acceptance: Option<f64>,
    /// Accelerators that do nothing but prefill; absent or 0: both phases on all.
    pub prefill_accelerators: Option<f64>,
}

const RANKS: Bounds = Bounds { max: 1e6, ..Bounds::COUNT };

impl PlanSpec {
    /// Reads what stands at the top of a workload's entry. What stands in `parallelism` and `precision` is read where
    /// those are: [`PlanSpec::parallelism`], [`PlanSpec::precision`].
    pub(super) fn read(fields: &mut Fields<'_>) -> PlanSpec {
        let mut plan = PlanSpec::default();
        fields.map("batch", |batch| {
            plan.micro = batch.number("micro", Bounds { max: 1e6, ..Bounds::COUNT });
            plan.global = batch.number("global", Bounds::COUNT);
        });
        plan.sharding = word(fields, "sharding", Sharding::named, Sharding::NAMES);
        plan.shard = fields.number("shard", RANKS);
        plan.recompute = word(fields, "recompute", Recompute::named, Recompute::NAMES);
        plan.schedule = word(fields, "pipeline_schedule", PipelineSchedule::named, PipelineSchedule::NAMES);
        plan.overlap = fields.boolean("overlap");
        plan.imbalance = fields.number("expert_imbalance", Bounds { min: 1.0, max: 1e3, whole: false });
        plan.train_tokens = fields.number("train_tokens", Bounds { min: 1.0, max: 1e18, whole: false });
        let simulation = &mut plan.simulation;
        let serving = fields.map("serving", |serving| {
            simulation.serving(serving);
            ServingSpec::read(serving)
        });
        plan.serving = serving.unwrap_or_default();
        fields.map("simulation", |section| plan.simulation.section(section));
        plan
    }

    /// Reads the optional ranks of `parallelism`.
    pub(super) fn parallelism(&mut self, p: &mut Fields<'_>) {
        self.cp = p.number("cp", RANKS);
        self.ep = p.number("ep", RANKS);
        self.vpp = p.number("vpp", RANKS);
        self.sp = p.boolean("sp");
    }

    /// Reads the formats of `precision`. A format that this program does not know is kept as text elsewhere, and the
    /// founding model does not care.
    pub(super) fn precision(&mut self, p: &mut Fields<'_>) {
        let mut format = |key| {
            let written = p.text(key)?;
            let known = Format::named(&written);
            if known.is_none() {
                let message =
                    format!("found \"{written}\", which only records keep; known are {}", Format::NAMES.join(", "));
                p.warn(key, message, None);
            }
            known
        };
        (self.format, self.kv) = (format("weights"), format("kv"));
    }
}

impl ServingSpec {
    fn read(fields: &mut Fields<'_>) -> ServingSpec {
        let draft = |s: &mut Fields<'_>| (s.number("tokens", Bounds::NATURAL), s.number("acceptance", Bounds::SHARE));
        let (draft_tokens, draft_acceptance) = fields.map("speculative", draft).unwrap_or_default();
        ServingSpec {
            server: word(fields, "engine", Server::named, Server::NAMES),
            concurrency: fields.number("concurrency", Bounds::COUNT),
            request_rate: fields.number("request_rate", Bounds::POSITIVE),
            max_num_seqs: fields.number("max_num_seqs", Bounds::COUNT),
            max_num_batched_tokens: fields.number("max_num_batched_tokens", Bounds::COUNT),
            gpu_memory_utilization: fields.number("gpu_memory_utilization", Bounds { min: 0.05, ..Bounds::SHARE }),
            chunked_prefill: fields.boolean("chunked_prefill"),
            prefix_hit: fields.number("prefix_cache_hit", Bounds::SHARE),
            draft_tokens,
            draft_acceptance,
            prefill_accelerators: fields.number("prefill_accelerators", Bounds::NATURAL),
        }
    }
}

/// One of a few words or their synonyms.
pub(super) fn word<T>(
    fields: &mut Fields<'_>,
    key: &'static str,
    named: fn(&str) -> Option<T>,
    names: &'static [&'static str],
) -> Option<T> {
    let node = fields.node(key)?;
    let found = node.text().and_then(named);
    if found.is_none() {
        let near = node.text().and_then(|text| crate::spec::decode::nearest(text, names.iter().copied()));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        fields.error(key, format!("found {}, expected one of {}", node.describe(), names.join(", ")), help);
    }
    found
}
