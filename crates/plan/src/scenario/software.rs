//! Software of a scenario: its traits, and the defaults that follow from them.

use atlas_core::count::Count;
use std::sync::Arc;

use super::{Phase, Scenario};
use crate::knob::Knob;
use atlas_catalog::Accelerator as Sheet;
use atlas_catalog::software::{self, AcceleratorClass, Software};
use atlas_config::Mode;
use atlas_core::plan::{
    AttentionKernel, CpuOffload, Format, GraphCapture, MoeCapacity, MoeDispatcher, PipelineSchedule, Recompute,
    Sharding,
};
use atlas_perf::accelerator::Precision;
use atlas_perf::serving::Layout;
use atlas_perf::serving::formats::stored_bytes;
use atlas_perf::training::Software as TrainingSoftware;
use atlas_perf::traits::{
    ExpertExchange, ExpertProducts, GradientReduction, HostOverlap, Routing, ServingTraits, StepLaunch, TrainingTraits,
};

/// Default software for training: the first that runs on the vendor's accelerators.
const TRAINING_SOFTWARE: [&str; 4] = ["megatron-core", "maxtext", "neuronx-distributed", "deepspeed"];
/// Default software for inference: the first that runs on the vendor's accelerators.
const SERVING_SOFTWARE: [&str; 3] = ["vllm", "sglang", "llama.cpp"];

/// Software in effect and its traits.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveSoftware {
    /// Family and release: `vllm@0.11.0`.
    pub name: Arc<str>,
    /// The software found in the catalog.
    pub found: Option<Software>,
    /// Whether the software family was not stated, or is unknown.
    pub family_assumed: bool,
    /// Vendor of the accelerators, if the software is known not to run on them.
    pub unsupported_on: Option<Arc<str>>,
    /// Default software for these accelerators.
    pub usual: Option<&'static str>,
    /// Whether training software fuses element-wise operators without a compiler.
    pub fuses_without_compiler: bool,
    /// Traits in training.
    pub training: TrainingTraits,
    /// Traits in serving.
    pub serving: ServingTraits,
}

impl Default for ActiveSoftware {
    fn default() -> ActiveSoftware {
        ActiveSoftware {
            name: "".into(),
            found: None,
            family_assumed: true,
            unsupported_on: None,
            usual: None,
            fuses_without_compiler: TrainingTraits::default().fused_elementwise,
            training: TrainingTraits::default(),
            serving: ServingTraits::default(),
        }
    }
}

impl ActiveSoftware {
    /// Whether the release was not stated, or is not known exactly.
    #[must_use]
    pub fn release_assumed(&self) -> bool {
        self.found.as_ref().is_none_or(|found| found.caveat.is_some())
    }

    /// Resolves the software `stated`, or the default of the mode, on this accelerator.
    pub(super) fn of(stated: Option<&str>, mode: Mode, sheet: Option<&Sheet>, dies: f64) -> ActiveSoftware {
        let usual: &[&'static str] = match mode {
            Mode::Training => &TRAINING_SOFTWARE,
            Mode::Inference => &SERVING_SOFTWARE,
        };
        let Some(sheet) = sheet else { return ActiveSoftware::default() };
        let class = AcceleratorClass::of(sheet, dies);
        let resolved = |name: &str| {
            let kind = match mode {
                Mode::Training => software::SoftwareKind::Training,
                Mode::Inference => software::SoftwareKind::Serving,
            };
            let found = software::resolve(name, kind, &class).ok()?;
            Some((found.software().spec(), found))
        };
        // Software that is unknown or does not support the mode gets generic traits.
        let generic = match mode {
            Mode::Training => "generic-training",
            Mode::Inference => "generic-serving",
        };
        let runs =
            |name: &&&str| resolved(name).is_some_and(|(_, found)| !found.is_unsupported_by_vendor(&sheet.vendor));
        let supported = usual.iter().find(runs).copied();
        let known = stated.or(supported).or(usual.first().copied()).and_then(resolved);
        let unknown = known.is_none();
        let Some((name, found)) = known.or_else(|| resolved(generic)) else { return ActiveSoftware::default() };
        let traits = found.training.unwrap_or_default();
        ActiveSoftware {
            name: name.into(),
            found: Some(found.software()),
            family_assumed: stated.is_none() || unknown,
            unsupported_on: found.is_unsupported_by_vendor(&sheet.vendor).then(|| sheet.vendor.as_str().into()),
            usual: supported,
            fuses_without_compiler: traits.default.fused_elementwise || traits.tuned.launch != StepLaunch::Compiled,
            training: traits.tuned,
            serving: found.serving.unwrap_or_default().tuned,
        }
    }
}

impl Scenario {
    /// Name of the software in effect, as shown by its knob.
    #[must_use]
    pub fn software_name(&self) -> Arc<str> {
        Arc::clone(&self.active_software.name)
    }

    /// Host work that overlaps with accelerator computation in serving.
    #[must_use]
    pub fn host_overlap(&self, phase: &Phase) -> HostOverlap {
        let drafts = phase.plan.serving.draft_tokens.is_some_and(|tokens| tokens > 0.0);
        let defaults = &phase.serving_defaults;
        let usual = if drafts { defaults.host_with_drafts } else { defaults.host };
        let usual = if phase.shape.pp > 1.0 { usual.at_most(defaults.host_with_pipeline) } else { usual };
        match phase.plan.serving.overlap_scheduling {
            None => usual,
            Some(true) => HostOverlap::Scheduling,
            // Without overlapped scheduling, tokenization and streaming still run in separate processes.
            Some(false) if usual == HostOverlap::Scheduling => HostOverlap::FrontEnd,
            Some(false) => usual,
        }
    }

    /// Sharding of model states in effect.
    #[must_use]
    pub fn sharding(&self, phase: &Phase) -> Sharding {
        phase.plan.sharding.unwrap_or(self.active_software.training.sharding)
    }

    /// Whether states are offloaded to the host. Where host and accelerator share one memory, there is nowhere to move
    /// them to.
    #[must_use]
    pub fn offloads(&self, phase: &Phase) -> bool {
        let stated = phase.plan.cpu_offload.is_some_and(|offload| offload != CpuOffload::None);
        stated && !self.machine.is_some_and(|machine| machine.host.unified)
    }

    /// Settings of a training run that the software does not support, and what it lacks.
    #[must_use]
    pub fn unsupported_training(&self, phase: &Phase) -> Vec<(Knob, String)> {
        let (plan, shape, t) = (&phase.plan, &phase.shape, &self.active_software.training);
        let pipelined = shape.pp > 1.0;
        let allowed = if pipelined { t.most_sharding_with_pipeline } else { t.most_sharding };
        let (sharding, offload) = (self.sharding(phase), plan.cpu_offload.unwrap_or(CpuOffload::None));
        let splitting = plan.schedule.filter(|schedule| pipelined && schedule.splits_backward());
        // No documented training software keeps gradients in less than 16 bit.
        let narrow = plan.gradient_format.filter(|format| stored_bytes(*format) < 2.0);
        let mut lacks = Vec::new();
        let mut lack = |knob: Knob, lacking: bool, what: &dyn Fn() -> String| {
            if lacking {
                lacks.push((knob, what()));
            }
        };
        lack(Knob::Tp, shape.tp > 1.0 && !t.tensor_parallel, &|| format!("tensor parallelism (tp {})", shape.tp));
        lack(Knob::Pp, pipelined && !t.pipeline_parallel, &|| format!("pipeline stages (pp {})", shape.pp));
        lack(Knob::Sharding, sharding > allowed, &|| {
            let condition = if pipelined && sharding <= t.most_sharding { " with pipeline stages" } else { "" };
            format!("sharding {}{condition}", sharding.name())
        });
        lack(Knob::PipelineSchedule, splitting.is_some() && !t.zero_bubble, &|| {
            format!("pp_schedule {}", splitting.map_or("", PipelineSchedule::name))
        });
        lack(Knob::CpuOffload, offload > t.most_offload, &|| format!("cpu_offload {}", offload.name()));
        lack(Knob::GradientFormat, narrow.is_some(), &|| {
            format!("gradient_format {}", narrow.map_or("", Format::name))
        });
        lacks
    }

    /// Whether the software supports the layout of the phase: sharding with a pipeline, pipeline schedule, attention
    /// groups, expert-parallel ranks, pools. Searches and advice propose only supported layouts.
    #[must_use]
    pub fn software_supports(&self, phase: &Phase) -> bool {
        let plan = &phase.plan;
        match phase.shape.mode {
            Mode::Training => {
                let layout = [Knob::Tp, Knob::Pp, Knob::Sharding, Knob::PipelineSchedule];
                !self.unsupported_training(phase).iter().any(|(knob, _)| layout.contains(knob))
            }
            Mode::Inference => {
                let t = &self.active_software.serving;
                let spread = |layout: &Layout| {
                    let ranks = layout.tp * layout.attention_dp;
                    // Wide expert parallelism requires that the experts are distributed over all ranks of the replica.
                    t.spreads(f64::from(layout.ep), ranks) && (!phase.spreads_experts() || layout.ep >= ranks)
                };
                let mixture = self.model.is_some_and(|model| model.is_moe());
                let layouts = phase.pools().map_or([phase.decode_layout(); 2], |pools| [pools.prefill, pools.decode]);
                (!mixture || layouts.iter().all(spread))
                    && (t.attention_dp || plan.attention_dp.is_none_or(|groups| groups <= 1.0))
                    && (t.pools || phase.pools().is_none())
                    && (t.wide_ep || !phase.spreads_experts())
                    && (self.writes_directly() || self.moe_dispatcher(phase) == MoeDispatcher::AllToAll)
            }
        }
    }

    /// Whether accelerators can write to each other's memory, as direct dispatch to experts requires: their links do
    /// not pass through the host's PCIe tree.
    #[must_use]
    pub fn writes_directly(&self) -> bool {
        self.machine.is_none_or(|machine| !machine.device.over_pcie())
    }

    /// Activation recomputation in effect. By default that of the software; if it recomputes nothing, the least that
    /// fits in memory.
    #[must_use]
    pub fn recompute(&self, phase: &Phase) -> Recompute {
        let usual = match self.active_software.training.recompute {
            Recompute::None => Recompute::Auto,
            stated => stated,
        };
        phase.plan.recompute.unwrap_or(usual)
    }

    /// Whether norms and residuals are split over tensor-parallel ranks (sequence parallelism).
    #[must_use]
    pub fn sequence_parallel(&self, phase: &Phase) -> bool {
        phase.plan.sp.unwrap_or(self.active_software.training.sequence_parallel && phase.shape.tp > 1.0)
    }

    /// Tensor-parallel ranks within an expert. By default as many as the software uses, or one if only whole experts
    /// divide the ranks of a stage, as the software requires.
    #[must_use]
    pub fn expert_tensor_ranks(&self, phase: &Phase) -> Count {
        phase.plan.etp.unwrap_or_else(|| {
            if !self.model.is_some_and(|model| model.is_moe()) {
                return Count::ONE;
            }
            let usual = self.active_software.training.expert_split.ranks(phase.shape.tp, phase.ep());
            let replica = phase.shape.tp * phase.groups();
            let ranks = match phase.plan.dp {
                Some(dp) => replica * dp,
                None => (self.devices() / phase.shape.pp).floor(),
            };
            let divides = |etp: Count| ranks % (phase.ep() * etp) == 0.0;
            if !divides(usual) && divides(Count::ONE) { Count::ONE } else { usual }
        })
    }

    /// Attention kernel in training.
    #[must_use]
    pub fn attention_kernel(&self, phase: &Phase) -> AttentionKernel {
        phase.plan.switches.attention_kernel.unwrap_or(self.active_software.training.attention)
    }

    /// How tokens are dispatched to experts.
    #[must_use]
    pub fn moe_dispatcher(&self, phase: &Phase) -> MoeDispatcher {
        let usual = match (phase.shape.mode, self.active_software.training.exchange) {
            (Mode::Training, ExpertExchange::Deduplicated) => MoeDispatcher::DeepEp,
            _ => MoeDispatcher::AllToAll,
        };
        phase.plan.switches.moe_dispatcher.unwrap_or(usual)
    }

    /// Format of stored gradients.
    #[must_use]
    pub fn gradient_format(&self, phase: &Phase) -> Format {
        let computed = Precision::from(self.format(phase));
        let usual = if self.active_software.training.gradient_format.bytes(computed) > 2.0 {
            Format::Fp32
        } else {
            Format::Bf16
        };
        phase.plan.gradient_format.unwrap_or(usual)
    }

    /// Format of matrix multiplications.
    #[must_use]
    pub fn compute(&self, phase: &Phase) -> Format {
        if let Some(stated) = phase.plan.compute {
            return stated;
        }
        let format = self.format(phase);
        if phase.shape.mode == Mode::Training || phase.serving_defaults.formats.expert == Precision::from(format) {
            return format;
        }
        match phase.serving_defaults.formats.expert {
            Precision::Fp8 => Format::Fp8,
            Precision::Int8 => Format::Int8,
            Precision::Fp4 => Format::Fp4,
            _ => Format::Bf16,
        }
    }

    /// Traits of the training software, adjusted by the switches of the workload.
    #[must_use]
    pub fn training_software(&self, phase: &Phase) -> TrainingSoftware {
        let (t, plan) = (&self.active_software.training, &phase.plan);
        let switches = &plan.switches;
        let kernel = self.attention_kernel(phase);
        let graphs = switches.graph_capture.unwrap_or(if plan.graphs == Some(true) {
            GraphCapture::Layer
        } else {
            GraphCapture::None
        });
        let compiled = switches.compiled.unwrap_or(t.launch != StepLaunch::Eager) || graphs != GraphCapture::None;
        let whole_iteration = graphs == GraphCapture::FullIteration
            || (switches.graph_capture.is_none() && t.launch == StepLaunch::Iteration);
        let fixed = switches.moe_capacity == Some(MoeCapacity::Dropped);
        let program = switches.compiled.unwrap_or(t.launch == StepLaunch::Compiled);
        let overlap = |stated: Option<bool>, usual: bool| stated.or(plan.overlap).unwrap_or(usual);
        // A single stage has no interleaved schedule.
        let chunks = if phase.shape.pp > 1.0 { f64::from(plan.vpp.unwrap_or(Count::ONE)) } else { 1.0 };
        let sharding = self.sharding(phase);
        let gradients = overlap(switches.overlap_data, t.overlap_gradients.applies(sharding));
        TrainingSoftware {
            fused_attention: kernel != AttentionKernel::Unfused,
            native_attention: kernel == AttentionKernel::Native,
            first_flash: kernel == AttentionKernel::Flash1,
            fused_elementwise: match switches.compiled {
                Some(false) => t.fused_elementwise && self.active_software.fuses_without_compiler,
                _ => t.fused_elementwise || compiled,
            },
            compiled,
            // Partial graphs of a layer exclude the kernels that depend on routing.
            eager_experts: compiled && !program && !whole_iteration && !fixed,
            fused_experts: (t.experts == ExpertProducts::Grouped && t.fused_permutation) || whole_iteration,
            // A fully captured iteration cannot synchronize with the host.
            synchronous_routing: t.routing == Routing::HostSync && !fixed && !whole_iteration,
            deduplicated_dispatch: self.moe_dispatcher(phase) != MoeDispatcher::AllToAll,
            overlap_tensor: overlap(switches.overlap_tensor, t.overlap_tensor),
            overlap_pipeline: overlap(switches.overlap_pipeline, t.overlap_pipeline.applies(chunks)),
            overlap_experts: overlap(switches.overlap_experts, t.overlap_experts.applies(chunks)),
            overlap_data: gradients,
            overlap_parameters: gradients && overlap(switches.overlap_data, t.overlap_parameters.applies(sharding)),
            dropout: t.dropout,
            fused_sums: t.gradient_sums.fused(Precision::from(self.format(phase))),
            deferred_reduction: t.gradient_reduction == GradientReduction::LastMicroBatch
                && matches!(sharding, Sharding::Zero2 | Sharding::Zero3)
                // Gradients that are sent to the host are reduced first.
                && plan.cpu_offload != Some(CpuOffload::Parameters)
                && self.global(phase) > phase.shape.dp * self.micro(phase),
            shard_copies: t.shard_copies,
            token_split: t.token_split,
            selective_recompute: t.selective_recompute,
        }
    }
}
