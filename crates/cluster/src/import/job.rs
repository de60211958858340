//! The typed view of what was read.

use serde_json::Value as Json;

use super::fields::Fields;
use super::origin::Origin;

/// A value and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub at: Origin,
    /// True if it was computed from other values, or read from a comment or a name.
    pub implied: bool,
}

/// What the job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Trains or fine-tunes.
    Training,
    /// Answers requests.
    Serving,
    /// Sends requests.
    Benchmark,
    /// Starts a server and sends requests to it.
    ServingAndBenchmark,
}

/// The precision of matrix multiplications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// 32 bit.
    Fp32,
    /// IEEE half.
    Fp16,
    /// bfloat16.
    Bf16,
    /// 8 bit with per-tensor or block scales.
    Fp8,
    /// 8 bit with microscaling.
    Mxfp8,
    /// 4 bit.
    Fp4,
    /// Chosen by the tool from several.
    Mixed,
}

/// What data-parallel ranks share of the model's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    /// Every rank holds all.
    None,
    /// Optimizer state.
    Zero1,
    /// Optimizer state and gradients.
    Zero2,
    /// Parameters too.
    Zero3,
    /// Sharded inside a group, replicated between groups.
    Hsdp,
}

/// Activations that are computed again in the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recompute {
    /// None.
    None,
    /// Some.
    Selective,
    /// All.
    Full,
}

/// Reads one value of its type from JSON.
trait Word: Sized {
    fn read(v: &Json) -> Option<Self>;
}

impl Word for String {
    fn read(v: &Json) -> Option<Self> {
        v.as_str().map(str::to_owned)
    }
}

impl Word for u64 {
    fn read(v: &Json) -> Option<Self> {
        v.as_u64()
    }
}

impl Word for i64 {
    fn read(v: &Json) -> Option<Self> {
        v.as_i64()
    }
}

impl Word for f64 {
    fn read(v: &Json) -> Option<Self> {
        v.as_f64()
    }
}

impl Word for bool {
    fn read(v: &Json) -> Option<Self> {
        v.as_bool()
    }
}

impl Word for JobKind {
    fn read(v: &Json) -> Option<Self> {
        Some(match v.as_str()? {
            "training" => JobKind::Training,
            "serving" => JobKind::Serving,
            "benchmark" => JobKind::Benchmark,
            "serving+benchmark" => JobKind::ServingAndBenchmark,
            _ => return None,
        })
    }
}

impl Word for Precision {
    fn read(v: &Json) -> Option<Self> {
        Some(match v.as_str()? {
            "fp32" => Precision::Fp32,
            "fp16" => Precision::Fp16,
            "bf16" => Precision::Bf16,
            "fp8" => Precision::Fp8,
            "mxfp8" => Precision::Mxfp8,
            "fp4" => Precision::Fp4,
            "mixed" => Precision::Mixed,
            _ => return None,
        })
    }
}

impl Word for Sharding {
    fn read(v: &Json) -> Option<Self> {
        Some(match v.as_str()? {
            "none" => Sharding::None,
            "zero1" => Sharding::Zero1,
            "zero2" => Sharding::Zero2,
            "zero3" => Sharding::Zero3,
            "hsdp" => Sharding::Hsdp,
            _ => return None,
        })
    }
}

impl Word for Recompute {
    fn read(v: &Json) -> Option<Self> {
        Some(match v.as_str()? {
            "none" => Recompute::None,
            "selective" => Recompute::Selective,
            "full" => Recompute::Full,
            _ => return None,
        })
    }
}

macro_rules! job {
    ($($(#[$doc:meta])* $name:ident: $ty:ty,)*) => {
        /// A job as the files describe it; what they do not state is absent.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Job {
            $($(#[$doc])* pub $name: Option<Stated<$ty>>,)*
        }

        impl Job {
            pub(crate) fn from_fields(f: &Fields, origin: &dyn Fn(u32) -> Origin) -> Self {
                Job {
                    $($name: f.entry(stringify!($name)).and_then(|e| {
                        let value = <$ty as Word>::read(&e.value)?;
                        Some(Stated { value, at: origin(e.at), implied: e.implied })
                    }),)*
                }
            }
        }
    };
}

job! {
    /// What the job does.
    kind: JobKind,
    /// The tool, such as `megatron-lm` or `vllm`.
    framework: String,
    /// The model's identity.
    model: String,
    /// The accelerator as the files name it.
    accelerator: String,
    /// All accelerators of the job, replicas and roles included.
    num_accelerators: u64,
    /// Nodes of the job.
    nodes: u64,
    /// Accelerators on one node.
    accelerators_per_node: u64,
    /// Equal servers.
    replicas: u64,
    /// Accelerators of one server.
    accelerators_per_replica: u64,
    /// Tensor parallelism.
    tp: u64,
    /// Pipeline parallelism.
    pp: u64,
    /// Virtual stages on a pipeline rank.
    vpp: u64,
    /// Context parallelism.
    cp: u64,
    /// Expert parallelism.
    ep: u64,
    /// Data parallelism: replicas times shards in training, engine ranks in serving.
    dp: u64,
    /// Ulysses sequence parallelism.
    ulysses_sp: u64,
    /// Megatron's sequence parallelism.
    sequence_parallel: bool,
    /// Data parallelism of attention inside the tensor group.
    attention_dp: bool,
    /// Sequences of a data-parallel rank in one pass.
    micro_batch: u64,
    /// Sequences of one optimizer step.
    global_batch: u64,
    /// Passes of one optimizer step.
    grad_accum: u64,
    /// Tokens of a training sequence.
    seq_len: u64,
    /// Precision of matrix multiplications.
    precision: Precision,
    /// Precision of the stored weights, such as `fp8` or `q4_k_m`.
    weights_precision: String,
    /// Precision of the key-value cache.
    kv_precision: String,
    /// What data-parallel ranks share.
    sharding: Sharding,
    /// Activations that are computed again.
    recompute: Recompute,
    /// The optimizer.
    optimizer: String,
    /// The adapter of fine-tuning, such as `lora`.
    adapter: String,
    /// Sequences that the server runs together.
    max_num_seqs: u64,
    /// Tokens of one pass of the server.
    max_num_batched_tokens: u64,
    /// Tokens of prompt and answer together.
    max_model_len: u64,
    /// Share of the memory for the engine; its meaning depends on the engine.
    gpu_memory_share: f64,
    /// Whether prompts share cached prefixes.
    prefix_caching: bool,
    /// Whether prompts are cut into pieces.
    chunked_prefill: bool,
    /// Tokens of one block of the cache.
    block_size: u64,
    /// Layers on the accelerator, in llama.cpp and ollama.
    gpu_layers: i64,
}
