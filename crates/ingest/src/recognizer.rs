//! The interface of recognizers, and the table of all formats.

use serde_json::Value;

use super::format;
use super::lines::Line;
use super::observation::Observation;
use super::reading::{Context, Reading, Setting};

/// Result of offering a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It does not belong to this format.
    No,
    /// It has configuration; other recognizers may read it, too.
    Noted,
    /// It was read.
    Took,
    /// It belongs to this format, but cannot be used, for this reason.
    Skipped(&'static str),
    /// It begins another document and was not read: it is offered again to recognizers that have read nothing.
    Begins,
}

impl Outcome {
    /// Offers the objects of a list one by one: taken, if any of them is.
    pub fn of_entries(list: &[Value], mut offer: impl FnMut(&Value) -> Outcome) -> Outcome {
        let taken = list.iter().filter(|entry| entry.is_object() && offer(entry) == Outcome::Took).count();
        if taken > 0 { Outcome::Took } else { Outcome::No }
    }
}

/// Reads one format, or one family of formats.
pub trait Recognizer: Send {
    /// Trigger words: every relevant line contains one. While [`Recognizer::open`] is true, all lines are offered.
    fn triggers(&self) -> &'static [&'static str];

    /// Offers a line.
    fn line(&mut self, line: Line<'_>) -> Outcome;

    /// Reads a line if it is laid out exactly as one that it read before; returns whether it did. [`Recognizer::line`] reads
    /// such a line alike, but takes longer to find out what it is.
    fn again(&mut self, _line: Line<'_>) -> bool {
        false
    }

    /// Whether a table or block has begun that the next lines belong to.
    fn open(&self) -> bool {
        false
    }

    /// Whether those lines are rows that no other format has: then it is offered them first.
    fn table(&self) -> bool {
        false
    }

    /// A blank line while [`Recognizer::open`]: many tables end with one.
    fn blank(&mut self) {}

    /// Offers a document of JSON: a file of it, or one line.
    fn json(&mut self, _document: &Value, _line: u64) -> Outcome {
        Outcome::No
    }

    /// Whether the line cannot belong to the document read so far: it states another value of a setting after results
    /// were read. The line is then offered again to recognizers that have read nothing.
    fn contradicts(&self, _line: Line<'_>) -> bool {
        false
    }

    /// Whether it reads the state of devices, which is printed together with the results of other tools.
    fn ambient(&self) -> bool {
        false
    }

    /// Whether it reads settings and no results.
    fn only_settings(&self) -> bool {
        false
    }

    /// Settings that hold for the results of other recognizers in the same document.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// Returns the observations since the last call, for logs that are read as they grow.
    fn observed(&mut self, _out: &mut Vec<Observation>) {}

    /// The readings, at the end of the document.
    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading>;
}

/// All formats.
#[must_use]
pub fn all() -> Vec<Box<dyn Recognizer>> {
    vec![
        Box::<format::megatron::Megatron>::default(),
        Box::<format::megatron_bridge::Bridge>::default(),
        Box::<format::nemo::Nemo2>::default(),
        Box::<format::nemo::Nemo1>::default(),
        Box::<format::nemo::DlLogger>::default(),
        Box::<format::deepspeed::DeepSpeed>::default(),
        Box::<format::deepspeed_chat::DeepSpeedChat>::default(),
        Box::<format::torchtitan::TorchTitan>::default(),
        Box::<format::torchtune::TorchTune>::default(),
        Box::<format::verl::Verl>::default(),
        Box::<format::nanotron::Nanotron>::default(),
        Box::<format::litgpt::LitGpt>::default(),
        Box::<format::maxtext::MaxText>::default(),
        Box::<format::nanogpt::ModdedNanoGpt>::default(),
        Box::<format::nanogpt::NanoGpt>::default(),
        Box::<format::internevo::InternEvo>::default(),
        Box::<format::picotron::Picotron>::default(),
        Box::<format::nxd::Nxd>::default(),
        Box::<format::composer::Composer>::default(),
        Box::<format::levanter::Levanter>::default(),
        Box::<format::hf_trainer::HfTrainer>::default(),
        Box::<format::mllog::MlLog>::default(),
        Box::<format::wandb::Wandb>::default(),
        Box::<format::benchmark::Benchmark>::default(),
        Box::<format::perf_analyzer::PerfAnalyzer>::default(),
        Box::<format::serving_block::ServingBlock>::default(),
        Box::<format::inferencemax::InferenceMax>::default(),
        Box::<format::serving_json::ServingJson>::default(),
        Box::<format::serving_server::VllmServer>::default(),
        Box::<format::serving_server::SglangServer>::default(),
        Box::<format::serving_metrics::ServingMetrics>::default(),
        Box::<format::sglang_batch::OneBatch>::default(),
        Box::<format::trtllm::TrtLlm>::default(),
        Box::<format::trtllm_iterations::TrtLlmIterations>::default(),
        Box::<format::genai_perf::GenAiPerf>::default(),
        Box::<format::llmperf::LlmPerf>::default(),
        Box::<format::llama_batched::LlamaBatched>::default(),
        Box::<format::llama_bench::LlamaBench>::default(),
        // Before the timings of other programs of llama.cpp, which have no slots.
        Box::<format::llama_server::LlamaServer>::default(),
        Box::<format::llama_cpp::LlamaCpp>::default(),
        Box::<format::guidellm::GuideLlm>::default(),
        Box::<format::guidellm_console::GuideLlmConsole>::default(),
        Box::<format::serving_sweep::Sweep>::default(),
        Box::<format::mlperf_inference::LoadGen>::default(),
        Box::<format::torch_all_reduce::AllReduceBench>::default(),
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
