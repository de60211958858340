//! Generators of documents in the formats of the tools, with random values. None is a recorded run.

/// Random number generator (splitmix64).
pub struct Draw(pub u64);

impl Draw {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn whole(&mut self, from: u64, to: u64) -> u64 {
        from + self.bits() % (to - from)
    }

    pub fn real(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * ((self.bits() >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// Formats a number with thousands separators.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

macro_rules! lines {
    ($out:expr; $($($format:expr),+ ;)*) => { $( let _ = writeln!($out, $($format),+); )* };
}

mod serving;
mod system;
mod training;

pub type Document = (&'static str, fn(&mut Draw) -> String);

pub const DOCUMENTS: &[Document] = &[
    ("megatron-current", training::megatron),
    ("gpt-neox", training::neox),
    ("primus", training::primus),
    ("nemo2", training::nemo2),
    ("nemo1-progress", training::nemo1),
    ("deepspeed-throughput", training::deepspeed_timer),
    ("deepspeed-chat-sft", training::deepspeed_sft),
    ("deepspeed-chat-rlhf", training::deepspeed_rlhf),
    ("torchtitan", training::torchtitan),
    ("nanotron", training::nanotron),
    ("litgpt", training::litgpt),
    ("composer", training::composer),
    ("levanter", training::levanter),
    ("maxtext", training::maxtext),
    ("nanogpt", training::nanogpt),
    ("modded-nanogpt", training::modded),
    ("internevo", training::internevo),
    ("picotron", training::picotron),
    ("nxd-log", training::nxd),
    ("hf-trainer-stdout", training::hf_trainer),
    ("hf-trainer-state", training::hf_state),
    ("mlperf-mllog", training::mllog),
    ("vllm-bench-text", serving::serving_block),
    ("vllm-bench-json", serving::serving_json),
    ("inferencemax-json", serving::inferencemax),
    ("vllm-server", serving::vllm_server),
    ("vllm-metrics", serving::vllm_metrics),
    ("sglang-metrics", serving::sglang_metrics),
    ("trtllm-bench-report", serving::trtllm),
    ("genai-perf-table", serving::genai_table),
    ("genai-perf-csv", serving::genai_csv),
    ("guidellm-text", serving::guidellm),
    ("perf-analyzer-text", serving::perf_analyzer),
    ("llama-bench-md", serving::llama_bench),
    ("llama-batched-bench", serving::llama_batched),
    ("llama-sweep-bench", serving::llama_sweep),
    ("llama-cpp-timings", serving::llama_cpp),
    ("mlperf-loadgen-summary", serving::loadgen),
    ("nccl-tests", system::nccl_tests),
    ("torch-all-reduce-bench", system::all_reduce_bench),
    ("nvidia-smi-csv", system::nvidia_smi),
    ("nvidia-smi-table", system::nvidia_smi_table),
    ("nvidia-smi-dmon", system::dmon),
    ("rocm-smi-concise", system::rocm_smi),
    ("amd-smi-monitor", system::amd_smi),
    ("dcgm-exporter", system::dcgm),
];
