//! Input of the training engine.

use super::{Phase, Scenario};
use atlas_core::count::Count;
use atlas_core::plan::{ContextExchange, CpuOffload, Format, Trained};
use atlas_core::plan_spec::HEADROOM;
use atlas_perf::accelerator::Precision;
use atlas_perf::arch::{Architecture, Head};
use atlas_perf::serving::formats::stored_bytes;
use atlas_perf::training::stages;
use atlas_perf::training::{Offload, Optimizer, Reshard, Schedule, Sharding, TrainingInput};
use atlas_perf::traits::{Regather, WeightCopies};

impl Scenario {
    /// Input of the training engine for a phase; `None` without machine or model.
    #[must_use]
    pub fn training_input(&self, phase: &Phase) -> Option<TrainingInput> {
        let (machine, arch) = (self.machine.as_ref()?, self.model.as_ref()?);
        let (shape, plan) = (&phase.shape, &phase.plan);
        let cp = plan.cp.unwrap_or(Count::ONE);
        let format = self.format(phase);
        let precision = Precision::from(format);
        let traits = &self.active_software.training;
        let wide = matches!(format, Format::Fp32 | Format::Tf32);
        let frozen = plan.trained.unwrap_or(Trained::All) != Trained::All;
        // Frozen weights are not updated and need no 32-bit copy.
        let masters = wide || (traits.weights == WeightCopies::MasterOnly && !frozen);
        let optimizer = plan.optimizer.unwrap_or(Optimizer::Adam);
        let grad_bytes = plan.gradient_format.map_or(traits.gradient_format.bytes(precision), stored_bytes);
        let reduce_bytes = plan.gradient_format.map_or(traits.reduce_format.bytes(precision), stored_bytes);
        let sharding = self.sharding(phase);
        let [trained, trained_experts] = self.trained_shares(phase, arch);
        let host = Offload { link_bw: machine.host.link_bw, host_bw: machine.host.memory_bw, ..Offload::default() };
        let input = TrainingInput {
            arch: *arch,
            accelerator: machine.device,
            accelerators: shape.tp * cp * shape.pp * shape.dp,
            domain: machine.domain,
            oversubscription: machine.oversubscription,
            // Images have no length: token counts in the file have no effect.
            seq: if arch.convolutions.is_some() { 1.0 } else { (shape.prompt + shape.generate).max(1.0) },
            micro: self.micro(phase),
            global: self.global(phase),
            tp: shape.tp,
            pp: shape.pp,
            vpp: plan.vpp.unwrap_or(Count::ONE),
            first_layers: plan.first_layers.filter(|_| shape.pp > 1.0),
            last_layers: plan.last_layers.filter(|_| shape.pp > 1.0),
            mtp_layers: if next_token(arch) { plan.mtp_layers.unwrap_or(Count::ZERO) } else { Count::ZERO },
            dp: shape.dp,
            cp,
            context_exchange: plan.cp_comm_type.unwrap_or(ContextExchange::Ring),
            ep: if arch.is_moe() { phase.ep() } else { Count::ONE },
            etp: self.expert_tensor_ranks(phase),
            sequence_parallel: self.sequence_parallel(phase),
            sharding,
            reshard: Some(match traits.regather {
                Regather::OncePerStep => Reshard::OncePerStep,
                Regather::OnceUnderPipeline | Regather::OnceWithExperts if shape.pp > 1.0 => Reshard::OncePerStep,
                Regather::OnceWithExperts if arch.is_moe() => Reshard::OncePerStep,
                Regather::OnceUnderPipeline | Regather::OnceWithExperts | Regather::EveryMicroBatch => {
                    Reshard::EveryMicroBatch
                }
            }),
            shard: plan.shard,
            schedule: plan.schedule.unwrap_or(Schedule::OneForwardOneBackward),
            recompute: self.recompute(phase),
            recompute_layers: plan.recompute_layers,
            recompute_reserve: plan.recompute_reserve.unwrap_or(HEADROOM),
            precision,
            bf16_layers: plan.bf16_layers.unwrap_or(Count::ZERO),
            block_scaled: matches!(format, Format::Mxfp8 | Format::Fp4),
            imbalance: plan.imbalance.unwrap_or(1.0),
            weight_bytes: if masters { 4.0 } else { 2.0 },
            grad_bytes,
            reduce_bytes: Some(reduce_bytes),
            optimizer,
            optimizer_bytes: optimizer.bytes(!masters),
            offload: match plan.cpu_offload.filter(|_| self.offloads(phase)) {
                None | Some(CpuOffload::None) => Offload::default(),
                Some(CpuOffload::Optimizer) => Offload { optimizer: 1.0, ..host },
                Some(CpuOffload::Parameters) => Offload { optimizer: 1.0, weights: 1.0, ..host },
            },
            target_seq: None,
            bucket_bytes: if sharding == Sharding::None { 0.0 } else { traits.bucket_bytes },
            trained,
            trained_experts,
            packed_bytes: self.packed_bytes(phase),
            adapters: self.adapters(phase),
            software: self.training_software(phase),
            images: self.images(phase),
        };
        Some(without_default_stages(input))
    }

    /// Layers of a pipeline stage, derived from the layout and stated values.
    pub(super) fn stage_layers(&self, stage: f64) -> f64 {
        self.training_input(&self.base).map_or(0.0, |input| stages::stage_layers(&input, stage))
    }
}

/// Drops stated layers of the first and last stage if they are those that the layout leads to anyway: other stages then
/// have the layers that they have by default.
fn without_default_stages(input: TrainingInput) -> TrainingInput {
    if input.first_layers.is_none() && input.last_layers.is_none() {
        return input;
    }
    let usual = TrainingInput { first_layers: None, last_layers: None, ..input };
    let is_usual = |stated: Option<Count>, stage: f64| {
        stated.is_none_or(|layers| f64::from(layers) == stages::stage_layers(&usual, stage))
    };
    if is_usual(input.first_layers, 0.0) && is_usual(input.last_layers, input.pp - 1.0) { usual } else { input }
}

/// Whether a model predicts the next token, as multi-token prediction requires.
pub(super) fn next_token(model: &Architecture) -> bool {
    model.causal && model.head == Head::Language && model.encoder_layers <= 0.0 && model.convolutions.is_none()
}
