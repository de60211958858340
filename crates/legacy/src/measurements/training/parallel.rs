//! Size, parallelism, batches and sharding of a training run.

use atlas_catalog::Accelerator;

use super::super::architecture::Shape;
use super::super::devices::training_ranks_per_chip;
use super::super::names::is_gpt;
use super::super::record::Record;
use super::super::table::Row;
use super::super::text::{clause, normalize_word, number_after, number_in_notes};

/// Fills the columns for size, parallelism, batches and sharding. Excludes rows that state too little or contradict
/// themselves.
pub(super) fn fill(record: &mut Record, row: &Row, device: Option<&Accelerator>, shape: Option<&Shape>, family: &str) {
    let notes = row.text("notes");
    record.take(row, "num_accelerators", "num_accelerators");
    record.take(row, "accelerators_per_node", "accelerators_per_node");
    record.take(row, "seq_len", "seq_len");
    for (column, short) in [
        ("tp", "tp"),
        ("pp", "pp"),
        ("cp", "cp"),
        ("ep", "ep"),
        ("vpp", "vpp"),
        ("micro_batch", "mbs"),
        ("global_batch", "gbs"),
    ] {
        if record.take(row, column, column).is_none()
            && row.text(column).is_empty()
            && let Some(found) = number_in_notes(notes, short)
        {
            record.convert(column, found, format!("notes \"{}{found}\"", short.to_uppercase()));
        }
    }
    record.take(row, "dp", "dp");
    if let Some(width) = number_after(notes, "expert TP=").or_else(|| number_after(notes, "expert TP ")) {
        record.convert("etp", width, format!("notes \"{}\"", clause(notes, "expert TP")));
    }
    if let Some(flag) = flag(row.text("sequence_parallel")) {
        match row.text("sequence_parallel") {
            text @ ("true" | "false") => record.copy_text("sequence_parallel", text),
            text => record.convert("sequence_parallel", flag, format!("\"{text}\"")),
        }
    } else if notes.contains("no sequence parallelism") {
        record.convert("sequence_parallel", false, "notes \"no sequence parallelism\"");
    } else if notes.contains("sequence parallelism") && record.number("tp").is_some_and(|tp| tp > 1.0) {
        record.convert("sequence_parallel", true, "notes \"sequence parallelism\"");
    }
    sharding(record, row);
    let ranks = training_ranks_per_chip(record.text("accelerator"));
    exclude_incomplete(record, row, family);
    if record.is_excluded() {
        return;
    }
    lengths(record, row, shape);
    size(record, ranks);
    layout(record, device, shape, ranks, family);
    batches(record, family, ranks);
    experts(record, notes, shape, ranks);
    exclude_indivisible(record, ranks);
}

fn flag(text: &str) -> Option<bool> {
    match normalize_word(text).as_str() {
        "true" | "yes" | "1" | "on" => Some(true),
        "false" | "no" | "0" | "off" => Some(false),
        _ => None,
    }
}

/// Fills `sharding` and `shard_size` from the column, the notes or the name of the framework.
fn sharding(record: &mut Record, row: &Row) {
    let (text, notes) = (row.text("sharding"), row.text("notes"));
    let framework = row.text("framework");
    let quote = |phrase: &str| format!("notes \"{}\"", clause(notes, phrase));
    let word = normalize_word(text);
    let meant = match word.as_str() {
        "zero1" | "distributedoptimizer" | "distopt" => Some("zero1"),
        "zero2" | "shardgradop" => Some("zero2"),
        "zero3" | "fsdp" | "fsdp1" | "fsdp2" | "fullshard" | "hybridshard" | "hsdp" => Some("zero3"),
        "none" | "ddp" | "noshard" | "zero0" => Some("none"),
        "" => None,
        _ => {
            record.problem("sharding", text, "none, zero1, zero2, zero3 or fsdp");
            None
        }
    };
    let keeps = "keeps parameters after forward";
    match meant {
        Some("zero3") if notes.contains(keeps) || notes.contains("SHARD_GRAD_OP") => {
            let said = if notes.contains(keeps) { keeps } else { "SHARD_GRAD_OP" };
            record.convert("sharding", "zero2", quote(said));
        }
        Some(meant) if meant == text => record.copy_text("sharding", text),
        Some(meant) => record.convert("sharding", meant, format!("\"{text}\"")),
        None => {
            let said = [
                ("SHARD_GRAD_OP", "zero2"),
                ("FULL_SHARD", "zero3"),
                ("HYBRID_SHARD", "zero3"),
                ("ZeRO-3", "zero3"),
                ("ZeRO-2", "zero2"),
                ("ZeRO-1", "zero1"),
                ("DistributedOptimizer", "zero1"),
                ("distributed optimizer", "zero1"),
            ];
            if let Some((word, meant)) = said.into_iter().find(|(word, _)| notes.contains(word)) {
                record.convert("sharding", meant, quote(word));
            } else if let Some((word, meant)) =
                [("ZeRO-3", "zero3"), ("distributed optimizer", "zero1"), ("FSDP", "zero3")]
                    .into_iter()
                    .find(|(word, _)| framework.contains(word))
            {
                record.convert("sharding", meant, format!("\"{framework}\" ({word})"));
            }
        }
    }
    shard_size(record, notes, &word, quote);
}

/// Fills `shard_size`, the number of ranks that states are sharded over, if it is not all data-parallel ranks.
fn shard_size(record: &mut Record, notes: &str, word: &str, quote: impl Fn(&str) -> String) {
    let node = record.number("accelerators_per_node").unwrap_or(8.0);
    if let Some(group) = number_after(notes, "zero1 group=") {
        record.convert("shard_size", group, quote("zero1 group="));
    } else if let Some(degree) = number_after(notes, "degree ").filter(|_| notes.contains("sharding stage")) {
        record.convert("shard_size", degree, quote("degree "));
        if let Some(stage) = number_after(notes, "sharding stage").filter(|s| (1.0..=3.0).contains(s)) {
            record.convert("sharding", format!("zero{stage}"), quote("sharding stage"));
        }
    } else if let Some(group) = number_after(notes, "FSDP=").filter(|n| *n > 1.0) {
        record.convert("shard_size", group, quote("FSDP="));
    } else if notes.contains("HYBRID_SHARD") || word == "hybridshard" || word == "hsdp" {
        record.convert("shard_size", node, format!("{}, shards within a node", quote("HYBRID_SHARD")));
    } else if notes.split([';', ',']).any(|part| part.trim() == "HSDP") {
        record.assume("shard_size", node, "HSDP, shards within a node by default");
    } else if let Some(slice) = super::network::slice_chips(notes).filter(|_| notes.contains("DP across slices")) {
        let tp = record.number("tp").unwrap_or(1.0);
        record.convert("shard_size", (slice / tp).max(1.0), quote("DP across slices"));
    }
}

/// Excludes rows that lack two or more of the values that determine the throughput. The estimate for such a row would
/// depend mostly on assumptions.
fn exclude_incomplete(record: &mut Record, row: &Row, family: &str) {
    let fully = matches!(record.text("sharding"), "zero2" | "zero3") || is_jax(family);
    let said = row.text("precision");
    let noted = record.has("precision") && row.text("notes").to_ascii_lowercase().contains("fp");
    let mut missing = Vec::new();
    let mut lacks = |lacking: bool, what: &'static str| {
        if lacking {
            missing.push(what);
        }
    };
    lacks(!record.has("seq_len"), "sequence length");
    lacks(!record.has("num_accelerators"), "number of accelerators");
    lacks(!record.has("global_batch") && !record.has("micro_batch"), "batch");
    lacks(said.is_empty() && !noted, "precision");
    let single = record.number("num_accelerators") == Some(1.0);
    lacks(!fully && !record.has("tp") && !record.has("pp") && !single, "parallelism");
    if missing.len() > 1 {
        record.exclude(format!("the source does not state {}", missing.join(", ")));
    }
}

fn is_jax(family: &str) -> bool {
    matches!(family, "maxtext" | "pax" | "t5x" | "jax")
}

fn lengths(record: &mut Record, row: &Row, shape: Option<&Shape>) {
    if !record.has("seq_len") {
        let usual = if is_gpt(row.text("model")) { 2048.0 } else { 4096.0 };
        let longest = shape.and_then(|shape| shape.max_context).unwrap_or(usual);
        record.assume("seq_len", usual.min(longest), "not stated, usual pre-training length");
    }
}

/// Returns the number of ranks per replica: TP x PP x CP.
fn replica(record: &Record) -> f64 {
    ["tp", "pp", "cp"].iter().map(|column| record.number(column).unwrap_or(1.0)).product()
}

/// Fills the number of accelerators, if it is not stated, with the smallest one for the stated degrees: enough for the
/// stated replicas and the expert-parallel ranks, and at least eight ranks. `ranks` is the number of ranks per
/// accelerator.
fn size(record: &mut Record, ranks: f64) {
    if record.has("num_accelerators") {
        return;
    }
    let least = replica(record) * record.number("dp").unwrap_or(1.0);
    let whole = least.max(record.number("ep").unwrap_or(8.0) * record.number("pp").unwrap_or(1.0)).max(8.0);
    if record.has("tp") || record.has("pp") {
        record.assume("num_accelerators", (whole / ranks).ceil(), "not stated, fewest for the stated layout");
    } else {
        record.problem("num_accelerators", "", "a number of accelerators");
    }
}

/// Fills TP and PP if they are not stated: 1 if states are fully sharded, otherwise the smallest degrees with which the
/// model states fit in memory. The latter is marked as inferred, since it follows from the run having fit. `ranks` is
/// the number of ranks per accelerator.
fn layout(record: &mut Record, device: Option<&Accelerator>, shape: Option<&Shape>, ranks: f64, family: &str) {
    let fully = matches!(record.text("sharding"), "zero2" | "zero3") || is_jax(family);
    let Some(n) = record.number("num_accelerators").map(|n| n * ranks) else { return };
    if record.has("tp") || record.has("pp") {
        for column in ["tp", "pp"] {
            if !record.has(column) {
                record.assume(column, 1.0, "not stated, although other degrees are");
            }
        }
        return;
    }
    if fully || n <= 1.0 {
        for column in ["tp", "pp"] {
            record.assume(column, 1.0, "not stated, states are fully sharded");
        }
        return;
    }
    let (Some(device), Some(shape)) = (device, shape) else { return };
    let memory = 0.8 * device.memory.gb * 1e9 / ranks;
    let lora = record.text("trained") == "lora";
    let node = record.number("accelerators_per_node").unwrap_or(8.0) * ranks;
    let cp = record.number("cp").unwrap_or(1.0);
    let fits = |tp: f64, pp: f64| {
        let dp = n / (tp * pp * cp);
        // 16-bit weights, 32-bit gradients, and Adam's states sharded over the data-parallel ranks.
        let bytes = if lora { 2.0 } else { 6.0 + 12.0 / dp };
        dp >= 1.0 && dp.fract() == 0.0 && pp <= shape.layers && shape.params * bytes / (tp * pp) <= memory
    };
    let powers = |most: f64| (0..).map(|i| 2_f64.powi(i)).take_while(move |p| *p <= most);
    let wide = node.min(8.0).min(n);
    let layouts = powers(wide).map(|tp| (tp, 1.0)).chain(powers(64.0).map(|pp| (wide, pp)));
    match layouts.into_iter().find(|(tp, pp)| fits(*tp, *pp)) {
        Some((tp, pp)) => {
            record.infer("tp", tp, "not stated, fewest ranks that hold the model's states");
            record.infer("pp", pp, "not stated, fewest ranks that hold the model's states");
        }
        None => record.problem("tp", "", "tensor- and pipeline-parallel ranks"),
    }
}

/// Fills batch sizes that are not stated with typical values of the software.
fn batches(record: &mut Record, family: &str, ranks: f64) {
    let (Some(n), Some(seq)) = (record.number("num_accelerators"), record.number("seq_len")) else { return };
    let dp = (n * ranks / replica(record)).max(1.0);
    let pipeline = record.number("pp").unwrap_or(1.0) > 1.0;
    let micro = record.number("micro_batch");
    let usual = if pipeline && !is_jax(family) { 1.0 } else { (8192.0 / seq).floor().max(1.0) };
    if !record.has("global_batch") {
        let one = dp * micro.unwrap_or(usual);
        if micro.is_some() && !pipeline {
            record.assume("global_batch", one, "not stated, no gradient accumulation");
        } else {
            let times = if is_jax(family) { 1.0 } else { (4.0 * 1024.0 * 1024.0 / (one * seq)).round().max(1.0) };
            record.assume("global_batch", one * times, "not stated, about four million tokens");
        }
    }
    if micro.is_none() {
        let each = (record.number("global_batch").unwrap_or(dp) / dp).max(1e-3);
        if is_jax(family) {
            record.assume("micro_batch", each.max(1.0), "not stated, JAX does not accumulate gradients");
        } else {
            record.assume("micro_batch", usual.min(each.max(1.0)), "not stated, one sequence or about 8192 tokens");
        }
    }
}

/// Fills EP with the ranks of a node if it is not stated but DeepEP or HybridEP is used, which imply expert
/// parallelism.
fn experts(record: &mut Record, notes: &str, shape: Option<&Shape>, ranks: f64) {
    let Some(shape) = shape.filter(|shape| shape.is_moe()) else { return };
    if record.has("ep") || !(notes.contains("DeepEP") || notes.contains("HybridEP")) {
        return;
    }
    let n = record.number("num_accelerators").unwrap_or(1.0) * ranks;
    let node = record.number("accelerators_per_node").unwrap_or(8.0) * ranks;
    let degree = node.min(n).min(shape.experts).floor().max(1.0);
    record.assume("ep", degree, "not stated with an expert-parallel dispatcher, number of ranks of a node");
}

/// Excludes rows whose parallelism does not divide the ranks, or whose global batch is smaller than DP.
fn exclude_indivisible(record: &mut Record, ranks: f64) {
    let Some(n) = record.number("num_accelerators") else { return };
    let whole = replica(record);
    let dp = n * ranks / whole;
    if dp < 1.0 || (dp - dp.round()).abs() > 1e-6 {
        record.exclude(format!("tp * pp * cp = {whole} does not divide {} ranks", n * ranks));
    } else if record.number("global_batch").is_some_and(|batch| batch < dp * 0.999) {
        record.exclude(format!("the global batch is smaller than the {dp} data-parallel ranks"));
    }
}
