//! Parallelism of a served model. Degrees count ranks as the software does: cores of a Neuron chip, halves of a TPU
//! v7x.
//!
//! `tp` is the tensor-parallel degree of one attention group: with data-parallel attention over eight ranks, `tp` is 1
//! and `attention_dp` is 8, regardless of which engine option is set to 8. `dp` counts independent replicas.

use atlas_catalog::Accelerator;

use super::super::architecture::Shape;
use super::super::devices::ranks_per_chip;
use super::super::record::Record;
use super::super::software::splits_layers;
use super::super::table::Row;
use super::super::text::{clause, number_after};
use super::flags::Flags;

/// Fills the number of accelerators from its column or the stated degrees. Returns the number of ranks.
pub(super) fn size(record: &mut Record, row: &Row) -> f64 {
    let per_chip = ranks_per_chip(record.text("accelerator"));
    if record.take(row, "num_accelerators", "num_accelerators").is_none() {
        let degrees: f64 = ["tp", "pp"].iter().map(|column| row.positive(column).unwrap_or(1.0)).product();
        let stated = row.positive("tp").is_some();
        let chips = (degrees / per_chip).ceil().max(1.0);
        let why = if stated { "not stated, number of ranks of one replica" } else { "not stated, one accelerator" };
        record.assume("num_accelerators", chips, why);
    }
    record.number("num_accelerators").unwrap_or(1.0) * per_chip
}

/// Inputs of the defaults for a layout that the row does not state.
pub(super) struct Context<'a> {
    pub family: &'a str,
    pub shape: Option<&'a Shape>,
    pub device: Option<&'a Accelerator>,
    pub ranks: f64,
    pub bytes_per_weight: f64,
}

impl Context<'_> {
    /// Returns the smallest power of two of ranks such that weights take at most 60 % of the memory, bounded by the
    /// number of ranks.
    fn fewest_ranks(&self) -> Option<f64> {
        let (shape, device) = (self.shape?, self.device?);
        let memory = device.memory.gb * 1e9 / ranks_per_chip(&device.id);
        let mut tp = 1.0;
        while tp < self.ranks && shape.params * self.bytes_per_weight / tp > 0.6 * memory {
            tp *= 2.0;
        }
        Some(tp.min(self.ranks))
    }
}

/// Fills `tp`, `pp`, `ep`, `dp` and `attention_dp`.
pub(super) fn fill(record: &mut Record, row: &Row, context: &Context<'_>) {
    let notes = row.text("notes");
    let flags = Flags::of(notes);
    let options: [(&str, &[&str]); 3] = [
        ("tp", &["tp", "tp-size", "tensor-parallel-size"]),
        ("pp", &["pp", "pp-size", "pipeline-parallel-size"]),
        ("ep", &["ep", "ep-size", "expert-parallel-size"]),
    ];
    for (column, names) in options {
        let column: &'static str = column;
        if record.take(row, column, column).is_none()
            && row.text(column).is_empty()
            && let Some(found) = flags.number(names)
        {
            record.convert(column, found, format!("notes, option --{}", names.last().unwrap_or(&column)));
        }
    }
    let dp = record.take(row, "dp", "dp");
    let moe = context.shape.is_some_and(Shape::is_moe);
    if record.has("decode_workers") {
        return;
    }
    if !record.has("tp") && !tp_from_replicas(record, dp, context, moe) {
        return fill_default_layout(record, context, moe);
    }
    let groups = attention_groups(record, row, dp, context);
    if groups > 1.0 {
        return fill_attention_dp_layout(record, groups, dp, context);
    }
    let pp = record.number("pp").unwrap_or(1.0);
    let (tp, ep) = (record.number("tp").unwrap_or(1.0), record.number("ep").unwrap_or(1.0));
    // With experts on all ranks and fewer tensor-parallel ranks, attention is assumed to be split over all ranks as
    // well.
    if ep > 1.0 && tp * pp < context.ranks && ep >= context.ranks {
        let why = format!("tp {tp} with experts on all {ep} ranks, attention sliced over the same ranks");
        record.assume("tp", (context.ranks / pp).round(), why);
    }
    replicas(record, dp, context);
    reduce_to_used_accelerators(record, notes);
}

/// Converts TP from accelerators to dies, which the software counts as ranks, if the row counts accelerators with
/// several dies.
pub(super) fn count_dies(record: &mut Record, device: Option<&Accelerator>) {
    let dies = device.map_or(1.0, |device| f64::from(device.ranks));
    let degree = |column: &str| record.number(column).unwrap_or(1.0);
    let ranks: f64 = ["tp", "pp", "attention_dp", "dp"].into_iter().map(degree).product();
    if dies > 1.0 && ranks <= degree("num_accelerators") && !record.has("decode_workers") {
        let tp = degree("tp");
        record.convert("tp", tp * dies, format!("tp {tp} counts accelerators, software counts {dies} dies for each"));
    }
}

/// Fills TP of a dense model with the ranks per replica, if only the number of replicas is stated: `dp` 8 on eight
/// accelerators leaves one rank each. Returns whether it was filled.
fn tp_from_replicas(record: &mut Record, dp: Option<f64>, context: &Context<'_>, moe: bool) -> bool {
    let Some(dp) = dp.filter(|dp| *dp > 1.0 && *dp <= context.ranks && !moe) else { return false };
    let pp = record.number("pp").unwrap_or(1.0);
    record.assume("tp", (context.ranks / dp / pp).floor().max(1.0), "not stated, number of ranks of one replica");
    true
}

/// Fills the number of independent replicas, if it is not stated.
fn replicas(record: &mut Record, dp: Option<f64>, context: &Context<'_>) {
    if dp.is_some() {
        return;
    }
    let replica = record.number("tp").unwrap_or(1.0) * record.number("pp").unwrap_or(1.0);
    let whole = (context.ranks / replica).floor().max(1.0);
    if whole <= 1.0 {
        return;
    }
    match context.family {
        // Sources for Neuron measure one replica on a part of an instance.
        "transformers-neuronx" | "vllm-neuron" => record.assume("dp", 1.0, "not stated, one replica was measured"),
        _ => record.assume("dp", whole, "not stated, replicas fill the accelerators"),
    }
}

/// Reduces the number of accelerators if one replica uses a part of an instance: `inf2.48xlarge (12 chips) but TP8 uses
/// 8 of 24 cores`.
fn reduce_to_used_accelerators(record: &mut Record, notes: &str) {
    let Some(clause) = notes.split(';').find(|clause| clause.contains(" uses ") && clause.contains(" of ")) else {
        return;
    };
    let replica = record.number("tp").unwrap_or(1.0) * record.number("pp").unwrap_or(1.0);
    let per_chip = ranks_per_chip(record.text("accelerator"));
    let used = number_after(clause, " uses ").filter(|used| *used == replica);
    let listed = record.number("num_accelerators").unwrap_or(1.0);
    if let Some(chips) = used.map(|used| (used / per_chip).ceil()).filter(|chips| *chips < listed) {
        record.convert("num_accelerators", chips, format!("notes \"{}\"", clause.trim()));
    }
}

/// Fills the layout of a row that does not state one.
fn fill_default_layout(record: &mut Record, context: &Context<'_>, moe: bool) {
    let ranks = context.ranks;
    if ranks <= 1.0 {
        return record.assume("tp", 1.0, "one accelerator");
    }
    if splits_layers(context.family) {
        record.assume("tp", 1.0, "the software splits layers over devices");
        return record.assume("pp", ranks, "the software splits layers over devices");
    }
    let fit_one = context.fewest_ranks() == Some(1.0);
    if moe && ranks >= 4.0 && !fit_one {
        let why = "not stated, data-parallel attention and unsplit experts on the ranks of a node";
        let stated = record.number("ep").filter(|ep| *ep > 1.0 && *ep <= ranks);
        let experts = context.shape.map_or(0.0, |shape| shape.experts);
        let divides = |groups: &f64| ranks % groups == 0.0 && experts % groups == 0.0;
        let usual = (1..=8).rev().map(f64::from).find(divides).unwrap_or(1.0);
        let groups = stated.unwrap_or(usual);
        record.assume("tp", 1.0, why);
        if !record.has("ep") {
            record.assume("ep", groups, why);
        }
        record.assume("attention_dp", groups, why);
        return record.assume("dp", (ranks / groups).floor().max(1.0), why);
    }
    let Some(tp) = context.fewest_ranks() else {
        return record.problem("tp", "", "tensor-parallel ranks");
    };
    let why = "not stated, fewest ranks on which weights take at most 60 % of the memory";
    record.assume("tp", tp, why);
    record.assume("dp", (ranks / tp).floor().max(1.0), why);
}

/// Returns the number of groups of data-parallel attention; 1 without it.
fn attention_groups(record: &Record, row: &Row, dp: Option<f64>, context: &Context<'_>) -> f64 {
    let notes = row.text("notes");
    let lower = notes.to_ascii_lowercase();
    let flags = Flags::of(notes);
    let said = ["attention dp", "dp attention", "dp for attention", "attention data-parallel"];
    let replica = record.number("tp").unwrap_or(1.0) * record.number("pp").unwrap_or(1.0);
    let dp = dp.unwrap_or(1.0);
    let flagged = flags.has(&["enable-dp-attention", "enable-attention-dp"]);
    if flagged || said.iter().any(|phrase| lower.contains(phrase)) {
        return if dp > 1.0 { dp } else { flags.number(&["dp", "dp-size"]).unwrap_or(context.ranks) };
    }
    if dp > 1.0 && replica * dp > context.ranks * 1.01 {
        return dp;
    }
    // The experts are distributed over the data-parallel ranks: `-dp 8 --enable-expert-parallel`.
    let ep = record.number("ep").unwrap_or(1.0);
    if dp > 1.0 && ep >= replica * dp && context.shape.is_some_and(Shape::is_moe) {
        return dp;
    }
    // With latent attention, every tensor-parallel rank stores the same KV cache. Deployments for throughput with
    // experts on all ranks therefore use data-parallel attention (DeepSeek-V3 report, section 3.4). If the notes quote
    // a command line, the option would be in it.
    let tp = record.number("tp").unwrap_or(1.0);
    let bulk = matches!(record.text("load"), "burst" | "open");
    let latent = context.shape.is_some_and(|shape| shape.latent);
    if latent && bulk && ep > 1.0 && ep >= tp && !flags.any() { tp } else { 1.0 }
}

/// Fills a layout with data-parallel attention.
fn fill_attention_dp_layout(record: &mut Record, groups: f64, dp: Option<f64>, context: &Context<'_>) {
    let replica = record.number("tp").unwrap_or(1.0) * record.number("pp").unwrap_or(1.0);
    let ep = record.number("ep").unwrap_or(1.0);
    // Ranks per replica: those of all groups if `dp` counts the groups, otherwise those that share the experts.
    let beyond = dp.filter(|dp| *dp > 1.0 && replica * dp <= context.ranks * 1.01).map(|dp| replica * dp);
    let ranks = beyond.unwrap_or_else(|| replica.max(ep));
    let ranks = if ranks > 1.0 && ranks <= context.ranks { ranks } else { context.ranks };
    // The ranks of each pipeline stage are divided into groups.
    let stage = (ranks / record.number("pp").unwrap_or(1.0)).floor().max(1.0);
    let groups = groups.min(stage);
    let tp = (stage / groups).floor().max(1.0);
    let why = format!("data-parallel attention, {groups} groups of the {stage} ranks of a replica's stage");
    if record.number("tp") != Some(tp) {
        record.convert("tp", tp, &why);
    }
    record.convert("attention_dp", groups, &why);
    record.convert("dp", (context.ranks / ranks).floor().max(1.0), &why);
}

/// Fills the accelerators per node if the notes state the number of nodes, as those of multi-node MLPerf systems do.
pub(super) fn nodes(record: &mut Record, notes: &str) {
    let phrase = "system of ";
    let Some(rest) = notes.split(phrase).nth(1) else { return };
    let Some(count) = rest.split(' ').next().and_then(|n| n.parse::<f64>().ok()).filter(|n| *n >= 1.0) else { return };
    if !rest.contains("node") {
        return;
    }
    if let Some(n) = record.number("num_accelerators").filter(|n| n % count == 0.0) {
        record.convert("accelerators_per_node", n / count, format!("notes \"{}\"", clause(notes, phrase)));
    }
}
