//! Published serving measurements (`inference.csv`) as scenarios. A row that does not state enough gets a reason.

use super::hardware::Hardware;
use super::models::Models;
use super::serving_flags::Flags;
use super::serving_loads::{load, queued};
use super::serving_notes::{data_set, number_after, number_before};
use super::table::Row;
use super::{serving_devices, serving_models, serving_pools};
use crate::engine::analytical::accelerator::{Accelerator, Generation};
use crate::engine::analytical::arch::Architecture;
use crate::engine::analytical::serving::step::Machine;
use crate::engine::analytical::serving::{
    Layout, Load, ServingInput, Speculation, Stack, interval, kv, software, speculative,
};
use crate::engine::analytical::serving_constants::ServingConstants;

/// Which published column a case is judged on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Generated tokens per second.
    OutputRate,
    /// Prompt and generated tokens per second.
    TotalRate,
    /// Requests per second.
    RequestRate,
    /// Time to first token.
    Ttft,
    /// Time per output token.
    Tpot,
}

/// One measurement with its scenario.
#[derive(Debug, Clone)]
pub struct Case {
    /// The row's id.
    pub id: String,
    /// Who published it.
    pub source: String,
    /// On what it ran.
    pub accelerator: String,
    /// The serving engine.
    pub engine: String,
    /// The model as the row names it.
    pub model: String,
    /// The kind of run.
    pub regime: &'static str,
    /// The scenario.
    pub input: ServingInput,
    /// Which figure is judged.
    pub metric: Metric,
    /// What was measured, per second or in seconds.
    pub measured: f64,
    /// Weight in a fit relative to a throughput row.
    pub weight: f64,
}

impl Case {
    /// Factors on a prediction between which the measurement lies in nine cases of ten.
    #[must_use]
    pub fn interval(&self) -> interval::Factors {
        match self.metric {
            Metric::Ttft => interval::ttft(&self.input),
            Metric::Tpot => interval::tpot(&self.input),
            Metric::OutputRate | Metric::TotalRate | Metric::RequestRate => interval::throughput(&self.input),
        }
    }
}

/// Memory sizes of data sheets are powers of two.
const BINARY: f64 = 1.0737;

/// Shares and habits of the engines' benchmarks that rows leave unsaid.
const DRAFT_ACCEPTANCE: f64 = 0.7;

/// Longest prompt and output together that the benchmarks of vLLM and SGLang take from ShareGPT, tokens
/// (`is_valid_sequence` in vLLM's benchmarks/benchmark_dataset.py: `max_total_len`).
const SHAREGPT_LONGEST: f64 = 2048.0;

/// Whether a total of prompt and output tokens is in truth the rate of the generation. llama.cpp times prompts and
/// generation apart; where a collection puts its single stream under "total" beside other engines', the figure is the
/// generation's: an 8B model in 16 bit at 53 tokens/s on an A100 and 102 on an H100 in one source is what other sources
/// state for the generation on these devices, and half of it would be slower than any of them.
fn generation_alone(r: &Row) -> bool {
    let lengths = (r.number("input_len"), r.number("output_len"));
    r.text("engine") == "llama.cpp"
        && r.number("concurrency").or(r.number("max_batch_size")) == Some(1.0)
        && matches!(lengths, (Some(a), Some(b)) if a == b)
}

/// Mean length of the outputs that were generated, where a row states tokens and requests per second to four digits.
fn generated(r: &Row) -> Option<f64> {
    let digits = |column| r.text(column).trim_start_matches(['0', '.']).chars().filter(char::is_ascii_digit).count();
    let precise = digits("requests_per_sec") >= 4 && digits("output_tokens_per_sec_total") >= 4;
    Some(r.positive("output_tokens_per_sec_total")? / r.positive("requests_per_sec")?).filter(|_| precise)
}

/// The throughput that a row states, and the column.
fn measured(r: &Row, devices: f64) -> Option<(f64, Metric)> {
    if let Some(x) = r.positive("output_tokens_per_sec_total") {
        return Some((x, Metric::OutputRate));
    }
    if let Some(x) = r.positive("total_tokens_per_sec") {
        return Some((x, if generation_alone(r) { Metric::OutputRate } else { Metric::TotalRate }));
    }
    if let Some(x) = r.positive("tokens_per_sec_per_accel") {
        // Neither beyond what a number holds nor below it.
        return Some((x * devices, Metric::OutputRate)).filter(|(x, _)| x.is_normal());
    }
    r.positive("requests_per_sec").map(|x| (x, Metric::RequestRate))
}

/// Ranks of one chip, where an engine counts cores.
fn ranks_per_chip(acc: &str) -> f64 {
    match acc {
        "aws-inf2" | "aws-trn1" | "google-tpu-v7x" => 2.0,
        "aws-trn2" => 4.0,
        _ => 1.0,
    }
}

/// Reasons to leave a row out although it states a throughput.
fn unusable(r: &Row, notes: &str) -> Option<&'static str> {
    if r.text("engine") == "DeepSpeed ZeRO" {
        return Some("weights are gathered layer by layer (ZeRO-3): not a serving layout");
    }
    if notes.contains("labels the unit Samples/s") && r.number("output_tokens_per_sec_total").is_some_and(|x| x < 500.0)
    {
        return Some("unit ambiguous: value reads as samples/s, column says tokens/s");
    }
    let single = r.number("concurrency") == Some(1.0) && r.number("e2e_ms_mean").is_some();
    if single && r.number("ttft_ms_p99") > r.number("e2e_ms_mean") {
        return Some("one first token of a single stream took longer than a whole answer: the run contains a start-up");
    }
    if notes.contains("effective concurrency unclear") {
        return Some("the source says that the effective concurrency is unclear");
    }
    None
}

/// The scenario of a row.
pub fn case(r: &Row, hardware: &Hardware, models: &Models) -> Result<Case, &'static str> {
    let notes = r.text("notes");
    let (accelerator, model, engine) = (r.text("accelerator"), r.text("model"), r.text("engine"));
    let per_chip = ranks_per_chip(accelerator);
    let tp_stated = r.positive("tp").map(|t| (t / per_chip).max(1.0));
    let devices = r.positive("num_accelerators").or(tp_stated).unwrap_or(1.0);
    let (measured, metric) = measured(r, devices).ok_or("no throughput stated")?;
    if let Some(reason) = unusable(r, notes) {
        return Err(reason);
    }
    let acc = serving_devices::find(hardware, accelerator).ok_or("accelerator not in the catalog")?;
    if acc.mem_bw <= 0.0 || acc.mem_bytes <= 0.0 {
        return Err("the catalog lacks the accelerator's memory");
    }
    let arch =
        serving_models::find(models, model, Some(r)).ok_or("architecture neither in the catalog nor in the row")?;
    // Graphs of fixed shapes attend to all of a bucket, window or not.
    let windowed = arch.window > 0.0 && software::fixed_shapes(engine);
    let arch = if windowed { Architecture { window: 0.0, window_share: 0.0, ..arch } } else { arch };
    let runtime = software::stack(engine);
    let mlperf = notes.contains("MLPerf");
    let stack = match runtime {
        Stack::Eager if software::injected(engine) => Stack::Graphed,
        Stack::Graphed if !mlperf && software::lacks_graphs(&acc, engine) => Stack::Eager,
        other => other,
    };

    let mut weights = r.text("precision_weights");
    if weights.is_empty() && mlperf {
        // Closed-division submissions run the narrowest format that passes the accuracy gate on the device.
        use crate::engine::analytical::accelerator::Precision;
        weights = if acc.has(Precision::Fp4) && r.text("date") > "2024-07" {
            "fp4"
        } else if acc.has(Precision::Fp8) {
            "fp8"
        } else if acc.has(Precision::Int8) {
            "int8"
        } else {
            "fp16"
        };
    }
    let formats_of = |weights: &str| {
        let (activations, kv) = (r.text("precision_activations"), r.text("precision_kv"));
        software::formats(&acc, &arch, model, engine, stack, weights, activations, kv)
    };
    let mut formats = formats_of(weights);
    let room = BINARY * acc.mem_bytes * devices / r.positive("dp").unwrap_or(1.0).max(1.0);
    if weights.is_empty() && weight_bytes(&arch, &formats) > room {
        // What ran had room: the widest format that has.
        formats = formats_of("fp8");
        if weight_bytes(&arch, &formats) > room {
            formats = formats_of("int4");
        }
    }
    let set = data_set(model, notes);
    let isl = r.number("input_len").or(set.map(|s| s.0)).unwrap_or(64.0).max(1.0);
    let osl =
        r.number("output_len").filter(|x| *x >= 2.0 || set.is_none()).or(set.map(|s| s.1)).unwrap_or(256.0).max(1.0);
    // A client that draws lengths from 0.8 to 1.0 of the nominal ones sends 0.9 of them.
    let drawn = if notes.contains("0.8-1.0 of nominal") || notes.contains("range-ratio 0.8") { 0.9 } else { 1.0 };
    let (isl, osl) = (isl * drawn, osl * drawn);
    // Answers that ended before the nominal length.
    let osl = generated(r).filter(|seen| (0.5..0.98).contains(&(seen / osl))).unwrap_or(osl);
    let version = match (r.text("engine_version"), r.text("date")) {
        ("", d) if d < "2025-03" && !d.is_empty() && engine.contains("vLLM") => "0.6",
        (v, _) => v,
    };
    let flags = Flags::of(notes);
    let limits = software::scheduler(engine, version, &acc);
    let mut seqs =
        flags.number(&["max-num-seqs", "max-running-requests", "max-batch-size", "parallel"]).unwrap_or(limits.0);
    let tokens = flags
        .number(&["max-num-batched-tokens", "chunked-prefill-size", "max-num-tokens", "ubatch-size"])
        .unwrap_or(limits.1);
    let chunked = match flags {
        f if f.has(&["no-enable-chunked-prefill"]) => false,
        f if f.has(&["enable-chunked-prefill", "enable-mixed-chunk"]) => true,
        _ => limits.2,
    };
    // Graphs of fixed shapes take one prompt at a time and nothing beside it.
    let whole_prompts = software::fixed_shapes(engine) && runtime == Stack::Graphed;
    let (tokens, chunked) = if whole_prompts { (isl, false) } else { (tokens, chunked) };
    let share = flags
        .number(&["gpu-memory-utilization", "mem-fraction-static", "kv-cache-free-gpu-memory-fraction"])
        .filter(|share| *share <= 1.0)
        .unwrap_or(limits.3);
    let (mut load, regime) = load(r, notes, runtime);
    if let Load::Burst { requests } = &mut load
        && requests.is_infinite()
        && engine.contains("TensorRT")
        && !mlperf
    {
        *requests = queued(isl, osl);
    }
    if !matches!(load, Load::Static { .. } | Load::DecodeOnly { .. })
        && let Some(b) = r.positive("max_batch_size")
    {
        seqs = b;
    }
    if mlperf && r.positive("max_batch_size").is_none() && flags.number(&["max-num-seqs"]).is_none() {
        // Submissions raise the limit until memory or the latency rule binds.
        seqs = f64::INFINITY;
    }
    let bulk = matches!(load, Load::Burst { .. } | Load::Open { .. });
    let layout = layout(r, notes, bulk, devices, tp_stated, &acc, runtime, &formats, &arch);
    let mut acc = acc;
    let mut layout = layout;
    if layout.pp > 1.0 && matches!(runtime, Stack::Local | Stack::Eager) {
        // Layers split over devices that take turns: one device with all the memory.
        acc.mem_bytes *= layout.pp;
        layout.pp = 1.0;
    }
    if matches!(load, Load::DecodeOnly { .. }) {
        // A batch whose steps were timed ran at once.
        seqs = f64::INFINITY;
        acc.mem_bytes = f64::MAX.sqrt();
    }
    let context = if matches!(load, Load::DecodeOnly { .. }) {
        number_after(notes, "context depth ").unwrap_or(r.number("input_len").unwrap_or(0.0))
    } else {
        isl
    };
    // Lengths drawn evenly from 1 to N: the longest is twice the mean.
    let spread = if notes.contains("lengths uniform 1..N") {
        2.0
    } else if r.number("input_len").is_some() && !notes.contains("ShareGPT") {
        1.0
    } else {
        set.map_or(1.0, |s| s.2)
    };
    let input = ServingInput {
        accelerator: acc,
        arch,
        layout,
        formats,
        isl: context,
        osl,
        osl_spread: spread,
        osl_most: match spread > 1.0 && notes.contains("ShareGPT") {
            true => SHAREGPT_LONGEST,
            false if drawn < 1.0 => osl / drawn,
            false => 0.0,
        },
        load,
        arrivals: number_before(notes, " prompts at ").or(number_before(notes, " completed")).unwrap_or(f64::INFINITY),
        stack,
        admission: software::admission(engine),
        recv_interval: flags.number(&["scheduler-recv-interval"]).unwrap_or(1.0),
        context_ranks: flags
            .number(&["decode-context-parallel-size", "dcp"])
            .or(number_after(notes, "decode context parallel "))
            .unwrap_or(1.0),
        // MLPerf's submissions with TensorRT-LLM let requests in that fit as they are (`batch_scheduler_policy: max_util`);
        // its default never throws anybody out. From memory of the public configurations, which rows do not state.
        reserve_output: engine.contains("TensorRT") && !mlperf,
        experts_in_turn: software::experts_in_turn(&arch, &formats, engine),
        tuned_products: mlperf || software::tuned_products(&acc, engine, version),
        captured_graphs: (mlperf || software::captured_graphs(&acc, engine, version, r.text("date"), isl + 0.5 * osl))
            && !software::launches_experts(&arch, &formats, engine, r.text("engine_version"), r.text("date"))
            && !flags.has(&["enforce-eager", "disable-cuda-graph"]),
        eager_prompts: !mlperf && software::eager_prompts(engine, version),
        grouped_decode: mlperf || software::grouped_decode(&acc, &arch, engine, version),
        overlapped: software::overlapped(engine, version)
            && !flags.has(&["disable-overlap-schedule", "no-async-scheduling"]),
        python_executor: software::python_executor(engine, r.text("engine_version"), r.text("date"), notes),
        // MLPerf's GPT-J task decodes with four beams (MLPerf Inference rules, text summarisation).
        beams: if mlperf && model == "gpt-j-6b" { 4.0 } else { 1.0 },
        max_num_seqs: seqs,
        compiled_batch: if software::fixed_shapes(engine) {
            let shared = if notes.contains("per replica") { 1.0 } else { layout.dp.max(1.0) };
            r.positive("max_batch_size").unwrap_or(0.0) / shared
        } else {
            0.0
        },
        max_num_batched_tokens: tokens,
        memory_utilization: share,
        chunked_prefill: chunked,
        prefix_hit: 0.0,
        speculation: speculation(r.text("speculative"), notes, arch.layers),
        expanded_drafts: software::expands_drafts(engine, version),
        pools: serving_pools::stated(notes),
    };
    if !holds(&input) {
        return Err("the weights do not fit the stated accelerators in the stated format");
    }
    if impossible(&input, metric, measured) {
        return Err("faster than the weights can be read at the stated concurrency: the load must have been another");
    }
    Ok(Case {
        id: r.text("id").to_string(),
        source: r.text("source").to_string(),
        accelerator: accelerator.to_string(),
        engine: engine.to_string(),
        model: model.to_string(),
        regime,
        input,
        metric,
        measured,
        weight: 1.0,
    })
}

/// Whether the weights fit the memory of all devices of a replica, whatever share the engine may use of it.
pub(super) fn holds(input: &ServingInput) -> bool {
    let memory = |l: &Layout| input.accelerator.mem_bytes * BINARY * l.replica().max(1.0);
    let weights = weight_bytes(&input.arch, &input.formats);
    // Streaming and unified-memory runtimes place layers in host memory.
    input.stack == Stack::Local || layouts(input).all(|layout| weights < memory(&layout))
}

/// The layouts that hold the weights: the one, or those of both pools.
fn layouts(input: &ServingInput) -> impl Iterator<Item = Layout> {
    let [first, second] = input.pools.map_or([Some(input.layout), None], |p| [Some(p.prefill), Some(p.decode)]);
    first.into_iter().chain(second)
}

/// What ran had room: where the engine's usual share of the memory leaves none for keys and values, its users gave it all.
pub(super) fn with_room(input: ServingInput) -> ServingInput {
    let constants = ServingConstants::default();
    let fits = layouts(&input).all(|layout| {
        let shape = Machine::new(&input, &layout, &constants).shape;
        kv::capacity(&input, &layout, &shape, &constants).fits
    });
    if fits { input } else { ServingInput { memory_utilization: 1.0, ..input } }
}

/// Every step reads at least one token's weights; a stated concurrency bounds the tokens of a step.
fn impossible(input: &ServingInput, metric: Metric, measured: f64) -> bool {
    let (Load::Closed { concurrency: n, .. } | Load::Static { batch: n } | Load::DecodeOnly { batch: n }) = input.load
    else {
        return false;
    };
    let output = match metric {
        Metric::OutputRate => measured,
        Metric::TotalRate => measured * input.osl / (input.isl + input.osl),
        _ => return false,
    };
    let f = &input.formats;
    let read = input.arch.matmul_params() * f.dense_bytes.min(f.expert_bytes);
    let l = &input.layout;
    let steps = input.accelerator.mem_bw * l.accelerators().max(1.0) / read.max(1.0) / l.dp.max(1.0);
    output > 1.05 * n * (1.0 + input.speculation.tokens) * steps
}

/// Drafting as a row names it: "mtp-3", "EAGLE3, 3 draft tokens".
fn speculation(text: &str, notes: &str, layers: f64) -> Speculation {
    let t = text.to_ascii_lowercase();
    if t.is_empty() || t == "none" {
        return Speculation::default();
    }
    let tokens = number_before(&t, " draft").or(number_after(&t, "mtp-")).or(number_after(&t, "steps=")).unwrap_or(1.0);
    let drafted = |acceptance| Speculation { tokens, acceptance, draft_cost: 1.0 / layers.max(1.0) };
    let Some(length) = number_after(notes, "accept length ") else { return drafted(DRAFT_ACCEPTANCE) };
    // A stated mean of accepted tokens gives the probability behind it.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..24 {
        let middle = 0.5 * (low + high);
        if speculative::tokens_per_step(&drafted(middle)) < length { low = middle } else { high = middle }
    }
    drafted(0.5 * (low + high))
}

/// The layout over devices.
#[allow(clippy::too_many_arguments)]
fn layout(
    r: &Row,
    notes: &str,
    bulk: bool,
    devices: f64,
    tp: Option<f64>,
    acc: &Accelerator,
    stack: Stack,
    f: &crate::engine::analytical::serving::Formats,
    arch: &crate::engine::analytical::arch::Architecture,
) -> Layout {
    let pp = r.positive("pp").unwrap_or(1.0);
    let ep = r.positive("ep").unwrap_or(1.0);
    let dp = r.positive("dp").unwrap_or(1.0);
    // Replicas that a row counts share its devices.
    let tp = tp.or((dp > 1.0 && dp <= devices && !arch.is_moe()).then_some((devices / dp / pp).max(1.0)));
    let Some(mut tp) = tp else {
        if matches!(stack, Stack::Local | Stack::Eager) {
            return Layout { pp: devices, ..Layout::default() };
        }
        if arch.is_moe() && devices >= 4.0 {
            // Large mixtures are deployed with data-parallel attention and whole experts per device, a node each.
            let groups = devices.min(8.0);
            return Layout {
                tp: 1.0,
                pp: 1.0,
                ep: groups,
                attention_dp: groups,
                dp: (devices / groups).floor().max(1.0),
            };
        }
        // Not stated: the fewest ranks whose memory is at most 60 % weights.
        let bytes = super::serving_rows::weight_bytes(arch, f);
        let mut tp = 1.0;
        while tp < devices && bytes / tp > 0.6 * acc.mem_bytes {
            tp *= 2.0;
        }
        return Layout { tp: f64::min(tp, devices), dp: (devices / tp).max(1.0), ..Layout::default() };
    };
    let replica = tp * pp;
    let flags = Flags::of(notes);
    let attention_dp = if notes.contains("attention DP")
        || notes.contains("dp attention")
        || notes.contains("DP for attention")
        || flags.has(&["enable-dp-attention", "enable-attention-dp"])
    {
        if dp > 1.0 { dp } else { devices }
    } else if dp > 1.0 && replica * dp > devices * 1.01 {
        dp
    } else {
        1.0
    };
    // Latent attention keeps the same keys and values on every tensor-parallel rank, so deployments for throughput
    // with experts on all ranks attend data-parallel (DeepSeek-V3 report, section 3.4).
    let latent = matches!(arch.attention, crate::engine::analytical::arch::Attention::Latent { .. });
    // A command line that does not ask for it has it not.
    let unsaid = attention_dp <= 1.0 && !flags.any();
    let attention_dp = if unsaid && latent && bulk && ep > 1.0 && ep >= tp { tp } else { attention_dp };
    if attention_dp > 1.0 {
        // Ranks of one replica: all data-parallel groups, or as many as share the experts where those are stated.
        let ranks = if dp > 1.0 { replica * dp } else { replica.max(ep) };
        let ranks = if ranks > 1.0 && ranks <= devices { ranks } else { devices };
        let groups = attention_dp.min(ranks);
        let replicas = (devices / ranks).floor().max(1.0);
        return Layout { tp: (ranks / groups).max(1.0), pp: 1.0, ep, attention_dp: groups, dp: replicas };
    }
    // A mixture on `ep` devices with tp = 1: the attention is sliced over the same devices.
    if ep > 1.0 && replica < devices && ep >= devices {
        tp = devices / pp;
    }
    let replicas = if dp > 1.0 { dp } else { (devices / (tp * pp)).floor().max(1.0) };
    let used = if acc.generation == Generation::Trainium { 1.0 } else { replicas };
    Layout { tp, pp, ep, attention_dp: 1.0, dp: if dp > 1.0 { dp } else { used } }
}

/// Bytes of all weights.
pub fn weight_bytes(
    arch: &crate::engine::analytical::arch::Architecture,
    f: &crate::engine::analytical::serving::Formats,
) -> f64 {
    let experts = arch.moe_layers() * arch.expert_params();
    (arch.params() - experts) * f.dense_bytes + experts * f.expert_bytes
}
