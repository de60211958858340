//! Random scenarios, as users could define them.

use std::fmt::Write as _;

use atlas_config::Mode;
use atlas_config::library::Library;
use atlas_plan::engine::estimate;
use atlas_plan::estimate::Estimate;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides};
use atlas_plan::scenario::{Parts, Scenario};

/// Random numbers (SplitMix64), reproducible by seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in the range 0 to 1, excluding 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn chance(&mut self, share: f64) -> bool {
        self.share() < share
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get((self.share() * all.len() as f64) as usize)
    }

    /// An integer between two bounds, uniform over the orders of magnitude.
    fn whole(&mut self, low: f64, high: f64) -> f64 {
        (low * (high / low).powf(self.share())).round().clamp(low, high)
    }
}

/// A scenario with its estimate.
pub(super) struct Drawn {
    pub(super) parts: Parts,
    /// Knobs that were set, as on the command line.
    pub(super) set: Vec<(Knob, String)>,
    pub(super) scenario: Scenario,
    pub(super) answer: Estimate,
}

const POWERS: [&str; 5] = ["1", "2", "4", "8", "16"];
const SWITCH: [&str; 2] = ["on", "off"];

/// Training knobs with their possible values, and the probability that each is set.
const TRAINING: [(Knob, &[&str], f64); 19] = [
    (Knob::Tp, &POWERS, 0.5),
    (Knob::Pp, &POWERS, 0.4),
    (Knob::Vpp, &["1", "2", "4", "5"], 0.2),
    (Knob::Cp, &["1", "2", "4"], 0.2),
    (Knob::Ep, &["1", "2", "4", "8", "16"], 0.4),
    (Knob::Microbatch, &["1", "2", "3", "4", "8"], 0.4),
    (Knob::Global, &["32", "64", "128", "256", "512", "1024", "2048"], 0.5),
    (Knob::Precision, &["bf16", "fp16", "fp8", "mxfp8", "fp4"], 0.4),
    (Knob::Sharding, &["none", "zero1", "zero2", "zero3"], 0.5),
    (Knob::Recompute, &["auto", "none", "selective", "full"], 0.4),
    (Knob::PipelineSchedule, &["1f1b", "gpipe", "zero-bubble"], 0.2),
    (Knob::Optimizer, &["adam", "adam-8bit", "sgd", "muon", "adafactor"], 0.3),
    (Knob::Overlap, &SWITCH, 0.2),
    (Knob::CpuOffload, &["none", "optimizer", "parameters"], 0.1),
    (Knob::Trained, &["all", "lora"], 0.1),
    (Knob::AttentionKernel, &["unfused", "flash1", "flash2", "native"], 0.1),
    (Knob::ExpertImbalance, &["1", "1.2", "2"], 0.2),
    (Knob::NetworkGbps, &["50", "100", "400", "800"], 0.2),
    (Knob::Oversubscription, &["1", "2", "4"], 0.1),
];

/// Serving knobs, in the same form.
const SERVING: [(Knob, &[&str], f64); 20] = [
    (Knob::Tp, &POWERS, 0.5),
    (Knob::Pp, &["1", "2", "4"], 0.2),
    (Knob::Ep, &POWERS, 0.3),
    (Knob::AttentionDp, &["1", "2", "8"], 0.2),
    (Knob::Precision, &["bf16", "fp8", "fp4", "int4", "int8"], 0.5),
    (Knob::KvPrecision, &["bf16", "fp8"], 0.3),
    (Knob::MaxNumSeqs, &["16", "128", "1024"], 0.2),
    (Knob::MaxNumBatchedTokens, &["512", "2048", "16384"], 0.2),
    (Knob::GpuMemoryUtilization, &["0.7", "0.9", "0.95"], 0.2),
    (Knob::ChunkedPrefill, &SWITCH, 0.2),
    (Knob::CudaGraphs, &SWITCH, 0.1),
    (Knob::PrefixHit, &["0", "0.3", "0.9"], 0.2),
    (Knob::DraftTokens, &["0", "1", "3"], 0.2),
    (Knob::DraftMethod, &["mtp", "eagle3", "draft-model", "ngram"], 0.1),
    (Knob::RequestRate, &["0.1", "1", "10", "100"], 0.2),
    (Knob::Load, &["closed", "open", "burst", "static", "prefill-only"], 0.1),
    (Knob::RedundantExperts, &["0", "32"], 0.1),
    (Knob::TwoBatchOverlap, &SWITCH, 0.1),
    (Knob::Software, &["vllm", "sglang", "tensorrt-llm", "llama.cpp"], 0.3),
    (Knob::GenerateCv, &["0", "1"], 0.1),
];

impl Drawn {
    /// Draws a scenario; `None` if it does not resolve for an engine that models hardware.
    pub(super) fn new(library: &Library, random: &mut Random) -> Option<Drawn> {
        let target = random.one_of(library.targets())?;
        let workload = random.one_of(library.workloads())?;
        let mut parts = Parts::of(library, target, workload).ok()?;
        if random.chance(0.5) && parts.model.is_some() {
            let models = library.catalog().models();
            // Models without a context length, such as vision models, are excluded.
            let model = random.one_of(&models).cloned();
            parts.model = model.filter(|model| model.max_context().is_some()).or(parts.model);
        }
        let training = workload.shape.mode == Mode::Training;
        let mut set = Vec::new();
        let knobs: &[(Knob, &[&str], f64)] = if training { &TRAINING } else { &SERVING };
        for (knob, values, often) in knobs {
            if random.chance(*often) {
                set.push((*knob, (*random.one_of(values)?).to_owned()));
            }
        }
        if training && random.chance(0.5) {
            set.push((Knob::Prompt, random.whole(256.0, 65_536.0).to_string()));
        }
        if !training {
            for (knob, low, high) in
                [(Knob::Prompt, 16.0, 32_768.0), (Knob::Generate, 4.0, 8192.0), (Knob::Concurrency, 1.0, 8192.0)]
            {
                if random.chance(0.6) {
                    set.push((knob, random.whole(low, high).to_string()));
                }
            }
        }
        Drawn::with(parts, set)
    }

    /// Resolves and estimates a scenario with these knobs.
    fn with(parts: Parts, set: Vec<(Knob, String)>) -> Option<Drawn> {
        let mut overrides = Overrides::new();
        for (knob, value) in &set {
            overrides.insert(*knob, knob.parse(value, parts.fabrics()).ok()?);
        }
        let mut scenario =
            Scenario::resolve(&parts, &overrides).ok().filter(|scenario| scenario.engine.models_hardware())?;
        // A schedule only sums up phases of the kind that is checked here.
        scenario.phases.clear();
        let answer = estimate(&scenario);
        answer.detail?;
        Some(Drawn { parts, set, scenario, answer })
    }

    /// The same scenario with one knob changed.
    pub(super) fn but(&self, knob: Knob, value: &str) -> Option<Drawn> {
        let mut set: Vec<(Knob, String)> = self.set.iter().filter(|(other, _)| *other != knob).cloned().collect();
        set.push((knob, value.to_owned()));
        Drawn::with(self.parts.clone(), set)
    }

    /// Whether it is a training scenario.
    pub(super) fn trains(&self) -> bool {
        self.scenario.mode() == Mode::Training
    }

    /// Command that reproduces the estimate.
    pub(super) fn command(&self) -> String {
        let model = self.parts.model.as_ref().filter(|model| {
            let own = self.parts.workload.model.as_ref();
            own.is_none_or(|own| !model.id.eq_ignore_ascii_case(own))
        });
        let model = model.map(|model| format!(":model={}", model.id)).unwrap_or_default();
        let (target, workload) = (&self.parts.target.name, &self.parts.workload.name);
        let mut text = format!("atlas run --target {target} --workload {workload}{model}");
        for (knob, value) in &self.set {
            let _ = write!(text, " --set {}={value}", knob.name());
        }
        text
    }
}
