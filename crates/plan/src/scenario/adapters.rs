//! Training of a frozen model: adapters, the projector of images, and how the frozen weights are stored.

use super::{Phase, Scenario};
use atlas_config::Mode;
use atlas_core::plan::{Format, LoraTargets, Trained};
use atlas_core::plan_spec::LORA_RANK;
use atlas_perf::arch::Architecture;
use atlas_perf::serving::formats::stored_bytes;
use atlas_perf::training::Adapters;
use atlas_perf::training::adapters::trained_params;

impl Scenario {
    /// Matrices with low-rank adapters.
    #[must_use]
    pub fn adapters(&self, phase: &Phase) -> Adapters {
        match (phase.plan.trained, phase.plan.lora_targets) {
            (Some(Trained::Lora), Some(LoraTargets::Attention)) => Adapters::Attention,
            (Some(Trained::Lora), _) => Adapters::All,
            _ => Adapters::None,
        }
    }

    /// Trained parameters relative to the weights, of routed experts in the second place; see
    /// [`atlas_perf::training::TrainingInput::trained`].
    #[must_use]
    pub fn trained_shares(&self, phase: &Phase, arch: &Architecture) -> [f64; 2] {
        match phase.plan.trained.unwrap_or(Trained::All) {
            Trained::All => [1.0; 2],
            Trained::Projector => [self.projector_params() / arch.params(); 2],
            Trained::Lora => {
                let rank = phase.plan.lora_rank.map_or(LORA_RANK, f64::from);
                let of = self.adapters(phase).params(arch, rank);
                let experts = arch.moe_layers() * arch.expert_params();
                [of.dense / arch.dense_params().max(1.0), of.experts / experts.max(1.0)]
            }
        }
    }

    /// Number of trained parameters.
    #[must_use]
    pub fn trained_params(&self, phase: &Phase) -> f64 {
        let Some(arch) = &self.model else { return 0.0 };
        trained_params(arch, self.adapters(phase), self.trained_shares(phase, arch))
    }

    /// Storage format of the frozen weights in LoRA training, if it is narrower than the format of matrix
    /// multiplications.
    #[must_use]
    pub fn packed(&self, phase: &Phase) -> Option<Format> {
        let narrower = |format: &Format| stored_bytes(*format) < stored_bytes(self.format(phase));
        phase.plan.format.filter(|format| freezes_layers(phase) && narrower(format))
    }

    /// Bytes of a frozen weight in LoRA training, if fewer than in the format of matrix multiplications: those of the
    /// stated bits, or of the storage format.
    pub(crate) fn packed_bytes(&self, phase: &Phase) -> Option<f64> {
        let bits = phase.plan.weight_bits.filter(|_| freezes_layers(phase));
        let bytes = bits.map(|bits| bits / 8.0).or_else(|| self.packed(phase).map(stored_bytes));
        bytes.filter(|bytes| *bytes < stored_bytes(self.format(phase)))
    }

    /// Bits of a weight of the layers as stored in training.
    pub(super) fn weight_bits(&self, phase: &Phase) -> f64 {
        8.0 * self.packed_bytes(phase).unwrap_or_else(|| stored_bytes(self.format(phase)))
    }
}

/// Whether the layers are frozen and unpacked before each multiplication, as in QLoRA.
fn freezes_layers(phase: &Phase) -> bool {
    phase.shape.mode == Mode::Training && phase.plan.trained == Some(Trained::Lora)
}
