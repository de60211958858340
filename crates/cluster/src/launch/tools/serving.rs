//! Code shared by the serving engines: formats of weights, and the distribution of replicas.

use crate::launch::words::Arguments;
use atlas_catalog::transformer::TransformerKind;
use atlas_core::plan::Format;

use super::{Draft, features, load};
use crate::import::weights_in_name;
use crate::launch::job::{Job, Serving};
use crate::launch::stated;
use atlas_plan::knob::Knob;

/// Knobs that both vLLM and SGLang can express.
const PAGED: [Knob; 14] = [
    Knob::Tp,
    Knob::Pp,
    Knob::Ep,
    Knob::AttentionDp,
    Knob::Precision,
    Knob::KvPrecision,
    Knob::ContextRanks,
    Knob::MaxNumSeqs,
    Knob::MaxNumBatchedTokens,
    Knob::GpuMemoryUtilization,
    Knob::ChunkedPrefill,
    Knob::CudaGraphs,
    Knob::OverlapScheduling,
    Knob::Images,
];

/// [`PAGED`] and the knobs for experts, speculative decoding and KV cache offloading.
pub(super) fn paged() -> impl Iterator<Item = Knob> {
    PAGED.into_iter().chain(features::EXPRESSED).chain(features::OVERLAPPED)
}

/// Adds the flags of vLLM and SGLang for the format of the weights.
pub(super) fn put_format(job: &Job<'_>, s: &Serving, draft: &mut Draft, a: &mut Arguments) {
    match converted(job, s, draft) {
        Some(Format::Bf16) => drop(a.put("--dtype", "bfloat16")),
        Some(Format::Fp16) => drop(a.put("--dtype", "float16")),
        Some(_) => drop(a.put("--quantization", "fp8")),
        None => {}
    }
}

/// The 16-bit or 8-bit format to which the engine must convert the weights; `None` if it loads them as they are stored.
///
/// Engines read the format of quantized weights from their configuration. A name such as `org/Llama-70B-NVFP4` states the
/// format; it must be that of the plan.
pub(super) fn converted(job: &Job<'_>, s: &Serving, draft: &mut Draft) -> Option<Format> {
    let given = job.options.model.as_deref();
    let named = given.and_then(|name| Format::named(&weights_in_name(name)?));
    let converts = |format: &Format| matches!(format, Format::Fp8 | Format::Bf16 | Format::Fp16);
    let planned = s.format.name();
    match (named, given, s.quantized) {
        (Some(named), ..) if named == s.format => None,
        (Some(named), Some(name), _) => {
            let reason =
                format!("{name} has {0} weights, but the plan has {planned} weights; set precision={0}", named.name());
            draft.reject("precision", reason);
            None
        }
        (_, _, None) => None,
        (_, _, Some(format)) if converts(&format) => Some(format),
        (_, Some(name), Some(_)) => {
            draft.note(format!("the weights in {name} must be stored in {planned}"));
            None
        }
        (_, None, Some(_)) => {
            let reason = format!("{planned} requires weights published in this format; name them with --model-path");
            draft.reject("precision", reason);
            None
        }
    }
}

/// Adds knobs of weights that are stored as planned: their format determines the format of the products.
pub(super) fn add_stored(job: &Job<'_>, s: &Serving, draft: &mut Draft) {
    let quantized = s.quantized.is_some() && job.options.model.is_some();
    // Engines that convert weights to fp8 also multiply in fp8.
    let online = s.format == Format::Fp8 && job.scenario.base.plan.compute == Some(Format::Fp8);
    let knobs =
        [(Knob::Compute, quantized || online), (Knob::WeightBits, quantized), (Knob::ExpertPrecision, quantized)];
    draft.expressed.extend(knobs.into_iter().filter(|(_, on)| *on).map(|(knob, _)| knob));
    if quantized {
        note_stored(job, &[Knob::Compute, Knob::WeightBits, Knob::ExpertPrecision], draft);
    }
}

/// Notes stated settings that the user's checkpoint determines, since no flag does.
pub(super) fn note_stored(job: &Job<'_>, knobs: &[Knob], draft: &mut Draft) {
    let Some(name) = &job.options.model else { return };
    for (_, setting) in stated::settings(job.scenario).iter().filter(|(knob, _)| knobs.contains(knob)) {
        draft.note(format!("{setting} is not a flag; the weights in {name} must be stored accordingly"));
    }
}

/// How replicas are distributed over servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Servers {
    /// Number of servers.
    pub(super) count: u64,
    /// Number of replicas per server.
    pub(super) replicas: u64,
    /// Number of nodes per server.
    pub(super) nodes: u64,
}

/// Distributes replicas over servers. With `together`, an engine runs all replicas of a node as one server.
pub(super) fn servers(job: &Job<'_>, s: &Serving, together: bool) -> Servers {
    let devices = s.devices();
    if devices > job.per_node {
        return Servers { count: s.replicas, replicas: 1, nodes: devices.div_ceil(job.per_node) };
    }
    let fit = job.per_node / devices;
    let even = together && s.replicas.is_multiple_of(fit.min(s.replicas));
    let replicas = if even { fit.min(s.replicas) } else { 1 };
    Servers { count: s.replicas / replicas, replicas, nodes: 1 }
}

/// Rejects models that the engine's launch files do not support. With `encoders`, they support encoders.
pub(super) fn check_model(job: &Job<'_>, tool: &str, encoders: bool, draft: &mut Draft) {
    let supported = match job.transformer.kind {
        TransformerKind::Decoder => true,
        TransformerKind::Encoder => encoders,
        TransformerKind::EncoderDecoder | TransformerKind::Vision => false,
    };
    if !supported {
        let kinds = if encoders { "decoders and encoders" } else { "decoders" };
        let reason = format!("{} is not supported: launch files for {tool} support only {kinds}", job.model.id);
        draft.reject("model", reason);
    }
}

/// Sets the fields of the draft that describe servers.
pub(super) fn set_servers(job: &Job<'_>, s: &Serving, servers: Servers, draft: &mut Draft) {
    draft.servers = servers.count;
    draft.devices = (s.devices() * servers.replicas).min(job.per_node);
    draft.port = Some(8000);
    draft.expressed.push(Knob::Load);
    draft.client = Some(load::client(job, s, draft));
}
