//! What a format has to do to be recognised, and the table of all formats.

use serde_json::Value;

use super::format;
use super::lines::Line;
use super::reading::{Config, Context, Reading};

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is not one of this format.
    No,
    /// It holds configuration; others may want it as well.
    Noted,
    /// It was read.
    Took,
    /// It is one of this format, but cannot be used, for this reason.
    Skipped(&'static str),
}

/// One format, or one family of formats that a line tells apart.
pub trait Recogniser {
    /// Words one of which every line of interest holds. While [`Recogniser::open`] says so, all lines are offered.
    fn triggers(&self) -> &'static [&'static str];

    /// Offers a line.
    fn line(&mut self, line: Line<'_>) -> Outcome;

    /// Whether the lines that follow belong to a table or block that has begun.
    fn open(&self) -> bool {
        false
    }

    /// Whether those are rows that it tells from all else: then it is asked first, and others only where it says no.
    fn table(&self) -> bool {
        false
    }

    /// Offers a document of JSON: a file of it, or one line.
    fn json(&mut self, _document: &Value, _line: u64) -> Outcome {
        Outcome::No
    }

    /// Configuration that holds for whatever else the file tells.
    fn settings(&self) -> Option<Config> {
        None
    }

    /// What was read, at the end of the file.
    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading>;
}

/// Every format there is.
#[must_use]
pub fn all() -> Vec<Box<dyn Recogniser>> {
    vec![
        Box::<format::megatron::Megatron>::default(),
        Box::<format::megatron_bridge::Bridge>::default(),
        Box::<format::nemo::Nemo2>::default(),
        Box::<format::nemo::Nemo1>::default(),
        Box::<format::nemo::DlLogger>::default(),
        Box::<format::deepspeed::DeepSpeed>::default(),
        Box::<format::torchtitan::TorchTitan>::default(),
        Box::<format::nanotron::Nanotron>::default(),
        Box::<format::litgpt::LitGpt>::default(),
        Box::<format::maxtext::MaxText>::default(),
        Box::<format::nanogpt::ModdedNanoGpt>::default(),
        Box::<format::nanogpt::NanoGpt>::default(),
        Box::<format::internevo::InternEvo>::default(),
        Box::<format::hf_trainer::HfTrainer>::default(),
        Box::<format::mllog::MlLog>::default(),
        Box::<format::benchmark::Benchmark>::default(),
        Box::<format::serving_block::ServingBlock>::default(),
        Box::<format::serving_json::ServingJson>::default(),
        Box::<format::serving_server::VllmServer>::default(),
        Box::<format::serving_server::SglangServer>::default(),
        Box::<format::serving_metrics::ServingMetrics>::default(),
        Box::<format::sglang_batch::OneBatch>::default(),
        Box::<format::trtllm::TrtLlm>::default(),
        Box::<format::genai_perf::GenAiPerf>::default(),
        Box::<format::llmperf::LlmPerf>::default(),
        Box::<format::llama_bench::LlamaBench>::default(),
        Box::<format::llama_cpp::LlamaCpp>::default(),
        Box::<format::guidellm::GuideLlm>::default(),
        Box::<format::serving_sweep::Sweep>::default(),
        Box::<format::mlperf_inference::LoadGen>::default(),
        Box::<format::nccl_tests::NcclTests>::default(),
        Box::<format::nvidia_smi::Query>::default(),
        Box::<format::nvidia_smi_table::Table>::default(),
        Box::<format::nvidia_smi_report::Report>::default(),
        Box::<format::dmon::Dmon>::default(),
        Box::<format::amd_gpu::RocmSmi>::default(),
        Box::<format::amd_gpu::AmdSmi>::default(),
        Box::<format::dcgm::Exporter>::default(),
        Box::<format::energy::Zeus>::default(),
        Box::<format::energy::CodeCarbon>::default(),
        Box::<format::settings::Settings>::default(),
    ]
}
