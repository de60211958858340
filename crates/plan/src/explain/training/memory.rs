//! Memory of the fullest device in training.

use super::Reported;
use crate::estimate::MemoryPart;
use crate::explain::expression::Written;
use crate::explain::{Origin, Term};
use crate::knob::Knob;
use atlas_perf::training::Adapters;
use atlas_perf::training::memory::{PeakStages, Sharded, keeps_gathered_weights};

impl Reported<'_> {
    /// Weights, gradients or optimizer states: parameters of the fullest stage, bytes per parameter, and the ranks that
    /// they are sharded over. `None` if part of them is offloaded to the host, or some weights are packed or frozen, or
    /// adapters are added to them.
    pub(super) fn states(&self, part: MemoryPart) -> Option<Written> {
        let i = &self.input;
        let (kind, bytes, what) = match part {
            MemoryPart::Weights => (0, i.weight_bytes, "bytes of a weight as it is multiplied"),
            MemoryPart::Gradients => (1, i.held_gradient_bytes(), "bytes of a gradient as it is kept"),
            MemoryPart::Optimizer => (2, i.optimizer_bytes, "bytes of master weight and moments"),
            _ => return None,
        };
        let offloaded = if part == MemoryPart::Optimizer { i.offload.optimizer } else { i.offload.weights };
        let frozen_images = i.images.is_some_and(|images| !images.trained);
        let added = i.packed_bytes.is_some() || i.adapters != Adapters::None;
        if offloaded > 0.0 || (kind == 0 && (added || frozen_images || keeps_gathered_weights(i))) {
            return None;
        }
        let states = PeakStages::of(i, &self.constants).model_states(&self.out.memory)?;
        let bytes = Term::input("bytes", what, "bytes", bytes).from(Origin::Engine(
            "mixed-precision Adam keeps 2 + 4 + 12 bytes a parameter (arXiv 1910.02054, section 3.1)",
        ));
        let held = |symbol: &'static str, spread: &'static str, what: &'static str, of: &Sharded| -> Option<Written> {
            if of.params <= 0.0 {
                return None;
            }
            let params = Term::input(symbol, what, "", of.params)
                .from(Origin::Engine("layers and embedding of the fullest stage, before sharding"))
                .depending_on(vec![self.parameters(), self.knob("tp", Knob::Tp), self.knob("pp", Knob::Pp)]);
            let over = Term::input(spread, "ranks that they are sharded over", "", *of.shards.get(kind)?)
                .from(Origin::Engine("of sharding, shard, dp and cp"))
                .depending_on(vec![
                    self.knob("sharding", Knob::Sharding),
                    self.knob("shard", Knob::Shard),
                    self.knob("dp", Knob::Dp),
                    self.knob("cp", Knob::Cp),
                ]);
            let all = params * bytes.clone();
            if kind == 0 || of.trained == of.params {
                return Some(all / over);
            }
            let share = of.trained / of.params;
            let trained = Term::input("trained", "trained parameters, as a share of these", "", share)
                .from(Origin::Engine("of the workload's `trained`"));
            Some(all * trained / over)
        };
        let dense = held("P", "shards", "parameters on a device", &states.dense);
        let experts = held("P_e", "shards_e", "parameters of routed experts on a device", &states.experts);
        dense.into_iter().chain(experts).reduce(|a, b| a + b)
    }

    /// Adds the dependencies of a part of the memory.
    pub(super) fn with_memory_dependencies(&self, part: MemoryPart, term: Term) -> Term {
        let bearing = match part {
            MemoryPart::Weights | MemoryPart::Gradients | MemoryPart::Optimizer => vec![
                self.parameters(),
                self.knob("tp", Knob::Tp),
                self.knob("pp", Knob::Pp),
                self.knob("dp", Knob::Dp),
                self.knob("sharding", Knob::Sharding),
                self.knob("shard", Knob::Shard),
                self.knob("precision", Knob::Precision),
            ],
            MemoryPart::Activations => vec![
                self.knob("micro", Knob::Microbatch),
                self.sequence(),
                self.knob("tp", Knob::Tp),
                self.knob("cp", Knob::Cp),
                self.knob("sp", Knob::Sp),
                self.knob("recompute", Knob::Recompute),
                self.recomputed(),
            ],
            MemoryPart::Logits => {
                let vocabulary = self.whole.scenario.model.map_or(0.0, |model| model.vocab.into());
                vec![self.knob("micro", Knob::Microbatch), self.whole.inputs.model("V", "vocabulary", "", vocabulary)]
            }
            MemoryPart::Buffers => self.constants(&["workspace"]),
            MemoryPart::Reserve => self.constants(&["reserve"]),
            _ => Vec::new(),
        };
        let how = match part {
            MemoryPart::Weights => {
                "weights of the stage that holds most, sharded by tp, pp and ep, and over replicas with zero3; with the gathered weights, if they are kept"
            }
            MemoryPart::Gradients => "gradients as they are kept, over replicas from zero2 on",
            MemoryPart::Optimizer => "fp32 master weights and two moments, over replicas from zero1 on",
            MemoryPart::Activations => {
                "what the backward pass needs of every layer and micro-batch in flight (arXiv 2205.05198, section 4)"
            }
            MemoryPart::Logits => "bf16 logits, fp32 softmax and its gradient on the last stage",
            MemoryPart::Buffers => {
                "gathered layers or the gathered output layer with its gradient, and libraries' workspaces"
            }
            MemoryPart::Reserve => "driver context and what frameworks keep outside the allocator",
            _ => "computed by the engine",
        };
        match self.states(part) {
            Some(written) if term.value > 0.0 => {
                Term::stated(term.symbol, term.name, term.unit, term.value, written).depending_on(bearing)
            }
            _ => term.from(Origin::Engine(how)).depending_on(bearing),
        }
    }

    pub(super) fn parameters(&self) -> Term {
        let count = self.whole.scenario.model.map_or(0.0, |model| model.params());
        self.whole.inputs.model("W_all", "parameters of the model", "", count)
    }
}
