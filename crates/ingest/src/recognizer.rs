//! The trait that recognizers of log formats implement, and the table of all formats.

use serde_json::Value;

use super::format;
use super::lines::Line;
use super::observation::Observation;
use super::reading::{Context, Reading, Setting};

/// Result of offering a line or document to a recognizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The line does not belong to this format.
    NotRecognized,
    /// The line contains configuration. Other recognizers may read it, too.
    Settings,
    /// The line was read.
    Recognized,
    /// The line belongs to this format, but cannot be used, for this reason.
    Unusable(&'static str),
    /// The line starts another document and was not read. It is offered again to recognizers in their initial state.
    NewDocument,
}

impl Outcome {
    /// Offers the objects of a list one by one. Returns [`Outcome::Recognized`] if any of them was read.
    pub fn of_entries(list: &[Value], mut offer: impl FnMut(&Value) -> Outcome) -> Outcome {
        let taken = list.iter().filter(|entry| entry.is_object() && offer(entry) == Outcome::Recognized).count();
        if taken > 0 { Outcome::Recognized } else { Outcome::NotRecognized }
    }
}

/// Recognizer of one format, or of a family of formats.
pub trait Recognizer: Send {
    /// Trigger words. Every relevant line contains one of them. While [`Recognizer::in_block`] is true, all lines are
    /// offered.
    fn triggers(&self) -> &'static [&'static str];

    /// Offers a line.
    fn line(&mut self, line: Line<'_>) -> Outcome;

    /// Reads a line if it has exactly the layout of an earlier one, and returns whether it did. This is a fast path:
    /// [`Recognizer::line`] has the same effect on such a line.
    fn read_same_layout(&mut self, _line: Line<'_>) -> bool {
        false
    }

    /// Whether a table or block has started that the next lines may belong to.
    fn in_block(&self) -> bool {
        self.in_table()
    }

    /// Whether the next lines are rows of a table that no other format has. They are then offered to this recognizer
    /// first.
    fn in_table(&self) -> bool {
        false
    }

    /// Handles a blank line while [`Recognizer::in_block`] is true. Many tables end with one.
    fn blank_line(&mut self) {}

    /// Offers a JSON document: a whole file, or one line.
    fn json(&mut self, _document: &Value, _line: u64) -> Outcome {
        Outcome::NotRecognized
    }

    /// Whether the line cannot belong to the document read so far, because it states another value of a setting after
    /// results were read. The line is then offered again to recognizers in their initial state.
    fn contradicts(&self, _line: Line<'_>) -> bool {
        false
    }

    /// Whether this format reports the state of devices, which may be interleaved with the output of other tools.
    fn reports_device_state(&self) -> bool {
        false
    }

    /// Whether the recognizer reads settings only, no results.
    fn reads_settings_only(&self) -> bool {
        false
    }

    /// Settings that apply to the results of other recognizers in the same document.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// Appends the observations since the last call to `out`, for logs that are read while they grow.
    fn append_observations(&mut self, _out: &mut Vec<Observation>) {}

    /// The readings, at the end of the document.
    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading>;
}

/// Creates recognizers of all formats.
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
        // Must precede `LlamaCpp`, the timings of other llama.cpp programs, which have no slots.
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
