//! Derivations for the predecessor dashboard's estimator: its own equations, evaluated over terms instead of numbers.

use super::expression::Written;
use super::{Context, Origin, Term};
use crate::engine::benchboard::input;
use crate::estimate::MetricId;
use crate::knob::Knob;
use atlas_legacy::benchboard::{Input, estimate};

/// Derivation of a metric; `None` for metrics that all engines derive in the same way.
pub(super) fn explain(whole: &Context<'_>, id: MetricId, value: f64) -> Option<Term> {
    let described = Reported { whole, i: input(whole.scenario, &whole.scenario.base) };
    let answer = estimate(&described.input());
    Some(match id {
        MetricId::TokensPerSec => Term::stated("X", "", "tok/s", value, answer.tokens_per_sec),
        MetricId::StepTimeMs => Term::stated("T_step", "time of a step", "ms", value, answer.step_ms()),
        MetricId::FlopUtilization => Term::stated("MFU", "utilization", "", value, answer.mfu),
        MetricId::PeakMemGb => Term::stated("M", "", "GB", value, answer.total_gib()),
        MetricId::CommComputeRatio => Term::stated("share", "", "", value, answer.communication_percent / 100.0),
        MetricId::UsdPerHour => Term::stated("C_h", "", "USD", value, answer.usd_per_hour),
        MetricId::DollarPer1kTokens => Term::stated("C_1k", "", "USD", value, answer.usd_per_million / 1000.0),
        MetricId::NodePowerW => whole.inputs.sheet(
            "P",
            "nominal power; the dashboard does not model power",
            "W",
            value,
            &["cost", "energy_watts_node"],
        ),
        MetricId::HbmBwUtil => Term::input("u_mem", "the dashboard ignores memory bandwidth", "", value)
            .from(Origin::Engine("the dashboard has no such metric")),
        _ => return None,
    })
}

struct Reported<'a> {
    whole: &'a Context<'a>,
    i: Input,
}

impl Reported<'_> {
    /// Input of the estimator, with each number as a term with its origin.
    fn input(&self) -> Input<Written> {
        let i = &self.i;
        let scenario = self.whole.scenario;
        let context = self.knob("ISL", Knob::Prompt) + self.knob("OSL", Knob::Generate);
        let of_node = Term::input("n_node", "accelerators per node", "", f64::from(scenario.accelerators_per_node))
            .from(self.whole.inputs.target(&["accelerators_per_node"], "not stated in the files"));
        let price = self.knob("C_node", Knob::HourlyUsd) / of_node;
        let link = "interconnectBandwidthGBps";
        let rate = "rate in 16 bit, for every precision";
        Input {
            parameters: self.of_model("P", "parameters, including all experts", "parameters", i.parameters).into(),
            hidden: self.of_model("h", "hidden size", "hiddenSize", i.hidden).into(),
            layers: self.of_model("L", "layers", "numLayers", i.layers).into(),
            context: Term::derived("S", "tokens per sequence", "", context).into(),
            bytes_per_value: Term { value: i.bytes_per_value, text: None, ..self.knob("w", Knob::Precision) }.into(),
            batch: self.batch().into(),
            micro_batch: Term { value: i.micro_batch, ..self.knob("b", Knob::Microbatch) }.into(),
            dp: self.knob("dp", Knob::Dp).into(),
            tp: self.knob("tp", Knob::Tp).into(),
            pp: self.knob("pp", Knob::Pp).into(),
            checkpointing: i.checkpointing,
            tflops: self.of_hardware("R", rate, "TFLOP/s", "fp16Tflops", i.tflops).into(),
            memory_gb: Term::input("M_has", "device memory", "GB", i.memory_gb)
                .from(self.whole.inputs.target(&["memory_gb_per_accel"], "of the accelerator"))
                .into(),
            link_gb_per_sec: self
                .of_hardware("BW", "link bandwidth of a device", "GB/s", link, i.link_gb_per_sec)
                .into(),
            usd_per_hour: Term::derived("C_device", "price of one device", "USD", price).into(),
            tpu: i.tpu,
            gpu: i.gpu,
        }
    }

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

    /// Value of the workload's `benchboard` field, otherwise of the model.
    fn of_model(&self, symbol: &'static str, name: &'static str, field: &'static str, value: f64) -> Term {
        match self.whole.inputs.in_workload(&["benchboard", field]) {
            Some(place) => Term::input(symbol, name, "", value).from(Origin::File(place)),
            None => self.whole.inputs.model(symbol, name, "", value),
        }
    }

    /// Value of the target's `benchboard` field, otherwise of the datasheet.
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
}
