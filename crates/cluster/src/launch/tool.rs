//! The tools for which launch files can be created.

use atlas_catalog::software::Software;
use atlas_config::Mode;
use atlas_plan::scenario::Scenario;

use super::Unsupported;

/// A training framework or serving engine for which launch files can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Megatron-LM's `pretrain_gpt.py`.
    MegatronLm,
    /// Recipes of Megatron-Bridge.
    MegatronBridge,
    /// NeMo's `megatron_gpt_pretraining.py`.
    Nemo,
    /// Primus with its Megatron backend.
    Primus,
    /// torchtitan.
    Torchtitan,
    /// DeepSpeed with the Hugging Face Trainer.
    DeepSpeed,
    /// FSDP through Accelerate, with the Hugging Face Trainer.
    Accelerate,
    /// MaxText.
    MaxText,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// TensorRT-LLM.
    TensorRtLlm,
    /// llama.cpp's server.
    LlamaCpp,
    /// Dynamo with separate prefill and decode workers.
    Dynamo,
}

impl Tool {
    /// All tools, with their names on the command line and in text.
    pub const ALL: [(Tool, &'static str, &'static str); 13] = [
        (Tool::MegatronLm, "megatron-lm", "Megatron-LM"),
        (Tool::MegatronBridge, "megatron-bridge", "Megatron-Bridge"),
        (Tool::Nemo, "nemo", "NeMo"),
        (Tool::Primus, "primus", "Primus"),
        (Tool::Torchtitan, "torchtitan", "torchtitan"),
        (Tool::DeepSpeed, "deepspeed", "DeepSpeed"),
        (Tool::Accelerate, "accelerate", "accelerate FSDP"),
        (Tool::MaxText, "maxtext", "MaxText"),
        (Tool::Vllm, "vllm", "vLLM"),
        (Tool::Sglang, "sglang", "SGLang"),
        (Tool::TensorRtLlm, "tensorrt-llm", "TensorRT-LLM"),
        (Tool::LlamaCpp, "llama.cpp", "llama.cpp"),
        (Tool::Dynamo, "dynamo", "Dynamo"),
    ];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Tool::ALL.iter().find(|(tool, ..)| *tool == self).map_or("", |(_, name, _)| name)
    }

    /// Name in text.
    #[must_use]
    pub fn label(self) -> &'static str {
        Tool::ALL.iter().find(|(tool, ..)| *tool == self).map_or("", |(_, _, label)| label)
    }

    /// Returns the tool with this command-line name.
    #[must_use]
    pub fn named(name: &str) -> Option<Tool> {
        Tool::ALL.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(tool, ..)| *tool)
    }

    /// The software family of the tool, if it has exactly one.
    #[must_use]
    pub fn family(self) -> Option<&'static str> {
        Some(match self {
            Tool::MegatronLm => "megatron-core",
            Tool::Accelerate => "pytorch-fsdp",
            Tool::Dynamo => return None,
            other => other.name(),
        })
    }

    /// The default tool for the software of a scenario, if there is one.
    #[must_use]
    pub fn default_for(scenario: &Scenario) -> Option<Tool> {
        Tool::of(scenario)
    }

    /// Whether the tool runs on accelerators of a vendor.
    pub(crate) fn supports(self, vendor: &str, scenario: &Scenario) -> bool {
        let family = self.family().unwrap_or(&scenario.active_software.name);
        Software::find(family).is_none_or(|found| !found.family.is_unsupported_by_vendor(vendor))
    }

    /// Why no tool is chosen by default, with the tools that could run the scenario.
    pub(crate) fn missing(vendor: &str, scenario: &Scenario) -> Unsupported {
        let family = scenario.active_software.name.split('@').next().unwrap_or_default();
        let trains = scenario.mode() == Mode::Training;
        let able = Tool::ALL
            .iter()
            .filter(|(tool, ..)| *tool != Tool::Dynamo && tool.trains() == trains && tool.supports(vendor, scenario));
        let names: Vec<&str> = able.map(|(_, name, _)| *name).collect();
        let choices = match names.as_slice() {
            [] => format!("no other tool supports {vendor} accelerators"),
            names => format!("choose one of {} with --tool", names.join(", ")),
        };
        Unsupported::new("software", format!("no launch files for {family}; {choices}"))
    }

    /// Whether the tool trains.
    #[must_use]
    pub fn trains(self) -> bool {
        self < Tool::Vllm
    }

    /// Returns the default tool for the software of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Option<Tool> {
        if scenario.mode() == Mode::Inference && scenario.base.pools().is_some() {
            return Some(Tool::Dynamo);
        }
        let family = scenario.active_software.name.split('@').next().unwrap_or_default();
        Some(match family {
            "megatron-core" | "megatron-lm-legacy" => Tool::MegatronLm,
            "megatron-bridge" => Tool::MegatronBridge,
            "nemo" => Tool::Nemo,
            "primus" => Tool::Primus,
            "torchtitan" => Tool::Torchtitan,
            "deepspeed" => Tool::DeepSpeed,
            "pytorch-fsdp" | "pytorch" | "pytorch-ddp" | "hf-trainer" | "generic-training" => Tool::Accelerate,
            "maxtext" => Tool::MaxText,
            "vllm" | "generic-serving" => Tool::Vllm,
            "sglang" => Tool::Sglang,
            "tensorrt-llm" => Tool::TensorRtLlm,
            "llama.cpp" => Tool::LlamaCpp,
            _ => return None,
        })
    }
}
