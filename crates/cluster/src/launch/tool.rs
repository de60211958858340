//! The tools that can be launched.

use atlas_config::Mode;
use atlas_plan::scenario::Scenario;

use super::Unsupported;

/// A training framework or serving engine that can be launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Megatron-LM's `pretrain_gpt.py`.
    MegatronLm,
    /// Recipes of Megatron-Bridge.
    MegatronBridge,
    /// NeMo's `megatron_gpt_pretraining.py`.
    Nemo,
    /// Primus with its Megatron back end.
    Primus,
    /// torchtitan.
    Torchtitan,
    /// DeepSpeed under the trainer of Hugging Face.
    DeepSpeed,
    /// FSDP through accelerate, under the trainer of Hugging Face.
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
    /// Every tool with its name on the command line and its name in texts.
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

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Tool::ALL.iter().find(|(tool, ..)| *tool == self).map_or("", |(_, name, _)| name)
    }

    /// Its name in texts.
    #[must_use]
    pub fn label(self) -> &'static str {
        Tool::ALL.iter().find(|(tool, ..)| *tool == self).map_or("", |(_, _, label)| label)
    }

    /// The tool of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Tool> {
        Tool::ALL.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(tool, ..)| *tool)
    }

    /// The software family that it runs, where it is of one.
    #[must_use]
    pub fn family(self) -> Option<&'static str> {
        Some(match self {
            Tool::MegatronLm => "megatron-core",
            Tool::Accelerate => "pytorch-fsdp",
            Tool::Dynamo => return None,
            other => other.name(),
        })
    }

    /// The tool that a scenario's software leads to, if any.
    #[must_use]
    pub fn usual(scenario: &Scenario) -> Option<Tool> {
        Tool::of(scenario).ok()
    }

    /// Whether it trains.
    #[must_use]
    pub fn trains(self) -> bool {
        self < Tool::Vllm
    }

    /// The tool of a scenario's software family.
    pub(crate) fn of(scenario: &Scenario) -> Result<Tool, Unsupported> {
        if scenario.mode() == Mode::Inference && scenario.base.pools().is_some() {
            return Ok(Tool::Dynamo);
        }
        let family = scenario.in_force.name.split('@').next().unwrap_or_default();
        Ok(match family {
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
            other => {
                let names: Vec<&str> = Tool::ALL.iter().map(|(_, name, _)| *name).collect();
                let reason = format!("no launch files for {other}; choose one of {} with --tool", names.join(", "));
                return Err(Unsupported::new("software", reason));
            }
        })
    }
}
