//! Memory of a replica: weights, KV cache, engine reserve.

use super::Reported;
use crate::engine::answer::serving;
use crate::estimate::MemoryPart;
use crate::explain::expression::Written;
use crate::explain::{Origin, Term};
use crate::knob::Knob;

impl Reported<'_> {
    pub(super) fn sequences(&self, value: f64) -> Term {
        let room = serving::kv_capacity(&self.input, &self.constants);
        let usable = Term::input("M_usable", "device memory available to the engine", "bytes", room.usable_bytes)
            .from(Origin::Engine("device memory times gpu_memory_utilization"))
            .depending_on(vec![self.knob("share", Knob::GpuMemoryUtilization)]);
        let reserve = Term::input("M_reserve", "context, graphs and workspace", "bytes", room.reserve_bytes)
            .from(Origin::Engine("memory that the engine needs for itself"))
            .depending_on(self.constants(&["reserve_bytes", "reserve_share"]));
        let free = usable - self.weights() - reserve;
        let free = if room.shared_bytes > 0.0 { free - self.shared_prefix(room.shared_bytes) } else { free };
        let free = free / self.sequence(room.mean_sequence);
        Term::stated("b_max", "", "seq", value, self.grouped(free, room.groups))
    }

    /// Multiplies by the number of attention groups.
    pub(super) fn grouped(&self, written: Written, groups: f64) -> Written {
        if groups == 1.0 {
            return written;
        }
        written * Term { value: groups, ..self.knob("groups", Knob::AttentionDp) }
    }

    /// KV cache of one sequence.
    pub(super) fn sequence(&self, bytes: f64) -> Term {
        Term::input("M_sequence", "KV cache of one sequence on a device", "bytes", bytes)
            .from(Origin::Engine("layers × KV width × bytes × tokens, with the mean output length"))
            .depending_on(vec![self.prompt(), self.output(), self.knob("kv_precision", Knob::KvPrecision)])
    }

    /// KV cache of the prefix that all sequences share.
    fn shared_prefix(&self, bytes: f64) -> Term {
        Term::input("M_shared", "KV cache of the shared prefix on a device", "bytes", bytes)
            .from(Origin::Engine("layers × KV width × bytes × tokens of the shared prefix"))
            .depending_on(vec![self.knob("shared", Knob::SharedPrefix), self.knob("kv_precision", Knob::KvPrecision)])
    }

    pub(super) fn with_memory_dependencies(&self, part: MemoryPart, term: Term) -> Term {
        let (how, bearing) = match part {
            MemoryPart::KvCache if term.value > 0.0 => {
                let room = serving::kv_capacity(&self.input, &self.constants);
                let all: Written = self.batch() * self.sequence(room.mean_sequence);
                let all = if room.groups == 1.0 {
                    all
                } else {
                    all / Term { value: room.groups, ..self.knob("groups", Knob::AttentionDp) }
                };
                let all = if room.shared_bytes > 0.0 { all + self.shared_prefix(room.shared_bytes) } else { all };
                return Term::stated(term.symbol, term.name, term.unit, term.value, all);
            }
            MemoryPart::Weights => {
                let count = self.whole.scenario.model.map_or(0.0, |model| model.params());
                let all = self.whole.inputs.model("W_all", "parameters of the model", "", count);
                let knobs = [("tp", Knob::Tp), ("pp", Knob::Pp), ("precision", Knob::Precision)];
                let knobs = knobs.map(|(symbol, knob)| self.knob(symbol, knob));
                let bearing = std::iter::once(all).chain(knobs).collect();
                ("layers in their format, sharded over tp and pp; embedding and output layer in theirs", bearing)
            }
            MemoryPart::EngineReserve => {
                ("context, graphs and workspace", self.constants(&["reserve_bytes", "reserve_share"]))
            }
            _ => ("computed by the engine", Vec::new()),
        };
        term.from(Origin::Engine(how)).depending_on(bearing)
    }
}
