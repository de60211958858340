//! Knobs that have no effect in a scenario, and why: a feature that the model lacks, or a setting of another knob.

use super::training_input::next_token;
use super::{Phase, Scenario};
use crate::knob::{FileLocation, Knob};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::field::{DefaultValue, Field, Slot};
use atlas_core::plan::{
    Arrivals, ContextExchange, CpuOffload, DraftMethod, Engine, LoadKind, MoeDispatcher, PipelineSchedule, Sharding,
    SharedExperts, Trained,
};
use atlas_perf::accelerator::Precision;
use atlas_perf::arch::Attention;
use atlas_perf::serving::{Admission, Stack};

/// Reason why a knob has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IneffectiveKnob {
    /// Reason, as text.
    pub why: &'static str,
    /// Knob to set first; `None` if no other knob would make this one effective.
    pub required_knob: Option<Knob>,
}

impl IneffectiveKnob {
    const fn with_reason(why: &'static str) -> IneffectiveKnob {
        IneffectiveKnob { why, required_knob: None }
    }

    const fn requiring(knob: Knob, why: &'static str) -> IneffectiveKnob {
        IneffectiveKnob { why, required_knob: Some(knob) }
    }
}

const NO_EXPERTS: IneffectiveKnob = IneffectiveKnob::with_reason("the model has no experts");
const NO_SHARED_EXPERTS: IneffectiveKnob = IneffectiveKnob::with_reason("the model has no shared experts");
const NO_VISION: IneffectiveKnob = IneffectiveKnob::with_reason("the model has no vision encoder");
const NO_IMAGES: IneffectiveKnob = IneffectiveKnob::requiring(Knob::Images, "no images: set images");
const FROZEN_ENCODER: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Trained, "only the projector is trained: set trained=all");
const ONE_SIZE: IneffectiveKnob = IneffectiveKnob::with_reason("the model scales all images to one size");
const NO_TOKENS: IneffectiveKnob = IneffectiveKnob::with_reason("the model has no tokens");
const NO_ATTENTION: IneffectiveKnob = IneffectiveKnob::with_reason("the model has no attention");
const NOT_RECOMPUTED: IneffectiveKnob = IneffectiveKnob::with_reason("activations of convolutions are not recomputed");
const SINGLE_BATCH: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Load, "the load is a single batch: set load to open or closed");
const BACKLOG: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Load, "all requests of a backlog wait at the start: set load to open or closed");
const TIMED_BATCH: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Load, "a batch whose decode steps are timed runs as a whole: set load to static");
const NO_OUTPUT: IneffectiveKnob = IneffectiveKnob::with_reason("the model generates nothing");
const NOT_COMPILED: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Software, "the software has no compiled runtime");
const NOT_POLLED: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Software, "the software does not poll its request queue between steps");
const SAME_EXPERTS: IneffectiveKnob = IneffectiveKnob::requiring(Knob::Ep, "experts are not distributed: set ep");
const NO_GROUPS: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::AttentionDp, "there are no attention groups: set attention_dp");
const ONE_TENSOR_RANK: IneffectiveKnob = IneffectiveKnob::requiring(Knob::Tp, "no tensor parallelism: set tp");
const ONE_STAGE: IneffectiveKnob = IneffectiveKnob::requiring(Knob::Pp, "no pipeline stages: set pp");
const WHOLE_SEQUENCES: IneffectiveKnob = IneffectiveKnob::requiring(Knob::Cp, "no context parallelism: set cp");
const NO_NEXT_TOKEN: IneffectiveKnob = IneffectiveKnob::with_reason("the model does not predict the next token");
const WIDE_FORMAT: IneffectiveKnob = IneffectiveKnob::requiring(
    Knob::Precision,
    "all layers are computed in 16 bit or wider: set precision to fp8 or fp4",
);
const ONE_REPLICA: IneffectiveKnob = IneffectiveKnob::requiring(Knob::Dp, "there is only one replica: set dp");
const ONE_DEVICE: IneffectiveKnob = IneffectiveKnob::requiring(Knob::Dp, "there is only one accelerator: set dp");
const ONE_DOMAIN: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::NumNodes, "no traffic leaves the scale-up domain: set num_nodes");
const NOT_SHARDED: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Sharding, "model states are not sharded: set sharding");
const NO_ADAPTERS: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Trained, "the model has no adapters: set trained=lora");
const ONE_MEMORY: IneffectiveKnob =
    IneffectiveKnob::with_reason("host and accelerator share one memory, which offloading does not free");
const NOTHING_OFFLOADED: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::CpuOffload, "nothing is offloaded: set cpu_offload");
const TRAINED_WEIGHTS: IneffectiveKnob = IneffectiveKnob::requiring(
    Knob::Trained,
    "weights that are trained cannot be stored in fewer bits than they are multiplied in: set trained=lora",
);
const SAME_KEYS: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Tp, "no two ranks hold the same KV heads: set tp above the number of KV heads");
const NOTHING_DRAFTED: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::DraftTokens, "no speculative decoding: set draft_tokens");
const NO_DRAFT_MODEL: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::DraftMethod, "no separate draft model: set draft_method=draft-model");
const NO_CONVERSATIONS: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Conversations, "no conversations: set conversations");
const NOTHING_REPEATED: IneffectiveKnob = IneffectiveKnob::requiring(
    Knob::Turns,
    "conversations of one turn without a common prefix repeat no tokens: set turns or shared_prefix",
);
const CONVERSATIONS_DECIDE: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Conversations, "conversations determine the cache hit rate");
const ALL_ALIKE: IneffectiveKnob = IneffectiveKnob::requiring(
    Knob::Conversations,
    "the closed form treats all requests alike: set conversations or engine=event",
);
const NO_CAPACITY: &str = "this KV cache tier has no capacity: set its size";
const NO_POOLS: IneffectiveKnob = IneffectiveKnob::requiring(
    Knob::PrefillWorkers,
    "prefill is not disaggregated: set prefill_workers or prefill_accelerators",
);
const POOLS: IneffectiveKnob = IneffectiveKnob::requiring(Knob::PrefillWorkers, "prefill has dedicated accelerators");
const WORKERS_STATED: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::PrefillWorkers, "prefill_workers determines the prefill pool");
const NO_PURCHASE: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::CapexUsdNode, "no purchase price known: set capex_usd_node");
const ENERGY_INCLUDED: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::EnergyIncluded, "the rental price includes energy: set energy_included=off");
const NO_RACK_LIMIT: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::RackKw, "racks have no power limit: set rack_kw");
const NO_SLOW_NODES: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::SlowNodes, "there are no slow nodes: set slow_nodes");
const EVEN_GAPS: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::Arrivals, "only gamma arrivals have this parameter: set arrivals=gamma");
const NO_FAILURES: IneffectiveKnob =
    IneffectiveKnob::requiring(Knob::NodeMtbf, "there are no failures: set node_mtbf_h");

impl Scenario {
    /// Whether changing the knob alone has an effect in this scenario.
    #[must_use]
    pub fn uses(&self, knob: Knob) -> bool {
        knob.spec().affects(self.mode(), self.engine) && self.ineffective(knob).is_none()
    }

    /// Whether the knob has an effect in this scenario, alone or together with another knob.
    #[must_use]
    pub fn offers(&self, knob: Knob) -> bool {
        knob.spec().affects(self.mode(), self.engine)
            && self.ineffective(knob).is_none_or(|idle| idle.required_knob.is_some())
    }

    /// Why a knob that applies to the mode and engine has no effect; `None` if it has one.
    #[must_use]
    pub fn ineffective(&self, knob: Knob) -> Option<IneffectiveKnob> {
        if !self.engine.models_hardware() {
            return None;
        }
        match self.mode() {
            Mode::Training => self.ineffective_in_training(knob),
            Mode::Inference => self.ineffective_in_serving(knob),
        }
        .or_else(|| self.ineffective_in_any_mode(knob))
    }

    /// Message that a knob has no effect in this scenario, and why.
    #[must_use]
    pub fn ineffective_message(&self, knob: Knob) -> String {
        let (name, mode, engine) = (knob.name(), self.mode().name(), self.engine.name());
        match self.ineffective(knob).filter(|_| knob.spec().affects(self.mode(), self.engine)) {
            Some(idle) => format!("{name} has no effect: {}", idle.why),
            None => format!("{name} has no effect in {mode} with the {engine} engine"),
        }
    }

    /// Settings stated by files or knobs that have no effect, grouped by reason.
    #[must_use]
    pub fn ineffective_settings(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let mut all: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
        for knob in Knob::all().filter(|knob| knob.spec().affects(self.mode(), self.engine)) {
            let stated = self.stated.contains(knob) || self.sets_number(knob);
            let Some(idle) = self.ineffective(knob).filter(|_| stated) else { continue };
            match all.iter_mut().find(|(why, _)| *why == idle.why) {
                Some((_, names)) => names.push(knob.name()),
                None => all.push((idle.why, vec![knob.name()])),
            }
        }
        all
    }

    fn ineffective_in_training(&self, knob: Knob) -> Option<IneffectiveKnob> {
        let (Phase { shape, plan, .. }, model) = (&self.base, self.model.as_ref()?);
        let experts = model.is_moe();
        let when = |idle: bool, why: IneffectiveKnob| idle.then_some(why);
        let ranks = shape.tp * shape.pp * shape.dp * plan.cp.unwrap_or(Count::ONE);
        match knob {
            Knob::Ep | Knob::Etp | Knob::MoeCapacity => when(!experts, NO_EXPERTS),
            Knob::ExpertImbalance | Knob::MoeDispatcher | Knob::OverlapExperts => {
                when(!experts, NO_EXPERTS).or(when(self.base.ep() <= 1.0, SAME_EXPERTS))
            }
            Knob::Prompt | Knob::Generate => when(model.convolutions.is_some(), NO_TOKENS),
            Knob::Recompute | Knob::RecomputeLayers | Knob::RecomputeReserve => {
                when(model.convolutions.is_some(), NOT_RECOMPUTED)
            }
            Knob::AttentionKernel => when(model.convolutions.is_some(), NO_ATTENTION),
            Knob::LoraTargets | Knob::LoraRank => when(plan.trained != Some(Trained::Lora), NO_ADAPTERS),
            Knob::CpuOffload => when(self.machine.is_some_and(|machine| machine.host.unified), ONE_MEMORY),
            Knob::HostMemoryGb => when(!self.offloads(&self.base), NOTHING_OFFLOADED),
            Knob::WeightBits => when(plan.trained != Some(Trained::Lora), TRAINED_WEIGHTS),
            Knob::OverlapTensor | Knob::Sp => when(shape.tp <= 1.0, ONE_TENSOR_RANK),
            Knob::Vpp | Knob::FirstLayers | Knob::LastLayers | Knob::OverlapPipeline | Knob::PipelineSchedule => {
                when(shape.pp <= 1.0, ONE_STAGE)
            }
            Knob::CpCommType => when(plan.cp.unwrap_or(Count::ONE) <= 1.0, WHOLE_SEQUENCES),
            Knob::MtpLayers => when(!next_token(model), NO_NEXT_TOKEN),
            Knob::Bf16Layers => when(model.convolutions.is_some(), NO_TOKENS)
                .or(when(!Precision::from(self.format(&self.base)).is_narrow(), WIDE_FORMAT)),
            Knob::Overlap => when(ranks <= 1.0, ONE_DEVICE),
            Knob::OverlapData | Knob::Sharding => when(shape.dp * plan.cp.unwrap_or(Count::ONE) <= 1.0, ONE_REPLICA),
            Knob::Shard => {
                when(shape.dp <= 1.0, ONE_REPLICA).or(when(self.sharding(&self.base) == Sharding::None, NOT_SHARDED))
            }
            _ => None,
        }
    }

    fn ineffective_in_serving(&self, knob: Knob) -> Option<IneffectiveKnob> {
        let (phase, model) = (&self.base, self.model.as_ref()?);
        let (stated, layout, pools) = (&phase.plan.serving, phase.decode_layout(), phase.pools());
        let when = |idle: bool, why: IneffectiveKnob| idle.then_some(why);
        let groups = pools.map_or(layout.attention_dp, |p| p.prefill.attention_dp.max(p.decode.attention_dp));
        let drafted = stated.draft_tokens.is_some_and(|tokens| tokens > 0.0);
        let talk = phase.conversations().is_some();
        let apart = pools.is_some() || stated.pools.prefill.workers.is_some_and(|workers| workers > 0.0);
        if !model.causal && of_generation(knob) {
            return Some(NO_OUTPUT);
        }
        // Without experts there is no dispatch.
        let experts = when(!model.is_moe(), NO_EXPERTS);
        match knob {
            Knob::Ep | Knob::RedundantExperts | Knob::ExpertPrecision => experts,
            Knob::MoeDispatcher | Knob::TwoBatchOverlap => experts.or(when(groups <= 1.0, NO_GROUPS)),
            Knob::SharedExperts => when(model.shared_ffn <= 0.0, NO_SHARED_EXPERTS),
            Knob::PythonExecutor => when(phase.serving_defaults.stack != Stack::Compiled, NOT_COMPILED),
            Knob::RecvInterval => when(phase.serving_defaults.admission != Admission::Polled, NOT_POLLED),
            Knob::ContextRanks => {
                let alike = match model.attention {
                    Attention::Latent { .. } => f64::from(layout.tp),
                    Attention::Grouped => layout.tp / model.kv_heads.max(Count::ONE),
                };
                when(alike <= 1.0, SAME_KEYS)
            }
            Knob::DraftMethod | Knob::DraftAcceptance | Knob::DraftDecline | Knob::DraftMaxBatch => {
                when(!drafted, NOTHING_DRAFTED)
            }
            Knob::DraftParams => when(!drafted, NOTHING_DRAFTED)
                .or(when(stated.draft_method != Some(DraftMethod::DraftModel), NO_DRAFT_MODEL)),
            Knob::Turns | Knob::SharedPrefix | Knob::KvHostGb | Knob::KvSsdGb | Knob::KvRemoteGb => {
                when(!talk, NO_CONVERSATIONS)
            }
            Knob::KvHostGbps => self.ineffective_tier(0, Knob::KvHostGb),
            Knob::KvSsdGbps => self.ineffective_tier(1, Knob::KvSsdGb),
            Knob::KvRemoteGbps => self.ineffective_tier(2, Knob::KvRemoteGb),
            Knob::Conversations => {
                // Fewer conversations than requests in flight limit the latter.
                let repeats = phase.conversations().is_none_or(|talk| {
                    talk.turns > 1.0 || talk.shared > 0.0 || f64::from(talk.count) <= self.concurrency(phase)
                });
                when(!repeats && stated.prefix_hit.is_none(), NOTHING_REPEATED)
            }
            Knob::PrefixHit => when(talk, CONVERSATIONS_DECIDE),
            Knob::Routing => when(!talk && self.engine == Engine::Analytical, ALL_ALIKE),
            Knob::RequestRate | Knob::RunRequests => {
                let timed = [LoadKind::Static, LoadKind::DecodeOnly, LoadKind::PrefillOnly];
                let backlog = knob == Knob::RequestRate && stated.load == Some(LoadKind::Burst);
                when(stated.load.is_some_and(|load| timed.contains(&load)), SINGLE_BATCH).or(when(backlog, BACKLOG))
            }
            Knob::Concurrency => when(stated.load == Some(LoadKind::Burst), BACKLOG),
            Knob::MaxNumSeqs => {
                let runs_whole = stated.load == Some(LoadKind::DecodeOnly) && !phase.serving_defaults.fixed_shapes;
                when(runs_whole, TIMED_BATCH)
            }
            Knob::PrefillAccelerators => {
                when(stated.pools.prefill.workers.is_some_and(|workers| workers > 0.0), WORKERS_STATED)
            }
            Knob::PrefillEp => experts.or(when(!apart, NO_POOLS)),
            Knob::PrefillTp | Knob::PrefillPp | Knob::PrefillAttentionDp | Knob::KvTransfer => when(!apart, NO_POOLS),
            Knob::ChunkedPrefill => when(apart, POOLS),
            _ => None,
        }
    }

    fn ineffective_in_any_mode(&self, knob: Knob) -> Option<IneffectiveKnob> {
        let (terms, stated) = (&self.terms, &self.base.plan.simulation);
        let when = |idle: bool, why: IneffectiveKnob| idle.then_some(why);
        let bought = self.capex_usd_node.is_some();
        match knob {
            Knob::Images => when(self.vision.is_none(), NO_VISION),
            Knob::ImageSize | Knob::FreezeVision => when(self.vision.is_none(), NO_VISION)
                .or(when(Scenario::images_stated(&self.base).is_none(), NO_IMAGES))
                .or(when(
                    knob == Knob::FreezeVision && self.base.plan.trained == Some(Trained::Projector),
                    FROZEN_ENCODER,
                ))
                .or(when(knob == Knob::ImageSize && self.vision.as_ref().is_some_and(|v| v.scales_images()), ONE_SIZE)),
            Knob::NetworkGbps | Knob::Oversubscription => {
                let inside = self.machine.is_some_and(|m| m.domain >= self.accelerators() * m.dies);
                let apart = self.mode() == Mode::Inference && self.base.pools().is_some();
                when(inside && !apart, ONE_DOMAIN)
            }
            Knob::NetworkShare
            | Knob::SparesShare
            | Knob::StaffUsdNodeYear
            | Knob::UsdPerKwMonth
            | Knob::CapitalCost
            | Knob::AmortizationYears => when(!bought, NO_PURCHASE),
            Knob::UsdPerKwh | Knob::PeakUsdPerKwh | Knob::PeakHours => {
                when(!bought && self.energy_is_included(), ENERGY_INCLUDED)
            }
            Knob::NodesPerRack => when(terms.rack_kw.is_none(), NO_RACK_LIMIT),
            Knob::SlowFactor => when(stated.slow_nodes.is_none_or(|nodes| nodes <= 0.0), NO_SLOW_NODES),
            Knob::ArrivalCv => {
                // With a request rate, a coefficient of variation alone selects gamma arrivals.
                let rate = self.base.plan.serving.request_rate.is_some();
                when(stated.arrivals.map_or(!rate, |arrivals| arrivals != Arrivals::Gamma), EVEN_GAPS)
            }
            Knob::CheckpointInterval | Knob::Checkpoint | Knob::CheckpointAsync | Knob::Restart => {
                when(stated.node_mtbf_h.is_none(), NO_FAILURES)
            }
            _ => None,
        }
    }

    /// Why the bandwidth of the KV cache tier with this index has no effect, if so. `size` is the knob for the tier's
    /// capacity.
    fn ineffective_tier(&self, index: usize, size: Knob) -> Option<IneffectiveKnob> {
        if self.base.kv_tiers().get(index).is_none_or(|tier| tier.bytes <= 0.0) {
            return Some(IneffectiveKnob::requiring(size, NO_CAPACITY));
        }
        self.base.conversations().is_none().then_some(NO_CONVERSATIONS)
    }

    /// Whether a file or a knob states a value other than the default.
    pub(crate) fn sets_number(&self, knob: Knob) -> bool {
        let (plan, serving) = (&self.base.plan, &self.base.plan.serving);
        if let Slot::Number { put, .. } = knob.spec().slot {
            let mut silent = self.clone();
            put(&mut silent.base.plan, None);
            return silent.get(knob) != self.get(knob);
        }
        let switches = &plan.switches;
        match knob {
            Knob::MoeDispatcher => switches.moe_dispatcher.is_some_and(|way| way != MoeDispatcher::AllToAll),
            Knob::MoeCapacity => switches.moe_capacity.is_some(),
            Knob::SharedExperts => serving.shared_experts == Some(SharedExperts::Fused),
            Knob::TwoBatchOverlap => serving.two_batch_overlap == Some(true),
            Knob::DraftMethod => serving.draft_method.is_some(),
            Knob::Routing => serving.routing.is_some(),
            Knob::KvTransfer => serving.kv_transfer.is_some(),
            Knob::LoraTargets => plan.lora_targets.is_some(),
            Knob::CpuOffload => plan.cpu_offload.is_some_and(|offload| offload != CpuOffload::None),
            Knob::PipelineSchedule => {
                plan.schedule.is_some_and(|schedule| schedule != PipelineSchedule::OneForwardOneBackward)
            }
            Knob::CpCommType => plan.cp_comm_type.is_some_and(|kind| kind != ContextExchange::Ring),
            Knob::OverlapTensor => switches.overlap_tensor == Some(true),
            Knob::OverlapPipeline => switches.overlap_pipeline == Some(true),
            Knob::OverlapExperts => switches.overlap_experts == Some(true),
            Knob::Sp => plan.sp == Some(true),
            Knob::PythonExecutor => serving.python_executor == Some(true),
            Knob::GpudirectRdma => self.gpudirect_rdma,
            Knob::Virt => self.sriov,
            Knob::NodesPerRack => self.terms.nodes_per_rack.is_some(),
            Knob::CheckpointAsync => plan.simulation.checkpoint_async == Some(true),
            _ => false,
        }
    }

    /// Like [`Scenario::sets_number`], but covers flags and words too.
    fn sets_value(&self, knob: Knob) -> bool {
        let (spec, plan) = (knob.spec(), &self.base.plan);
        match spec.slot {
            Slot::Flag { get, .. } => get(plan).is_some_and(|on| spec.default != DefaultValue::Flag(on)),
            Slot::Word { get, .. } => get(plan).is_some_and(|word| spec.default != DefaultValue::Word(word)),
            Slot::Number { .. } | Slot::Outside => self.sets_number(knob),
        }
    }

    /// Knobs for the other mode that the workload states nevertheless.
    #[must_use]
    pub fn settings_of_the_other_mode(&self) -> Vec<&'static str> {
        self.settings_without_use(|spec| spec.mode.is_some_and(|mode| mode != self.mode()))
    }

    /// Knobs stated by the workload that apply to engine `other`, but not to the engine in effect.
    #[must_use]
    pub fn settings_of(&self, other: Engine) -> Vec<&'static str> {
        let mode = self.mode();
        self.settings_without_use(|spec| spec.affects(mode, other) && !spec.affects(mode, self.engine))
    }

    fn settings_without_use(&self, without: impl Fn(&Field) -> bool) -> Vec<&'static str> {
        let in_workload = |spec: &Field| matches!(spec.location, FileLocation::Workload(_));
        let stated = |knob: Knob| self.stated.contains(knob) || (in_workload(knob.spec()) && self.sets_value(knob));
        Knob::all().filter(|knob| without(knob.spec()) && stated(*knob)).map(Knob::name).collect()
    }
}

/// Whether a serving knob is about output tokens or the KV cache, and thus irrelevant to models that do not generate.
fn of_generation(knob: Knob) -> bool {
    matches!(
        knob,
        Knob::Generate
            | Knob::GenerateMax
            | Knob::GenerateSpread
            | Knob::GenerateCv
            | Knob::KvPrecision
            | Knob::ReserveOutput
            | Knob::ChunkedPrefill
            | Knob::Beams
            | Knob::ContextRanks
            | Knob::PrefixHit
            | Knob::DraftTokens
            | Knob::DraftAcceptance
            | Knob::DraftMethod
            | Knob::DraftDecline
            | Knob::DraftParams
            | Knob::DraftMaxBatch
            | Knob::PrefillAccelerators
            | Knob::PrefillWorkers
            | Knob::PrefillTp
            | Knob::PrefillPp
            | Knob::PrefillAttentionDp
            | Knob::PrefillEp
            | Knob::KvTransfer
            | Knob::Conversations
            | Knob::Turns
            | Knob::SharedPrefix
            | Knob::KvHostGb
            | Knob::KvHostGbps
            | Knob::KvSsdGb
            | Knob::KvSsdGbps
            | Knob::KvRemoteGb
            | Knob::KvRemoteGbps
            | Knob::SloTpot
    )
}
