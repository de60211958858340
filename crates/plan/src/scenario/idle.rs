//! Knobs that have no effect in a scenario, and why: a feature that the model lacks, or a setting of another knob.

use super::{Phase, Scenario};
use crate::engine::answer::training::next_token;
use crate::knob::{Home, Knob};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::field::{Field, Slot, Usual};
use atlas_core::plan::{
    Arrivals, ContextExchange, DraftMethod, Engine, LoadKind, MoeDispatcher, PipelineSchedule, Sharding, SharedExperts,
    Trained,
};
use atlas_perf::arch::Attention;
use atlas_perf::serving::Stack;

/// Reason why a knob has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Reason, as text.
    pub why: &'static str,
    /// Knob to set first; `None` if no other knob would make this one effective.
    pub needs: Option<Knob>,
}

impl Idle {
    const fn lacking(why: &'static str) -> Idle {
        Idle { why, needs: None }
    }

    const fn without(needs: Knob, why: &'static str) -> Idle {
        Idle { why, needs: Some(needs) }
    }
}

const NO_EXPERTS: Idle = Idle::lacking("the model has no experts");
const NO_SHARED_EXPERTS: Idle = Idle::lacking("the model has no shared experts");
const NO_VISION: Idle = Idle::lacking("the model has no vision encoder");
const NO_IMAGES: Idle = Idle::without(Knob::Images, "no images: set images");
const ONE_SIZE: Idle = Idle::lacking("the model scales all images to one size");
const NO_TOKENS: Idle = Idle::lacking("the model has no tokens");
const NO_ATTENTION: Idle = Idle::lacking("the model has no attention");
const ALL_AT_ONCE: Idle = Idle::without(Knob::Load, "the load is a single batch: set load to open or closed");
const NO_OUTPUT: Idle = Idle::lacking("the model generates nothing");
const NOT_COMPILED: Idle = Idle::without(Knob::Software, "the software has no compiled runtime");
const SAME_EXPERTS: Idle = Idle::without(Knob::Ep, "experts are not distributed: set ep");
const NO_GROUPS: Idle = Idle::without(Knob::AttentionDp, "there are no attention groups: set attention_dp");
const ONE_TENSOR_RANK: Idle = Idle::without(Knob::Tp, "no tensor parallelism: set tp");
const ONE_STAGE: Idle = Idle::without(Knob::Pp, "no pipeline stages: set pp");
const WHOLE_SEQUENCES: Idle = Idle::without(Knob::Cp, "no context parallelism: set cp");
const NO_NEXT_TOKEN: Idle = Idle::lacking("the model does not predict the next token");
const ONE_REPLICA: Idle = Idle::without(Knob::Dp, "there is only one replica: set dp");
const ONE_DEVICE: Idle = Idle::without(Knob::Dp, "there is only one accelerator: set dp");
const ONE_DOMAIN: Idle = Idle::without(Knob::NumNodes, "no traffic leaves the scale-up domain: set num_nodes");
const NOT_SHARDED: Idle = Idle::without(Knob::Sharding, "model states are not sharded: set sharding");
const NO_ADAPTERS: Idle = Idle::without(Knob::Trained, "all weights are trained: set trained=lora");
const SAME_KEYS: Idle =
    Idle::without(Knob::Tp, "no two ranks hold the same KV heads: set tp above the number of KV heads");
const NOTHING_DRAFTED: Idle = Idle::without(Knob::DraftTokens, "no speculative decoding: set draft_tokens");
const NO_DRAFT_MODEL: Idle = Idle::without(Knob::DraftMethod, "no separate draft model: set draft_method=draft-model");
const NO_CONVERSATIONS: Idle = Idle::without(Knob::Conversations, "no conversations: set conversations");
const CONVERSATIONS_DECIDE: Idle = Idle::without(Knob::Conversations, "conversations determine the cache hit rate");
const ALL_ALIKE: Idle =
    Idle::without(Knob::Conversations, "the closed form treats all requests alike: set conversations or engine=event");
const KEEPS_NOTHING: &str = "the place keeps nothing: set its size";
const NO_POOLS: Idle =
    Idle::without(Knob::PrefillWorkers, "prefill is not disaggregated: set prefill_workers or prefill_accelerators");
const POOLS: Idle = Idle::without(Knob::PrefillWorkers, "prefill has dedicated accelerators");
const WORKERS_STATED: Idle = Idle::without(Knob::PrefillWorkers, "prefill_workers determines the prefill pool");
const NO_PURCHASE: Idle = Idle::without(Knob::CapexUsdNode, "no purchase price known: set capex_usd_node");
const ENERGY_INCLUDED: Idle =
    Idle::without(Knob::EnergyIncluded, "the rental price includes energy: set energy_included=off");
const NO_RACK_LIMIT: Idle = Idle::without(Knob::RackKw, "racks have no power limit: set rack_kw");
const NO_SLOW_NODES: Idle = Idle::without(Knob::SlowNodes, "there are no slow nodes: set slow_nodes");
const EVEN_GAPS: Idle = Idle::without(Knob::Arrivals, "only gamma arrivals have this parameter: set arrivals=gamma");
const NO_FAILURES: Idle = Idle::without(Knob::NodeMtbf, "there are no failures: set node_mtbf_h");

impl Scenario {
    /// Whether changing the knob alone has an effect in this scenario.
    #[must_use]
    pub fn uses(&self, knob: Knob) -> bool {
        knob.spec().matters(self.mode(), self.engine) && self.idle(knob).is_none()
    }

    /// Whether the knob has an effect in this scenario, alone or together with another knob.
    #[must_use]
    pub fn offers(&self, knob: Knob) -> bool {
        knob.spec().matters(self.mode(), self.engine) && self.idle(knob).is_none_or(|idle| idle.needs.is_some())
    }

    /// Why a knob that applies to the mode and engine has no effect; `None` if it has one.
    #[must_use]
    pub fn idle(&self, knob: Knob) -> Option<Idle> {
        if !self.engine.reasons() {
            return None;
        }
        match self.mode() {
            Mode::Training => self.idle_in_training(knob),
            Mode::Inference => self.idle_in_serving(knob),
        }
        .or_else(|| self.idle_in_any(knob))
    }

    /// Message that a knob has no effect in this scenario, and why.
    #[must_use]
    pub fn refuses(&self, knob: Knob) -> String {
        let (name, mode, engine) = (knob.name(), self.mode().name(), self.engine.name());
        match self.idle(knob).filter(|_| knob.spec().matters(self.mode(), self.engine)) {
            Some(idle) => format!("{name} has no effect: {}", idle.why),
            None => format!("{name} has no effect in {mode} with the {engine} engine"),
        }
    }

    /// Settings stated by files or knobs that have no effect, grouped by reason.
    #[must_use]
    pub fn idle_settings(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let mut all: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
        for knob in Knob::all().filter(|knob| knob.spec().matters(self.mode(), self.engine)) {
            let Some(idle) = self.idle(knob).filter(|_| self.states(knob)) else { continue };
            match all.iter_mut().find(|(why, _)| *why == idle.why) {
                Some((_, names)) => names.push(knob.name()),
                None => all.push((idle.why, vec![knob.name()])),
            }
        }
        all
    }

    fn idle_in_training(&self, knob: Knob) -> Option<Idle> {
        let (Phase { shape, plan, .. }, model) = (&self.base, self.model.as_ref()?);
        let experts = model.is_moe();
        let when = |idle: bool, why: Idle| idle.then_some(why);
        let ranks = shape.tp * shape.pp * shape.dp * plan.cp.unwrap_or(Count::ONE);
        match knob {
            Knob::Ep | Knob::Etp | Knob::MoeCapacity => when(!experts, NO_EXPERTS),
            Knob::ExpertImbalance | Knob::MoeDispatcher | Knob::OverlapExperts => {
                when(!experts, NO_EXPERTS).or(when(self.base.ep() <= 1.0, SAME_EXPERTS))
            }
            Knob::Prompt | Knob::Generate => when(model.convolutions.is_some(), NO_TOKENS),
            Knob::AttentionKernel => when(model.convolutions.is_some(), NO_ATTENTION),
            Knob::LoraTargets => when(plan.trained.unwrap_or(Trained::All) == Trained::All, NO_ADAPTERS),
            Knob::OverlapTensor | Knob::Sp => when(shape.tp <= 1.0, ONE_TENSOR_RANK),
            Knob::Vpp | Knob::FirstLayers | Knob::LastLayers | Knob::OverlapPipeline | Knob::PipelineSchedule => {
                when(shape.pp <= 1.0, ONE_STAGE)
            }
            Knob::CpCommType => when(plan.cp.unwrap_or(Count::ONE) <= 1.0, WHOLE_SEQUENCES),
            Knob::MtpLayers => when(!next_token(model), NO_NEXT_TOKEN),
            Knob::Overlap => when(ranks <= 1.0, ONE_DEVICE),
            Knob::OverlapData | Knob::Sharding => when(shape.dp * plan.cp.unwrap_or(Count::ONE) <= 1.0, ONE_REPLICA),
            Knob::Shard => {
                when(shape.dp <= 1.0, ONE_REPLICA).or(when(self.sharding(&self.base) == Sharding::None, NOT_SHARDED))
            }
            _ => None,
        }
    }

    fn idle_in_serving(&self, knob: Knob) -> Option<Idle> {
        let (phase, model) = (&self.base, self.model.as_ref()?);
        let (stated, layout, pools) = (&phase.plan.serving, phase.decode_layout(), phase.pools());
        let when = |idle: bool, why: Idle| idle.then_some(why);
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
            Knob::PythonExecutor => when(phase.served.stack != Stack::Compiled, NOT_COMPILED),
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
            Knob::KvHostGbps => self.idle_tier(0, Knob::KvHostGb),
            Knob::KvSsdGbps => self.idle_tier(1, Knob::KvSsdGb),
            Knob::KvRemoteGbps => self.idle_tier(2, Knob::KvRemoteGb),
            Knob::PrefixHit => when(talk, CONVERSATIONS_DECIDE),
            Knob::Routing => when(!talk && self.engine == Engine::Analytical, ALL_ALIKE),
            Knob::RequestRate | Knob::RunRequests => {
                let timed = [LoadKind::Static, LoadKind::DecodeOnly, LoadKind::PrefillOnly];
                when(stated.load.is_some_and(|load| timed.contains(&load)), ALL_AT_ONCE)
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

    fn idle_in_any(&self, knob: Knob) -> Option<Idle> {
        let (terms, stated) = (&self.terms, &self.base.plan.simulation);
        let when = |idle: bool, why: Idle| idle.then_some(why);
        let bought = self.capex_usd_node.is_some();
        match knob {
            Knob::Images => when(self.vision.is_none(), NO_VISION),
            Knob::ImageSize | Knob::FreezeVision => when(self.vision.is_none(), NO_VISION)
                .or(when(Scenario::images_stated(&self.base).is_none(), NO_IMAGES))
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

    /// Why the bandwidth of KV cache tier `place` has no effect, if so. `size` is the knob for the tier's capacity.
    fn idle_tier(&self, place: usize, size: Knob) -> Option<Idle> {
        let tiers = self.base.kv_tiers();
        let holds = tiers.get(place).is_some_and(|tier| tier.bytes > 0.0);
        if !holds {
            return Some(Idle::without(size, KEEPS_NOTHING));
        }
        self.base.conversations().is_none().then_some(NO_CONVERSATIONS)
    }

    /// Whether a file or a knob states a value other than the default.
    pub(crate) fn states(&self, knob: Knob) -> bool {
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
            Knob::PipelineSchedule => {
                plan.schedule.is_some_and(|schedule| schedule != PipelineSchedule::OneForwardOneBackward)
            }
            Knob::CpCommType => plan.cp_comm_type.is_some_and(|kind| kind != ContextExchange::Ring),
            Knob::OverlapTensor => switches.overlap_tensor == Some(true),
            Knob::OverlapPipeline => switches.overlap_pipeline == Some(true),
            Knob::OverlapExperts => switches.overlap_experts == Some(true),
            Knob::Sp => plan.sp == Some(true),
            Knob::PythonExecutor => serving.python_executor == Some(true),
            Knob::NodesPerRack => self.terms.nodes_per_rack.is_some(),
            Knob::CheckpointAsync => plan.simulation.checkpoint_async == Some(true),
            _ => false,
        }
    }

    /// Like [`Scenario::states`], but covers flags and words too.
    fn says(&self, knob: Knob) -> bool {
        let (spec, plan) = (knob.spec(), &self.base.plan);
        match spec.slot {
            Slot::Flag { get, .. } => get(plan).is_some_and(|on| spec.usual != Usual::Flag(on)),
            Slot::Word { get, .. } => get(plan).is_some_and(|word| spec.usual != Usual::Word(word)),
            Slot::Number { .. } | Slot::Outside => self.states(knob),
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
        self.settings_without_use(|spec| spec.matters(mode, other) && !spec.matters(mode, self.engine))
    }

    fn settings_without_use(&self, without: impl Fn(&Field) -> bool) -> Vec<&'static str> {
        let in_workload = |spec: &Field| matches!(spec.home, Home::Workload(_));
        Knob::all()
            .filter(|knob| in_workload(knob.spec()) && without(knob.spec()) && self.says(*knob))
            .map(Knob::name)
            .collect()
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
