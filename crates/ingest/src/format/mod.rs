//! Recognizers of log formats, one module per format or family of formats.

pub mod amd_gpu;
pub mod benchmark;
pub mod composer;
pub mod dcgm;
pub mod deepspeed;
pub mod deepspeed_chat;
pub mod dmon;
pub mod energy;
pub mod genai_perf;
pub mod guidellm;
pub mod guidellm_console;
pub mod hf_trainer;
pub mod inferencemax;
pub mod internevo;
pub mod levanter;
pub mod litgpt;
pub mod llama_batched;
pub mod llama_bench;
pub mod llama_cpp;
pub mod llama_server;
pub mod llamafactory;
pub mod llmperf;
pub mod maxtext;
pub mod megatron;
pub mod megatron_bridge;
mod megatron_layout;
mod megatron_surroundings;
pub mod mllog;
pub mod mlperf_inference;
pub mod nanogpt;
pub mod nanotron;
pub mod nccl_tests;
pub mod nemo;
pub mod nvidia_smi;
mod nvidia_smi_devices;
pub mod nvidia_smi_report;
pub mod nvidia_smi_table;
pub mod nxd;
pub mod perf_analyzer;
pub mod picotron;
pub mod power;
pub mod serving_block;
pub mod serving_json;
pub mod serving_metrics;
pub mod serving_server;
pub mod serving_sweep;
pub mod settings;
pub mod sglang_batch;
pub mod torch_all_reduce;
pub mod torchtitan;
pub mod torchtune;
pub mod trtllm;
pub mod trtllm_iterations;
pub mod verl;
pub mod wandb;

use crate::recognizer::Recognizer;

/// Creates recognizers of all formats.
#[must_use]
pub fn all() -> Vec<Box<dyn Recognizer>> {
    vec![
        Box::<megatron::Megatron>::default(),
        Box::<megatron_bridge::Bridge>::default(),
        Box::<nemo::Nemo2>::default(),
        Box::<nemo::Nemo1>::default(),
        Box::<nemo::DlLogger>::default(),
        Box::<deepspeed::DeepSpeed>::default(),
        Box::<deepspeed_chat::DeepSpeedChat>::default(),
        Box::<torchtitan::TorchTitan>::default(),
        Box::<torchtune::TorchTune>::default(),
        Box::<verl::Verl>::default(),
        Box::<nanotron::Nanotron>::default(),
        Box::<litgpt::LitGpt>::default(),
        Box::<maxtext::MaxText>::default(),
        Box::<nanogpt::ModdedNanoGpt>::default(),
        Box::<nanogpt::NanoGpt>::default(),
        Box::<internevo::InternEvo>::default(),
        Box::<picotron::Picotron>::default(),
        Box::<nxd::Nxd>::default(),
        Box::<composer::Composer>::default(),
        Box::<levanter::Levanter>::default(),
        Box::<hf_trainer::HfTrainer>::default(),
        Box::<llamafactory::LlamaFactory>::default(),
        Box::<mllog::MlLog>::default(),
        Box::<wandb::Wandb>::default(),
        Box::<benchmark::Benchmark>::default(),
        Box::<perf_analyzer::PerfAnalyzer>::default(),
        Box::<serving_block::ServingBlock>::default(),
        Box::<inferencemax::InferenceMax>::default(),
        Box::<serving_json::ServingJson>::default(),
        Box::<serving_server::VllmServer>::default(),
        Box::<serving_server::SglangServer>::default(),
        Box::<serving_metrics::ServingMetrics>::default(),
        Box::<sglang_batch::OneBatch>::default(),
        Box::<trtllm::TrtLlm>::default(),
        Box::<trtllm_iterations::TrtLlmIterations>::default(),
        Box::<genai_perf::GenAiPerf>::default(),
        Box::<llmperf::LlmPerf>::default(),
        Box::<llama_batched::LlamaBatched>::default(),
        Box::<llama_bench::LlamaBench>::default(),
        // Must precede `LlamaCpp`, the timings of other llama.cpp programs, which have no slots.
        Box::<llama_server::LlamaServer>::default(),
        Box::<llama_cpp::LlamaCpp>::default(),
        Box::<guidellm::GuideLlm>::default(),
        Box::<guidellm_console::GuideLlmConsole>::default(),
        Box::<serving_sweep::Sweep>::default(),
        Box::<mlperf_inference::LoadGen>::default(),
        Box::<torch_all_reduce::AllReduceBench>::default(),
        Box::<nccl_tests::NcclTests>::default(),
        Box::<nvidia_smi::Query>::default(),
        Box::<nvidia_smi_table::Table>::default(),
        Box::<nvidia_smi_report::Report>::default(),
        Box::<dmon::Dmon>::default(),
        Box::<amd_gpu::RocmSmi>::default(),
        Box::<amd_gpu::AmdSmi>::default(),
        Box::<dcgm::Exporter>::default(),
        Box::<energy::Zeus>::default(),
        Box::<energy::CodeCarbon>::default(),
        Box::<settings::Settings>::default(),
    ]
}
