//! The predecessor dashboard's estimator, formula by formula.

use super::expression::Written;
use super::{Origin, Term, Whole};
use crate::engine::benchboard::estimator;
use crate::engine::benchboard::estimator::{Answer, CHECKPOINT_FACTOR, CROWDED_FACTOR, GIB, Input, TENSOR_FACTOR};
use crate::engine::benchboard::input;
use crate::knob::Knob;

/// The derivation of a figure; `None` for figures that every engine derives alike.
pub(super) fn explain(whole: &Whole<'_>, name: &str, value: f64) -> Option<Term> {
    let input = input(whole.scenario, &whole.scenario.base);
    let described = Reported { whole, i: input, answer: estimator::estimate(&input) };
    Some(match name {
        "tokens_per_sec" => {
            let tokens = described.batch() * described.context();
            Term::stated("X", "", "tok/s", value, tokens * 1000.0 / described.step())
        }
        "step_time_ms" => Term { value, ..described.step() },
        "flop_utilization" => Term { value, ..described.mfu() },
        "peak_mem_gb" => described.memory(value),
        "comm_compute_ratio" => Term::stated("share", "", "", value, described.all_reduce() / described.step()),
        "usd_per_hour" => Term::stated("C_h", "", "USD", value, described.price() * described.devices()),
        "dollar_per_1k_tokens" => {
            let rate = super::money::of(whole, "X", "tokens_per_sec")?;
            let hour = super::money::of(whole, "C_h", "usd_per_hour")?;
            Term::stated("C_1k", "", "USD", value, hour * 1000.0 / (rate * 3600.0))
        }
        "node_power_w" => whole.inputs.sheet(
            "P",
            "nominal power; the dashboard knows none",
            "W",
            value,
            &["cost", "energy_watts_node"],
        ),
        "hbm_bw_util" => Term::input("u_mem", "it never reads the bandwidth of memory", "", value)
            .from(Origin::Engine("the dashboard has no such figure")),
        _ => return None,
    })
}

struct Reported<'a> {
    whole: &'a Whole<'a>,
    i: Input,
    answer: Answer,
}

impl Reported<'_> {
    fn knob(&self, symbol: &'static str, knob: Knob) -> Term {
        self.whole.inputs.knob(symbol, knob)
    }

    fn batch(&self) -> Term {
        use atlas_config::Mode;
        match self.whole.scenario.mode() {
            Mode::Training => self.knob("B", Knob::Global),
            Mode::Inference => self.knob("B", Knob::Concurrency),
        }
    }

    fn context(&self) -> Term {
        let length = self.knob("ISL", Knob::Prompt) + self.knob("OSL", Knob::Generate);
        Term::derived("S", "tokens of a sequence", "", length)
    }

    /// A number of the workload's `benchboard`, else of the model.
    fn of_model(&self, symbol: &'static str, name: &'static str, field: &'static str, value: f64) -> Term {
        match self.whole.inputs.in_workload(&["benchboard", field]) {
            Some(place) => Term::input(symbol, name, "", value).from(Origin::File(place)),
            None => self.whole.inputs.model(symbol, name, "", value),
        }
    }

    /// A number of the target's `benchboard`, else of the datasheet.
    fn of_hardware(
        &self,
        symbol: &'static str,
        name: &'static str,
        unit: &'static str,
        field: &'static str,
        value: f64,
    ) -> Term {
        self.whole.inputs.sheet(symbol, name, unit, value, &["benchboard", field])
    }

    fn parameters(&self) -> Term {
        self.of_model("P", "parameters, experts and all", "parameters", self.i.parameters)
    }

    fn devices(&self) -> Term {
        let all = self.knob("tp", Knob::Tp) * self.knob("pp", Knob::Pp) * self.knob("dp", Knob::Dp);
        Term::derived("N", "devices that are paid for", "", all)
    }

    fn price(&self) -> Term {
        let of_node = Term::input("n_node", "accelerators of a node", "", self.whole.scenario.accelerators_per_node)
            .from(self.whole.inputs.target(&["accelerators_per_node"], "the files do not say"));
        Term::derived("C_device", "price of one device", "USD", self.knob("C_node", Knob::HourlyUsd) / of_node)
    }

    fn worked(&self) -> Term {
        self.knob("b", Knob::Microbatch)
    }

    fn flops(&self) -> Term {
        let (layers, hidden) = (
            self.of_model("L", "layers", "numLayers", self.i.layers),
            self.of_model("h", "hidden size", "hiddenSize", self.i.hidden),
        );
        let each = Written::from(6.0) * self.parameters() + Written::from(12.0) * layers * hidden.clone() * hidden;
        let token = Term::derived("F", "FLOPs of a token, as it counts them", "", each);
        Term::derived("W", "FLOPs of a step: those of one micro-batch", "", token * self.worked() * self.context())
    }

    fn mfu(&self) -> Term {
        let factor = |symbol: &'static str, name: &'static str, holds: bool, factor: f64| {
            Term::input(symbol, name, "", if holds { factor } else { 1.0 })
                .from(Origin::Engine("a factor of the dashboard's"))
        };
        let base = self.i.base_mfu();
        let base = Term::input("mfu_0", "where it starts: 55 % on TPUs, 35 % elsewhere", "", base)
            .from(Origin::Engine("a constant of the dashboard's"));
        let crowded = self.answer.memory_percent > estimator::CROWDED;
        let product = base
            * factor("k_mem", "memory fuller than 95 %", crowded, CROWDED_FACTOR)
            * factor("k_tp", "tensor parallelism", self.i.tp > 1.0, TENSOR_FACTOR)
            * factor("k_ckpt", "activation checkpointing", self.i.checkpointing, CHECKPOINT_FACTOR);
        Term::derived("MFU", "utilisation", "", product)
    }

    fn all_reduce(&self) -> Term {
        let dp = self.knob("dp", Knob::Dp);
        let link = self.of_hardware(
            "BW",
            "bandwidth of a device's links",
            "GB/s",
            "interconnectBandwidthGBps",
            self.i.link_gb_per_sec,
        );
        if self.i.dp <= 1.0 {
            return Term::input("T_comm", "all-reduce: nothing to reduce on one replica", "ms", 0.0)
                .from(Origin::Engine("one replica"));
        }
        let moved = self.weights_and_gradients() * 2.0 * (dp.clone() - 1.0) / dp / link;
        Term::derived("T_comm", "all-reduce of weights and gradients, in GiB over GB/s", "ms", moved * 1000.0)
    }

    fn step(&self) -> Term {
        let rate = self.of_hardware("R", "rate in 16 bit, for every precision", "TFLOP/s", "fp16Tflops", self.i.tflops);
        let compute = self.flops() * 1000.0 / (rate * 1e12 * self.mfu());
        let compute = Term::derived("T_comp", "arithmetic", "ms", compute);
        Term::derived("T_step", "time of a step", "ms", compute + self.all_reduce())
    }

    fn width(&self) -> Term {
        Term { value: self.i.width, word: None, ..self.knob("w", Knob::Precision) }
    }

    fn weights_and_gradients(&self) -> Term {
        let gib = Written::from(2.0) * self.parameters() * self.width() / self.knob("tp", Knob::Tp) / GIB;
        Term::derived("M_model", "weights and gradients, GiB", "GiB", gib)
    }

    fn memory(&self, value: f64) -> Term {
        let states = Written::from(2.0) * self.parameters() * self.width() / self.knob("tp", Knob::Tp) / GIB;
        let states = Term::derived("M_opt", "two optimizer states, GiB", "GiB", states);
        let layers = self.of_model("L", "layers, 32 by default", "numLayers", self.i.depth());
        let hidden = self.of_model("h", "hidden size, guessed by default", "hiddenSize", self.i.breadth());
        let kept = if self.i.checkpointing { 12.0 / self.i.depth().sqrt() } else { 12.0 };
        let kept = Term::input("k", "numbers kept of each: 12, over √L with checkpointing", "", kept)
            .from(Origin::Engine("the dashboard's rule"));
        let activations = self.worked() * self.context() * hidden * layers * kept * self.width();
        let activations = activations / self.knob("pp", Knob::Pp) / GIB;
        let activations = Term::derived("M_act", "activations, GiB", "GiB", activations);
        Term::stated("M", "", "GB", value, self.weights_and_gradients() + states + activations)
    }
}
