//! Typed view of an imported job.

use serde_json::Value as Json;

use super::fields::Fields;
use super::origin::Origin;

/// A value with the place where it is stated.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub at: Origin,
    /// Whether it was computed from other values, or read from a comment or a name.
    pub implied: bool,
}

/// Kind of a job.
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

/// Precision of matrix multiplications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// 32 bit.
    Fp32,
    /// IEEE half precision.
    Fp16,
    /// bfloat16.
    Bf16,
    /// 8 bit with per-tensor or per-block scales.
    Fp8,
    /// 8 bit with microscaling.
    Mxfp8,
    /// 4 bit.
    Fp4,
    /// Selected by the tool per operation.
    Mixed,
}

/// What is sharded across data-parallel ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    /// Nothing: every rank holds the whole state.
    None,
    /// Optimizer state.
    Zero1,
    /// Optimizer state and gradients.
    Zero2,
    /// Optimizer state, gradients and parameters.
    Zero3,
    /// Everything is sharded within a group and replicated across groups.
    Hsdp,
}

/// Activations that are recomputed in the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recompute {
    /// None.
    None,
    /// Some.
    Selective,
    /// All.
    Full,
}

/// Converts a JSON value to the type of the field.
trait FromJson: Sized {
    fn read(v: &Json) -> Option<Self>;
}

impl FromJson for String {
    fn read(v: &Json) -> Option<Self> {
        v.as_str().map(str::to_owned)
    }
}

impl FromJson for u64 {
    fn read(v: &Json) -> Option<Self> {
        v.as_u64()
    }
}

impl FromJson for i64 {
    fn read(v: &Json) -> Option<Self> {
        v.as_i64()
    }
}

impl FromJson for f64 {
    fn read(v: &Json) -> Option<Self> {
        v.as_f64()
    }
}

impl FromJson for bool {
    fn read(v: &Json) -> Option<Self> {
        v.as_bool()
    }
}

impl FromJson for JobKind {
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

impl FromJson for Precision {
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

impl FromJson for Sharding {
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

impl FromJson for Recompute {
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
        /// A job as described by the files. Fields that they do not state are absent.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Job {
            $($(#[$doc])* pub $name: Option<Stated<$ty>>,)*
        }

        impl Job {
            pub(crate) fn from_fields(f: &Fields, origin: &dyn Fn(u32) -> Origin) -> Self {
                Job {
                    $($name: f.entry(stringify!($name)).and_then(|e| {
                        let value = <$ty as FromJson>::read(&e.value)?;
                        Some(Stated { value, at: origin(e.at), implied: e.implied })
                    }),)*
                }
            }
        }
    };
}

job! {
    /// Kind of the job.
    kind: JobKind,
    /// The tool, such as `megatron-lm` or `vllm`.
    framework: String,
    /// Name or id of the model.
    model: String,
    /// The accelerator as the files name it.
    accelerator: String,
    /// Number of accelerators of the job, including all replicas and roles.
    num_accelerators: u64,
    /// Nodes of the job.
    nodes: u64,
    /// Accelerators on one node.
    accelerators_per_node: u64,
    /// Number of identical servers.
    replicas: u64,
    /// Accelerators of one server.
    accelerators_per_replica: u64,
    /// Tensor parallelism.
    tp: u64,
    /// Pipeline parallelism.
    pp: u64,
    /// Virtual stages per pipeline rank.
    vpp: u64,
    /// Context parallelism.
    cp: u64,
    /// Expert parallelism.
    ep: u64,
    /// Data parallelism: replicas times shards in training, ranks of the engine in serving.
    dp: u64,
    /// Ulysses sequence parallelism.
    ulysses_sp: u64,
    /// Megatron's sequence parallelism.
    sequence_parallel: bool,
    /// Data parallelism of attention inside the tensor group.
    attention_dp: bool,
    /// Sequences per data-parallel rank in one pass.
    micro_batch: u64,
    /// Sequences per optimizer step.
    global_batch: u64,
    /// Passes per optimizer step.
    grad_accum: u64,
    /// Tokens per training sequence.
    seq_len: u64,
    /// Precision of matrix multiplications.
    precision: Precision,
    /// Precision of the stored weights, such as `fp8` or `q4_k_m`.
    weights_precision: String,
    /// Precision of the KV cache.
    kv_precision: String,
    /// What is sharded across data-parallel ranks.
    sharding: Sharding,
    /// Activations that are recomputed.
    recompute: Recompute,
    /// The optimizer.
    optimizer: String,
    /// The adapter of fine-tuning, such as `lora`.
    adapter: String,
    /// Maximum number of sequences that the server processes concurrently.
    max_num_seqs: u64,
    /// Maximum number of tokens per pass of the server.
    max_num_batched_tokens: u64,
    /// Maximum number of prompt and output tokens per request.
    max_model_len: u64,
    /// Fraction of the memory that the engine may use; the exact meaning depends on the engine.
    gpu_memory_share: f64,
    /// Whether prefixes are cached and shared between prompts.
    prefix_caching: bool,
    /// Whether prompts are prefilled in chunks.
    chunked_prefill: bool,
    /// Tokens per block of the KV cache.
    block_size: u64,
    /// Layers placed on the accelerator, in llama.cpp and ollama.
    gpu_layers: i64,
}
