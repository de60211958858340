//! Inputs of the predecessor dashboard's estimator, derived from a target and a workload.

use super::machine::architecture;
use super::{Parts, Phase, Scenario};
use atlas_catalog::datasheet;
use atlas_core::count::Count;
use atlas_core::plan::Format;
use atlas_perf::accelerator::Precision;

/// Hardware and model parameters of the dashboard's estimator; 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Dashboard {
    /// 16-bit compute rate of one device, TFLOP/s.
    pub tflops: f64,
    /// Memory of one device, GB.
    pub memory_gb: f64,
    /// Link bandwidth of a device, sum of both directions, GB/s.
    pub link_gb_per_sec: f64,
    /// Whether the device is a TPU.
    pub tpu: bool,
    /// Whether the device is a GPU.
    pub gpu: bool,
    /// Parameters of the model, including all experts.
    pub parameters: f64,
    /// Hidden size.
    pub hidden: f64,
    /// Layers.
    pub layers: f64,
}

impl Dashboard {
    /// Values stated by an imported scenario, otherwise those of the catalog.
    pub(super) fn of(parts: &Parts) -> Dashboard {
        let (target, workload) = (&parts.target, &parts.workload);
        let profile = target.benchboard.as_ref();
        let device = parts.accelerator.as_ref().map(|sheet| datasheet::accelerator(sheet));
        let rate = device.map_or(0.0, |device| {
            let (bf16, fp16) = (device.peak(Precision::Bf16), device.peak(Precision::Fp16));
            bf16.max(fp16) * 1e-12
        });
        let link = target.interconnect.as_ref().and_then(|link| link.bw_gbytes_per_sec);
        let kind = profile.and_then(|profile| profile.kind.as_deref());
        let sheet = parts.accelerator.as_ref();
        let google = sheet.is_some_and(|sheet| sheet.generation == "TPU");
        let graphics = sheet.is_some_and(|sheet| matches!(sheet.vendor.as_str(), "NVIDIA" | "AMD"));
        let hardware = Dashboard {
            tflops: profile.and_then(|profile| profile.fp16_tflops).unwrap_or(rate),
            memory_gb: profile.and_then(|profile| profile.vram_gb).unwrap_or_default(),
            link_gb_per_sec: profile
                .and_then(|profile| profile.interconnect_gb_per_sec)
                .or(link)
                .unwrap_or_else(|| device.map_or(0.0, |device| 2e-9 * device.link_bw)),
            tpu: kind.map_or(google, |kind| kind == "tpu"),
            gpu: kind.map_or(graphics, |kind| kind == "gpu"),
            ..Dashboard::default()
        };
        match &workload.benchboard {
            Some(model) => Dashboard {
                parameters: model.parameters.unwrap_or_default() * 1e9,
                hidden: model.hidden_size.unwrap_or_default(),
                layers: model.num_layers.unwrap_or_default(),
                ..hardware
            },
            None => architecture(parts).map_or(hardware, |model| Dashboard {
                parameters: model.params(),
                hidden: f64::from(model.hidden),
                layers: model.depth(),
                ..hardware
            }),
        }
    }

    /// Number format stated by the files or the user; BF16 by default.
    #[must_use]
    pub fn format(phase: &Phase) -> Format {
        phase.plan.format.unwrap_or(Format::Bf16)
    }

    /// Bytes per number in that format; `None` for formats that the estimator does not support, for which it returns
    /// NaN.
    #[must_use]
    pub fn width(phase: &Phase) -> Option<f64> {
        match Dashboard::format(phase) {
            Format::Fp32 => Some(4.0),
            Format::Fp16 | Format::Bf16 => Some(2.0),
            Format::Int8 => Some(1.0),
            Format::Tf32 | Format::Fp8 | Format::Mxfp8 | Format::Fp6 | Format::Fp4 | Format::Int4 => None,
        }
    }
}

impl Scenario {
    /// Memory of one device for the dashboard's estimator, GB: the value of the imported scenario, otherwise that of
    /// the target.
    #[must_use]
    pub fn dashboard_memory_gb(&self) -> f64 {
        let stated = self.dashboard.memory_gb;
        if stated > 0.0 { stated } else { self.memory_gb_per_accel }
    }

    /// Describes the inputs of the dashboard's estimator that are missing.
    pub(super) fn missing_dashboard_inputs(&self) -> String {
        let (known, shape) = (&self.dashboard, &self.base.shape);
        let inputs = [
            (known.tflops > 0.0, "`accelerator:`, or `benchboard: { fp16Tflops }`, in the target"),
            (shape.dp <= Count::ONE || known.link_gb_per_sec > 0.0, "the bandwidth of the target's `interconnect`"),
            (known.parameters > 0.0, "`model:`, or `benchboard: { parameters }` in billions, in the workload"),
            (shape.prompt + shape.generate > 0.0, "a sequence of at least one token"),
            (self.dashboard_memory_gb() > 0.0, "the accelerator's memory"),
            (
                Dashboard::width(&self.base).is_some(),
                "precision fp32, fp16, bf16 or int8: the predecessor estimator has no width for others",
            ),
        ];
        let missing: Vec<&str> = inputs.iter().filter(|(known, _)| !known).map(|(_, input)| *input).collect();
        missing.join(", and ")
    }
}
