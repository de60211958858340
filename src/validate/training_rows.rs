//! A row of `training.csv` as a scenario and a measured throughput, or the reason why not.
//!
//! What a row does not state is filled by the conventions below; each follows from the framework's documented
//! defaults or from the model's name, never from the result.

use super::hardware::Hardware;
use super::models::Models;
use super::names;
use super::table::Row;
use super::training_stack::{Stack, software, stack};
use super::training_words::{self, stated};
use crate::engine::analytical::accelerator::{Accelerator, Generation, Precision};
use crate::engine::analytical::arch::{Architecture, Attention};
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::memory;
use crate::engine::analytical::training::{self, Recompute, Schedule, Sharding, TrainingInput};

/// A measurement that states enough to be predicted.
#[derive(Debug, Clone)]
pub struct Case {
    /// Identifier of the row.
    pub id: String,
    /// Where it was published.
    pub source: String,
    /// The accelerator's id as the row spells it.
    pub accelerator: String,
    /// The model's name as the row spells it.
    pub model: String,
    /// Training software.
    pub framework: String,
    /// The scenario.
    pub input: TrainingInput,
    /// Tokens per second and accelerator.
    pub measured: f64,
    /// Bytes of memory that the row states: the first device's, as the driver's tools show them.
    pub memory: Option<f64>,
    /// Devices of the input per accelerator of the row (2 where the row counts cores, tiles or dies).
    pub devices: f64,
}

/// The row's own shape over the catalog's entry for its name.
fn architecture(row: &Row, models: &Models) -> Result<Architecture, &'static str> {
    let name = row.text("model");
    let known = models.find(&names::catalog_id(name));
    let (Some(hidden), Some(layers)) = (row.positive("hidden_size"), row.positive("n_layers")) else {
        let mut a = known.ok_or("architecture not stated and model not in the catalog")?;
        a.layers = row.positive("n_layers").unwrap_or(a.layers);
        return Ok(a);
    };
    if let Some(mut a) = known
        && a.hidden == hidden
    {
        // First dense layers of a shortened model are shortened with it, down to one.
        if a.dense_layers > 0.0 {
            a.dense_layers = (a.dense_layers * layers / a.layers).round().max(1.0);
        }
        a.layers = layers;
        a.vocab = row.positive("vocab_size").unwrap_or(a.vocab);
        if row.text("notes").contains("tokenizer google/gemma") {
            (a.vocab, a.tied) = (256_000.0, false);
        }
        if !a.is_moe() {
            a.heads = row.positive("n_heads").unwrap_or(a.heads);
            a.kv_heads = row.positive("n_kv_heads").unwrap_or(a.kv_heads);
            a.ffn = row.positive("ffn_hidden_size").unwrap_or(a.ffn);
        }
        return Ok(a);
    }
    Ok(shape_of_row(row, hidden, layers))
}

/// An architecture from the row alone: GPT-like where nothing else is said.
fn shape_of_row(row: &Row, hidden: f64, layers: f64) -> Architecture {
    let heads = row.positive("n_heads").unwrap_or((hidden / 128.0).round().max(1.0));
    let ffn = row.positive("ffn_hidden_size").unwrap_or(4.0 * hidden);
    let experts = row.positive("n_experts").unwrap_or(0.0);
    let mut a = Architecture {
        layers,
        hidden,
        heads,
        kv_heads: row.positive("n_kv_heads").unwrap_or(heads),
        // MaxText's scaled models fix the head's width; elsewhere the heads share the hidden size.
        head_dim: if row.text("model").starts_with("maxtext") { head_dim(row) } else { hidden / heads },
        ffn,
        // Megatron's GPT vocabulary, padded (GPT-2's 50257).
        vocab: row.positive("vocab_size").unwrap_or(if row.text("notes").contains("tokenizer google/gemma") {
            256_000.0
        } else {
            51200.0
        }),
        // A plain MLP is four times as wide as the hidden size by tradition; any other width is a gated one's.
        gated: (ffn / hidden - 4.0).abs() > 0.01,
        tied: true,
        attention: Attention::Grouped,
        experts,
        top_k: row.positive("experts_per_token").unwrap_or(0.0),
        moe_ffn: if experts > 0.0 { ffn } else { 0.0 },
        ..Architecture::default()
    };
    if !a.gated {
        // GPT's learned positions.
        a.positions = row.positive("seq_len").unwrap_or(0.0);
    }
    // Gated or plain, tied or not, and a vocabulary that is not stated: the first that meets the stated parameters.
    if let Some(stated) = row.positive("params_b") {
        let usual = [a.vocab, 32_000.0, 125_696.0, 151_936.0, 250_880.0, 256_000.0];
        let vocabularies = if row.positive("vocab_size").is_some() { &usual[..1] } else { &usual[..] };
        let mut best = (f64::INFINITY, a);
        for &vocab in vocabularies {
            for (gated, tied) in [(a.gated, true), (a.gated, false), (!a.gated, false), (!a.gated, true)] {
                let b = Architecture { gated, tied, vocab, ..a };
                let miss = (b.params() / 1e9 / stated).ln().abs();
                if miss < best.0 - 0.03 {
                    best = (miss, b);
                }
            }
        }
        a = best.1;
    }
    a
}

fn head_dim(row: &Row) -> f64 {
    let notes = row.text("notes");
    notes
        .split("head_dim ")
        .nth(1)
        .and_then(|t| t.split(|ch: char| !ch.is_ascii_digit()).next())
        .and_then(|t| t.parse().ok())
        .unwrap_or(128.0)
}

/// Gigabits per second and node, where the link's text says so ("4x HDR InfiniBand 200Gbps/node", "8x50GB/s").
fn node_gbps(text: &str, per_node: f64) -> Option<f64> {
    // Storage and management networks may be listed beside the compute fabric.
    let text = text.split("Compute:").nth(1).map_or(text, |t| t.split(',').next().unwrap_or(t));
    let t = text.to_ascii_lowercase();
    let count = t
        .split_whitespace()
        .find_map(|w| w.split_once('x').and_then(|(n, _)| n.parse::<f64>().ok()))
        .filter(|&n| n <= 16.0);
    let before = |unit: &str| {
        let at = t.find(unit)?;
        let head = t.get(..at)?.trim_end();
        let start = head.rfind(|ch: char| !(ch.is_ascii_digit() || ch == '.')).map_or(0, |i| i + 1);
        head.get(start..)?.parse::<f64>().ok()
    };
    let (rate, scale) = before("gbps").or_else(|| before("gb/s")).map(|r| (r, 1.0))?;
    let bytes = text.contains("GB/s");
    let gbps = rate * scale * if bytes { 8.0 } else { 1.0 };
    // "per node" or a rate that no single NIC has is the node's; a bare rate is one NIC per accelerator.
    match count {
        Some(n) => Some(n * gbps),
        None if t.contains("/node") || gbps > 800.0 || t.contains("p4d") || t.contains("p5") => Some(gbps),
        None => Some(gbps * per_node),
    }
}

/// Chips of one TPU slice, where the notes say "2 slice(s) of v5p-128 (64 chips each" or "4 slice(s) of v5e-256".
fn slice_chips(notes: &str) -> Option<f64> {
    let after = notes.split("slice(s) of ").nth(1)?;
    let digits = |t: &str| t.split(|ch: char| !ch.is_ascii_digit()).next().and_then(|d| d.parse::<f64>().ok());
    match after.split_once('(') {
        Some((_, chips)) if chips.contains("chips each") => digits(chips),
        _ => digits(after.split_once('-')?.1),
    }
}

fn precision(row: &Row, generation: Generation) -> Precision {
    let notes = row.text("notes");
    let stated = training_words::plain(row.text("precision"));
    let has = |part: &str| stated.contains(part);
    if has("fp8") || has("float8") {
        Precision::Fp8
    } else if has("fp4") {
        Precision::Fp4
    } else if has("int8") {
        Precision::Int8
    } else if has("fp32") || has("tf32") || stated == "float32" {
        Precision::Tf32
    } else if stated.is_empty() && notes.contains("offers fp8") {
        // Recipes that offer both are quoted at their best.
        Precision::Fp8
    } else if has("fp16")
        || has("float16") && !has("bfloat16")
        || generation == Generation::Volta
        || stated.is_empty() && notes.contains("fp16") && !notes.contains("bf16")
    {
        Precision::Fp16
    } else {
        Precision::Bf16
    }
}

fn sharding(row: &Row, stack: Stack) -> Sharding {
    match training_words::sharding(row) {
        Some(stated) => stated,
        None if row.text("framework").contains("FSDP") => Sharding::Zero3,
        // Not stated: Megatron-Core's recipes use the distributed optimizer, JAX shards fully, the rest replicates.
        None => match stack {
            Stack::Megatron | Stack::Graph => Sharding::Zero1,
            // What DeepSpeed is put under Megatron-LM for.
            Stack::MegatronLegacy if row.text("framework").to_ascii_lowercase().contains("deepspeed") => {
                Sharding::Zero1
            }
            Stack::Xla => Sharding::Zero3,
            Stack::MegatronLegacy | Stack::Eager => Sharding::None,
        },
    }
}

/// Tokens per second and accelerator, as stated or as implied by step time, TFLOP/s or MFU.
fn measured(row: &Row, a: &Architecture, acc: &Accelerator, p: Precision) -> Result<f64, &'static str> {
    if let Some(t) = row.positive("tokens_per_sec_per_accel") {
        return Ok(t);
    }
    if let (Some(step), Some(batch), Some(seq), Some(n)) = (
        row.positive("step_time_s"),
        row.positive("global_batch"),
        row.positive("seq_len"),
        row.positive("num_accelerators"),
    ) {
        return Ok(batch * seq / step / n);
    }
    let seq = row.positive("seq_len").ok_or("no throughput and no sequence length to derive it from")?;
    // MaxText and Megatron-Core halve causal attention since the middle of 2025 (training_notes.md).
    let per_token = a.palm_flops_per_token(seq, row.text("date") >= "2025-07");
    if let Some(tflops) = row.positive("model_tflops_per_accel") {
        return Ok(tflops * 1e12 / per_token);
    }
    let mfu = row.positive("mfu").ok_or("states no throughput")?;
    // A share; above one it is a percentage.
    let mfu = if mfu > 1.0 { mfu / 100.0 } else { mfu };
    Ok(mfu * acc.peak(p) / per_token)
}

/// Whether the hardware TFLOP/s that the notes quote ("source TFLOPS/GPU 534.18") exceed the model's by a forward pass.
fn counts_recompute(notes: &str, measured: f64, a: &Architecture, seq: f64) -> bool {
    let quoted = notes.split("source TFLOPS/GPU ").nth(1).and_then(|t| t.split(' ').next()?.parse::<f64>().ok());
    quoted.is_some_and(|q| q * 1e12 > 1.15 * measured * a.palm_flops_per_token(seq, false))
}

/// Whether the row says, or its framework implies, that data parallelism is all there is unless more is stated.
fn shards_fully(row: &Row, stack: Stack) -> bool {
    let stated = matches!(training_words::sharding(row), Some(Sharding::Zero2 | Sharding::Zero3));
    stated || row.text("framework").contains("FSDP") || stack == Stack::Xla
}

/// A run that was measured did fit: where the sharding is not stated, the least that makes it fit.
fn fitting_sharding(i: &TrainingInput) -> Sharding {
    let c = Constants::default();
    let stages = [i.sharding, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3];
    let fits = |s: &Sharding| {
        let sharded = TrainingInput { sharding: *s, ..*i };
        memory::training_memory(&sharded, &c, Recompute::Full).total() <= i.accelerator.capacity()
    };
    stages.into_iter().find(fits).unwrap_or(i.sharding)
}

/// Memory in use, where a column or a part of the notes of its own states it ("47.0 TFLOPs as logged; …; 16GB").
fn stated_memory(row: &Row) -> Option<f64> {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    let column = row.positive("peak_memory_gb").or_else(|| row.positive("memory_gb"));
    let noted = || {
        row.text("notes").split(';').find_map(|part| {
            let (number, rest) = part.trim().split_once("GB")?;
            (rest.is_empty() || rest.starts_with(' ')).then(|| number.trim().parse::<f64>().ok())?
        })
    };
    column.or_else(noted).filter(|gb| *gb > 0.0).map(|gb| gb * GIB)
}

fn schedule(row: &Row) -> Schedule {
    let n = row.text("notes");
    if n.contains("ZB-1p") || n.contains("ZB-H1") {
        Schedule::ZeroBubble1p
    } else if n.contains("ZB-") || n.contains("zero-bubble") {
        Schedule::ZeroBubble
    } else {
        Schedule::OneForwardOneBackward
    }
}

impl Case {
    /// Predicted over stated memory, less one, where the row states it.
    #[must_use]
    pub fn memory_error(&self, c: &Constants) -> Option<f64> {
        let plan = training::estimate(&self.input, c).recompute;
        let mode = if plan.full_share >= 1.0 { Recompute::Full } else { plan.mode };
        Some(memory::first_stage(&self.input, c, mode).total() / self.memory? - 1.0)
    }
}

/// The scenario and throughput of a row.
pub fn case(row: &Row, hardware: &Hardware, models: &Models) -> Result<Case, &'static str> {
    let notes = row.text("notes");
    if notes.contains("INCONSISTENT") {
        return Err("marked inconsistent by the table's notes");
    }
    if notes.contains("CPU offload") {
        return Err("weights offloaded to the host, over a link that is not stated");
    }
    let stack = stack(row);
    let arch = architecture(row, models)?;
    let mut acc = hardware.find(row.text("accelerator")).ok_or("accelerator not in the catalog")?;
    let precision = precision(row, acc.generation);
    let measured = measured(row, &arch, &acc, precision)?;
    // One fact may be missing: a convention stands in for it. With two, the answer would be the conventions'.
    let missing = [
        row.positive("seq_len").is_none(),
        row.positive("num_accelerators").is_none(),
        stated(row, "global_batch", "gbs").or_else(|| stated(row, "micro_batch", "mbs")).is_none(),
        row.text("precision").is_empty() && !notes.contains("fp8") && !notes.contains("fp16"),
        !shards_fully(row, stack)
            && stated(row, "tp", "tp").is_none()
            && stated(row, "pp", "pp").is_none()
            && row.positive("num_accelerators") != Some(1.0),
    ];
    if missing.iter().filter(|missing| **missing).count() > 1 {
        return Err("two or more of sequence length, size, batch, precision and parallelism are not stated");
    }
    // GPT-3's sequences, else Llama's.
    let usual_seq = if row.text("model").starts_with("gpt") { 2048.0 } else { 4096.0 };
    let seq = row.positive("seq_len").unwrap_or(usual_seq);

    let full = shards_fully(row, stack);
    let (tp, pp) = (stated(row, "tp", "tp"), stated(row, "pp", "pp"));
    let cp = stated(row, "cp", "cp").unwrap_or(1.0);
    let product = tp.unwrap_or(1.0) * pp.unwrap_or(1.0) * cp;
    // A run whose size is not stated: as many replicas as are, at least a node.
    let least = product * row.positive("dp").unwrap_or(1.0);
    let counted = row.positive("num_accelerators");
    let implied = || (tp.is_some() || pp.is_some()).then(|| least.max(row.positive("ep").unwrap_or(8.0)).max(8.0));
    let mut n = counted.or_else(implied).ok_or("number of accelerators not stated")?;
    let mut devices = 1.0;
    let by_die = matches!(acc.generation, Generation::Trainium | Generation::PonteVecchio | Generation::Cdna2);
    if by_die {
        acc = acc.split(2.0);
        n *= 2.0;
        devices = 2.0;
    }
    let layout = match (tp, pp) {
        (None, None) if !full && n > 1.0 => {
            let domain = row.positive("accelerators_per_node").unwrap_or(8.0) * devices;
            let global = stated(row, "global_batch", "gbs").unwrap_or(f64::INFINITY);
            let plain = TrainingInput {
                global,
                arch,
                accelerator: acc,
                accelerators: n,
                domain,
                seq,
                cp,
                ..TrainingInput::default()
            };
            training_words::least_layout(&plain).ok_or("parallelism not stated, and no usual one fits")?
        }
        (tp, pp) => (tp.unwrap_or(1.0), pp.unwrap_or(1.0)),
    };
    let (tp, pp) = layout;
    let dp = n / (tp * pp * cp);
    if dp < 1.0 || (dp - dp.round()).abs() > 1e-6 {
        return Err("tp * pp * cp does not divide the number of accelerators");
    }
    let micro = stated(row, "micro_batch", "mbs");
    // Not stated: JAX does not accumulate; pipelines run one sequence at a time; others about 8192 tokens.
    let usual = if pp > 1.0 && stack != Stack::Xla { 1.0 } else { (8192.0 / seq).floor().max(1.0) };
    let global = match (stated(row, "global_batch", "gbs"), micro) {
        (Some(g), _) => g,
        (None, Some(m)) if pp <= 1.0 => m * dp,
        (None, m) => training_words::usual_batch(dp, m.unwrap_or(usual), seq, stack != Stack::Xla),
    };
    let per_rank = (global / dp).max(1.0);
    let micro = micro.unwrap_or(match stack {
        Stack::Xla => per_rank,
        _ => usual,
    });
    let micro = micro.min((global / dp).max(1e-3));

    let per_node = row.positive("accelerators_per_node").unwrap_or(8.0) * devices;
    let rack = row.text("intra_node_link").contains("NVL72") && !notes.contains("MNNVL=0");
    let slice = slice_chips(notes).unwrap_or(acc.domain).min(n);
    let domain = match acc.generation {
        Generation::Tpu => slice,
        _ if rack => acc.domain,
        _ => per_node,
    };
    let nic_bw = node_gbps(row.text("inter_node_link"), per_node / devices).map_or(0.0, |g| g * 1e9 / 8.0 / per_node);
    let lora = notes.contains("LoRA") && !notes.contains("SFT;");
    let sharding = sharding(row, stack);
    let pure = notes.contains("MP mode PURE")
        || (stack == Stack::Megatron && sharding == Sharding::Zero3)
        || row.text("framework").contains("FSDP1")
        || stack == Stack::Xla;
    // DeepEP and HybridEP are expert-parallel dispatchers: where no degree is stated, experts span the domain.
    let spread = if notes.contains("DeepEP") || notes.contains("HybridEP") { domain } else { 1.0 };
    let ep = stated(row, "ep", "ep").unwrap_or(spread.min(n).min(arch.experts.max(1.0)));
    let deepspeed = row.text("framework").to_ascii_lowercase().contains("deepspeed");
    let mut input = TrainingInput {
        arch,
        accelerator: acc,
        accelerators: n,
        domain,
        nic_bw,
        seq,
        micro,
        global,
        tp,
        pp,
        vpp: stated(row, "vpp", "vpp").unwrap_or(1.0),
        dp,
        cp,
        ep: if arch.is_moe() { ep.min(n) } else { 1.0 },
        sequence_parallel: row
            .flag("sequence_parallel")
            .unwrap_or(tp > 1.0 && matches!(stack, Stack::Megatron | Stack::Graph)),
        sharding,
        shard: if notes.contains("HYBRID_SHARD") {
            per_node
        } else if notes.contains("DP across slices") || notes.contains("slice(s) of") {
            (domain / tp).max(1.0)
        } else {
            0.0
        },
        schedule: schedule(row),
        recompute: match training_words::recompute(row) {
            Some(stated) => stated,
            None if counts_recompute(notes, measured, &arch, seq) => Recompute::Full,
            None => Recompute::Auto,
        },
        precision,
        block_scaled: row.text("precision").starts_with("mx") || row.text("precision").starts_with("nv"),
        grad_bytes: if pure { 2.0 } else { 4.0 },
        // DeepSpeed reduces gradients in the format that it trains in; its bf16 optimizer sums and reduces in fp32.
        reduce_bytes: if deepspeed && precision == Precision::Fp16 { 2.0 } else { 0.0 },
        // PEFT adapts all linear layers of a block as a rule; NeMo's recipes attention's projections.
        adapted_mlps: stack != Stack::Megatron && !notes.contains("attention LoRA"),
        trained: if lora { 0.01 } else { 1.0 },
        software: software(row, stack, &arch, precision),
        ..TrainingInput::default()
    };
    if deepspeed && sharding != Sharding::None {
        // Its documented defaults: reduce_bucket_size and allgather_bucket_size of 5e8 elements, in 16 bit.
        input.bucket_bytes = 2.0 * 5e8 * 2.0;
    }
    if training_words::sharding(row).is_none() {
        input.sharding = fitting_sharding(&input);
    }
    // Embedding and output layer may have a chunk of their own, as layers that do not go in evenly are counted.
    if input.vpp > 1.0 && (arch.layers + 2.0) / (pp * input.vpp) < 1.0 {
        input.vpp = 1.0;
    }
    Ok(Case {
        id: row.text("id").to_string(),
        source: row.text("source").to_string(),
        accelerator: row.text("accelerator").to_string(),
        model: row.text("model").to_string(),
        framework: row.text("framework").to_string(),
        input,
        measured,
        memory: stated_memory(row),
        devices,
    })
}
