//! Conversion of serving latency rows, with the columns of ai-dynamo/aiconfigurator's `silicon_sample.csv`.

use std::collections::HashMap;

use atlas_catalog::{Accelerator, Catalog};

use super::architecture::{self, ModelUse, Shape};
use super::record::Record;
use super::serving::formats;
use super::serving::pools::{self, Pool};
use super::software::{self, SoftwareUse};
use super::table::Row;
use super::text::quantity;
use super::{TableKind, devices};

/// Converts one row.
pub(super) fn convert(row: &Row, catalog: &Catalog) -> Record {
    let mut record = Record::new(TableKind::Latency);
    for column in ["id", "source", "source_path", "notes"] {
        record.copy_text(column, row.text(column));
    }
    let origin = row.text("silicon_data_source");
    if !origin.is_empty() && row.text("source_path").is_empty() {
        record.convert("source_path", origin, "column silicon_data_source");
    }
    let date = date(row, origin);
    match row.text("date") {
        "" if !date.is_empty() => record.convert("date", date.as_str(), "column silicon_data_source"),
        text => record.copy_text("date", text),
    }
    let device = devices::fill(&mut record, catalog, row.text("system"));
    let version = version(row, origin);
    software::fill(&mut record, SoftwareUse::Serving, row.text("backend"), &version, &date);
    let path = row.text("model_path");
    let shape = architecture::fill(&mut record, row, catalog, path, ModelUse::Serving);
    let inferencemax = is_inferencemax(origin);
    if inferencemax {
        record.convert("harness", "inferencemax", "column silicon_data_source");
    }
    lengths(&mut record, row, inferencemax);
    load(&mut record, origin, inferencemax);
    weights(&mut record, row, shape.as_ref());
    if row.text("mode").to_ascii_lowercase().starts_with("disagg") {
        disaggregated(&mut record, row, shape.as_ref());
    } else {
        aggregated(&mut record, row, shape.as_ref());
    }
    if inferencemax {
        scripts(&mut record, row, shape.as_ref(), device.as_deref());
    }
    record.take(row, "silicon_ttft_ms", "ttft_ms");
    record.take(row, "silicon_tpot_ms", "tpot_ms");
    if !record.has("ttft_ms") || !record.has("tpot_ms") {
        record.exclude("states no latency");
    }
    record
}

/// Returns the date of the measurement: that of the date column, of a nightly image, or of the origin, as in
/// `measured=2026-04-17T…`, `source_file=2025-10-12.csv` or `db-dump/2026-04-27`.
fn date(row: &Row, origin: &str) -> String {
    if !row.text("date").is_empty() {
        return super::iso_date(row.text("date"));
    }
    let day = |key: &str| {
        let text = origin.split(key).nth(1)?.get(..10)?;
        let digits =
            text.bytes().enumerate().all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() });
        digits.then(|| text.to_owned())
    };
    // The tag of a nightly image contains its build date.
    let tag = format!("{};{}", row.text("backend_version"), origin);
    let built = tag.split(|c: char| !c.is_ascii_digit()).find(|word| word.len() == 8 && word.starts_with("20"));
    if let Some(built) = built.filter(|_| tag.contains("nightly")) {
        return super::iso_date(built);
    }
    day("measured=").or_else(|| day("source_file=")).or_else(|| day("db-dump/")).unwrap_or_default()
}

/// Returns the version of the engine: that of its column, by default that of the image in the origin. The tag of a
/// Dynamo image is the version of Dynamo rather than of the engine it contains.
fn version(row: &Row, origin: &str) -> String {
    let stated = row.text("backend_version");
    let digits = |text: &str| text.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    let image = origin.split(';').map(str::trim).find_map(|part| {
        let part = part.strip_prefix("image=").unwrap_or(part);
        let (path, tag) = part.rsplit_once(':')?;
        (path.contains('/') && !path.contains('=')).then_some((path, tag))
    });
    let dynamo = image.filter(|(path, _)| path.contains("dynamo")).map(|(_, tag)| tag);
    if dynamo.is_some_and(|tag| tag == stated || stated.is_empty()) {
        // With TensorRT-LLM, a number that does not start with 0 is the version of the engine.
        let own = row.text("backend").eq_ignore_ascii_case("trtllm") && !stated.starts_with('0') && digits(stated);
        return if own { stated.to_owned() } else { String::new() };
    }
    if digits(stated) {
        return stated.to_owned();
    }
    image.map(|(_, tag)| tag).filter(|tag| digits(tag)).unwrap_or(stated).to_owned()
}

/// Whether the row is from InferenceMAX, whose origins contain a workflow run or the date of a table.
fn is_inferencemax(origin: &str) -> bool {
    let dated = |key: &str| origin.split(key).nth(1).is_some_and(|rest| rest.starts_with("20"));
    origin.contains("workflow_run_id=") || dated("source_file=") || dated("db-dump/")
}

fn lengths(record: &mut Record, row: &Row, inferencemax: bool) {
    let (input, output) = (record.take(row, "isl", "input_len"), record.take(row, "osl", "output_len"));
    if !inferencemax {
        return;
    }
    let why = "InferenceMAX's client draws lengths from 0.8 to 1.0 of the nominal ones";
    if let Some(input) = input {
        record.assume("input_len", 0.9 * input, why);
    }
    if let Some(output) = output.filter(|output| *output >= 2.0) {
        record.assume("output_len", 0.9 * output, why);
        record.assume("output_len_max", output, why);
        record.assume("output_spread", 1.0 / 0.9, why);
    }
}

fn load(record: &mut Record, origin: &str, inferencemax: bool) {
    let Some(concurrency) = after(origin, "silicon_concurrency=").filter(|n| *n > 0.0) else {
        record.problem("concurrency", origin, "silicon_concurrency= in column silicon_data_source");
        return record.exclude("the source does not state the concurrency");
    };
    let why = "column silicon_data_source";
    record.convert("concurrency", concurrency, why);
    record.assume("load", "closed", "the client keeps the number of concurrent requests constant");
    let requests = (10.0 * concurrency).ceil();
    match inferencemax {
        true => record.assume("requests", requests, "InferenceMAX's client sends ten requests per concurrent request"),
        false => record.assume("requests", requests, "not stated, ten requests per concurrent request"),
    }
}

fn weights(record: &mut Record, row: &Row, shape: Option<&Shape>) {
    let path = row.text("model_path");
    let own = formats::native(shape.map_or("", |shape| shape.id.as_str()), path);
    let (stated, products) = (row.text("precision"), row.text("gemm_quant_mode"));
    if own == "mxfp4" {
        let why = format!("\"{stated}\" of a checkpoint that exists only in MXFP4");
        return record.assume("weights", "mxfp4", why);
    }
    match (formats::named(stated), formats::named(products)) {
        (Some((format, _)), _) if format == stated => record.copy_text("weights", stated),
        (Some((format, _)), _) => record.convert("weights", format, format!("\"{stated}\"")),
        (None, Some((format, _))) => record.convert("weights", format, format!("gemm_quant_mode \"{products}\"")),
        (None, None) => record.assume("weights", own, "not stated, the checkpoint's own format"),
    }
}

/// Returns the number after a key, as in `silicon_concurrency=128` or `_tp4`.
fn after(text: &str, key: &str) -> Option<f64> {
    let rest = text.get(text.find(key)? + key.len()..)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

fn size(row: &Row, column: &str) -> f64 {
    quantity(row.text(column)).map(|(n, _)| n).filter(|n| *n >= 1.0).unwrap_or(1.0)
}

/// Fills the layout of an aggregated deployment. The columns are a planner's interpretation of the run, in which sizes
/// are sometimes multiplied: the same measurement occurs with TP 64 and experts 8 x 8, and with TP 8 and experts 1 x 8.
fn aggregated(record: &mut Record, row: &Row, shape: Option<&Shape>) {
    let (tp, groups) = (size(row, "tp_size"), size(row, "attention_dp_size"));
    let (sliced, whole) = (size(row, "moe_tp_size"), size(row, "moe_ep_size"));
    let product = tp * groups;
    let pp = size(row, "pp_size");
    let named = after(row.text("id"), "_tp").filter(|n| *n >= 1.0);
    if spread_experts(record, row, shape, named.unwrap_or(tp)) {
        return;
    }
    let squared = product > 1.0 && product == sliced * whole && (sliced == whole || (tp == groups && whole == product));
    let ranks = named.unwrap_or(if squared { product.sqrt().round() } else { product });
    let heads = shape.map_or(0.0, |shape| shape.heads);
    if groups <= 1.0 && heads > 0.0 && heads % ranks != 0.0 {
        return record
            .exclude(format!("{ranks} ranks do not divide {heads} heads, and no attention groups are stated"));
    }
    let (tp, groups, ep) = match groups > 1.0 {
        true => (1.0, ranks, ranks),
        false => (ranks, 1.0, whole.min(ranks)),
    };
    let ep = if shape.is_some_and(Shape::is_moe) { ep } else { 1.0 };
    let why = match (named, squared) {
        (Some(_), _) => "the id",
        (None, true) => "the columns state products of the sizes",
        (None, false) => "column tp_size",
    };
    for (column, value, old) in
        [("tp", tp, "tp_size"), ("ep", ep, "moe_ep_size"), ("attention_dp", groups, "attention_dp_size")]
    {
        let same = size(row, old) == value && !row.text(old).is_empty() && row.text(old) != "0";
        match (same, named.is_none() && squared) {
            (true, _) => record.copy_text(column, row.text(old)),
            (false, true) => record.infer(column, value, why),
            (false, false) => record.convert(column, value, format!("{why}, {old} \"{}\"", row.text(old))),
        }
    }
    record.take(row, "pp_size", "pp");
    let devices = tp * groups * pp;
    match named.is_none() && squared {
        true => record.infer("num_accelerators", devices, why),
        false => record.convert("num_accelerators", devices, format!("ranks of the deployment, {why}")),
    }
}

/// Fills the layout if the experts are on more ranks than TP and no attention groups are stated. The planner that
/// writes these tables keeps the product of TP and attention groups equal to the number of ranks of the experts.
/// Returns whether the layout was filled.
fn spread_experts(record: &mut Record, row: &Row, shape: Option<&Shape>, tp: f64) -> bool {
    let (sliced, whole) = (size(row, "moe_tp_size"), size(row, "moe_ep_size"));
    let groups = sliced * whole / tp;
    let stated = !row.text("attention_dp_size").is_empty();
    if stated || !shape.is_some_and(Shape::is_moe) || groups <= 1.0 || groups.fract() != 0.0 {
        return false;
    }
    let why = format!("experts on {} ranks (moe_tp_size x moe_ep_size) with tp_size {tp}", sliced * whole);
    record.convert("tp", tp, "column tp_size");
    record.convert("ep", whole, "column moe_ep_size");
    record.convert("attention_dp", groups, why.as_str());
    record.take(row, "pp_size", "pp");
    record.convert("num_accelerators", tp * groups * size(row, "pp_size"), why.as_str());
    true
}

/// Minimum number of columns of an expert's matrix per rank. Weights are quantized in blocks of 128
/// (`weight_block_size` of the checkpoints), which engines do not split.
const MIN_SLICE_WIDTH: f64 = 128.0;

/// Reason why the experts of a pool are not split over ranks, regardless of its column.
const UNSPLIT_EXPERTS: &str =
    "slices of experts would be narrower than a block of 128 columns, so experts are not split over ranks";

/// Fills the layout of a deployment with separate pools for prefill and decode.
fn disaggregated(record: &mut Record, row: &Row, shape: Option<&Shape>) {
    let pool = |prefix: &str| {
        let n = |column: &str| size(row, &format!("{prefix}_{column}"));
        let workers = row.positive(&format!("{prefix}_num_workers"))?;
        let (tp, pp, ep) = (n("tp_size"), n("pp_size"), n("moe_ep_size"));
        Some(Pool { workers, tp, pp, ep, attention_dp: n("attention_dp_size") })
    };
    let (Some(mut prefill), Some(mut decode)) = (pool("prefill"), pool("decode")) else {
        return record.exclude("sizes of the prefill and decode pools not stated");
    };
    let width = shape.map_or(0.0, |shape| shape.expert_width);
    let sliced = |pool: &Pool| {
        let slice = width * pool.ep / (pool.tp * pool.attention_dp);
        pool.attention_dp > 1.0 && slice > 0.0 && slice < MIN_SLICE_WIDTH
    };
    let whole = [sliced(&prefill), sliced(&decode)];
    for (pool, sliced) in [&mut prefill, &mut decode].into_iter().zip(whole) {
        if sliced {
            pool.ep = pool.tp * pool.attention_dp;
        }
    }
    pools::put(record, prefill, decode, |record, column, value| {
        let [prefill, decode] = whole;
        match column {
            "prefill_ep" if prefill => record.assume(column, value, UNSPLIT_EXPERTS),
            "decode_ep" if decode => record.assume(column, value, UNSPLIT_EXPERTS),
            _ => record.convert(column, value, "columns of the pool"),
        }
    });
    record.convert("num_accelerators", prefill.ranks() + decode.ranks(), "both pools");
}

/// Fills the options of InferenceMAX's scripts for SGLang on Blackwell (`benchmarks/dsr1_fp8_b200.sh`). The queue is
/// polled every 30 decode steps with 16 or more concurrent requests, otherwise every 10. DeepSeek's KV cache is stored
/// in FP8.
fn scripts(record: &mut Record, row: &Row, shape: Option<&Shape>, device: Option<&Accelerator>) {
    let blackwell = device.is_some_and(|device| device.generation.starts_with("Blackwell"));
    if !row.text("backend").eq_ignore_ascii_case("sglang") || !blackwell {
        return;
    }
    if let Some(concurrency) = record.number("concurrency") {
        let interval = if concurrency >= 16.0 { 30.0 } else { 10.0 };
        record.assume("recv_interval", interval, "InferenceMAX's scripts for SGLang on Blackwell");
    }
    if shape.is_some_and(|shape| shape.latent) {
        record.assume("kv_cache", "fp8", "InferenceMAX's scripts for DeepSeek under SGLang on Blackwell");
    }
}

/// Excludes rows that state a measurement of another row: the same accelerator, with a TTFT and a TPOT that are equal as
/// far as both are stated (one list rounds what another copies in full). The row with the fewest inferred and assumed
/// cells is kept.
pub(super) fn duplicates(records: &mut [Record]) {
    /// Rows of one measurement, with TTFT and TPOT.
    type Copies = Vec<(usize, [Decimal; 2])>;
    let mut groups: HashMap<String, Vec<Copies>> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let Some(ttft) = Decimal::parse(record.text("ttft_ms")) else { continue };
        let Some(tpot) = Decimal::parse(record.text("tpot_ms")) else { continue };
        let same = |[other_ttft, other_tpot]: &[Decimal; 2]| match (ttft.agrees(other_ttft), tpot.agrees(other_tpot)) {
            (Some(first), Some(second)) => first + second >= COMMON_DIGITS,
            _ => false,
        };
        let of_accelerator = groups.entry(record.text("accelerator").to_owned()).or_default();
        match of_accelerator.iter_mut().find(|group| group.iter().any(|(_, values)| same(values))) {
            Some(group) => group.push((at, [ttft, tpot])),
            None => of_accelerator.push(vec![(at, [ttft, tpot])]),
        }
    }
    for group in groups.values().flatten().filter(|group| group.len() > 1) {
        // Prefers rows that are not excluded already. Among equals, the first is kept.
        let worth = |at: usize| {
            records.get(at).map_or((true, usize::MAX, usize::MAX), |record| {
                let [_, assumed, inferred] = record.counts();
                (record.is_excluded(), inferred, assumed)
            })
        };
        let members = || group.iter().map(|(at, _)| *at);
        let Some(best) = members().min_by_key(|at| (worth(*at), *at)) else { continue };
        let id = records.get(best).map_or_else(String::new, |record| record.text("id").to_owned());
        for at in members().filter(|at| *at != best) {
            if let Some(record) = records.get_mut(at) {
                record.exclude(format!("duplicate of {id}"));
            }
        }
    }
}

/// Number of digits of TTFT and TPOT together that two rows of one accelerator must share to count as one measurement.
/// Of 10^6 pairs of different measurements, fewer than one in ten shares that many.
const COMMON_DIGITS: usize = 8;

/// A decimal number as it is written.
#[derive(Clone, Copy)]
struct Decimal {
    value: f64,
    digits: usize,
    places: i32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        let value: f64 = text.parse().ok()?;
        let places = text.split_once('.').map_or(0, |(_, places)| places.len());
        let digits = text.trim_start_matches(['0', '.']).chars().filter(char::is_ascii_digit).count();
        Some(Decimal { value, digits, places: i32::try_from(places).ok()? })
    }

    /// Returns the number of digits of the shorter of two numbers if the longer, rounded to these digits, equals it.
    fn agrees(&self, other: &Decimal) -> Option<usize> {
        // Copies of a double in full differ in the last digit.
        let half_unit = 0.5 * 10f64.powi(-self.places.min(other.places)) + 1e-12 * self.value.abs();
        ((self.value - other.value).abs() <= half_unit).then(|| self.digits.min(other.digits))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::table;
    use super::*;

    const HEAD: &str = "source,id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,\
        tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,silicon_ttft_ms,silicon_tpot_ms";

    fn converted(line: &str) -> Record {
        let (_, rows) = table::read(&format!("{HEAD}\n{line}\n")).unwrap();
        convert(&rows[0], &Catalog::built_in())
    }

    const FROM: &str = "db-dump/2026-04-27; silicon_concurrency=16; measured=2026-04-17T00:00:00.000Z; \
        workflow_run_id=758; lmsysorg/sglang:v0.5.9-cu130";

    #[test]
    fn an_aggregated_row_is_typed() {
        let r = converted(&format!(
            "s,x_tp4,{FROM},sglang,,deepseek-ai/DeepSeek-R1,b200_sxm,fp8,agg,1024,1024,4,1,1,1,4,972.31,33.442"
        ));
        assert_eq!(
            (r.text("software"), r.text("model"), r.text("date")),
            ("sglang@0.5.9", "deepseek-r1", "2026-04-17")
        );
        assert_eq!((r.text("tp"), r.text("ep"), r.text("num_accelerators")), ("4", "4", "4"));
        assert_eq!((r.text("input_len"), r.text("concurrency"), r.text("requests")), ("921.6", "16", "160"));
        assert_eq!((r.text("recv_interval"), r.text("kv_cache")), ("30", "fp8"));
        assert!(r.problems.is_empty(), "{:?}", r.problems);
    }

    #[test]
    fn attention_dp_is_derived_from_expert_ranks_beyond_tp() {
        let row = |columns: &str| {
            converted(&format!(
                "s,x_tp2,{FROM},vllm,0.12.0,Qwen/Qwen3-235B-A22B-FP8,h200_sxm,fp8,agg,1000,100,{columns},9.5,5.5"
            ))
        };
        let layout = |r: &Record| ["tp", "ep", "attention_dp", "num_accelerators"].map(|c| r.text(c).to_owned());
        assert_eq!(layout(&row("2,1,,4,1")), ["2", "1", "2", "4"]);
        assert_eq!(layout(&row("2,1,,2,1")), ["2", "1", "1", "2"]);
        assert_eq!(layout(&row("2,1,1,4,1"))[3], "2", "stated groups stay");
    }

    #[test]
    fn pool_ep_equals_ranks_when_expert_slices_would_be_too_narrow() {
        let columns = "prefill_num_workers,prefill_attention_dp_size,prefill_moe_ep_size,decode_num_workers,\
            decode_attention_dp_size,decode_moe_ep_size";
        let pools = |sizes: &str| {
            let row =
                format!("s,x,{FROM},sglang,,deepseek-ai/DeepSeek-R1,gb200,fp8,disagg,1024,1024,1,1,1,1,1,9.5,5.5");
            let (_, rows) = table::read(&format!("{HEAD},{columns}\n{row},{sizes}\n")).unwrap();
            let r = convert(&rows[0], &Catalog::built_in());
            ["prefill_ep", "decode_ep", "num_accelerators"].map(|column| r.text(column).to_owned())
        };
        assert_eq!(pools("2,8,1,1,32,1"), ["1", "32", "48"], "2048 over 8 ranks is wide enough, over 32 is not");
        assert_eq!(pools("2,8,8,1,16,1"), ["8", "1", "32"]);
    }

    #[test]
    fn row_with_inferred_tp_is_excluded_by_its_stated_duplicate() {
        let squared = converted(&format!(
            "s,x,{FROM},sglang,0.5.9,deepseek-ai/DeepSeek-R1,b200_sxm,fp8,agg,1024,1024,64,1,1,8,8,972.31,33.442"
        ));
        assert_eq!((squared.text("tp"), squared.counts()[2] > 0), ("8", true));
        let stated = converted(&format!(
            "s,y,{FROM},sglang,0.5.9,deepseek-ai/DeepSeek-R1,b200_sxm,fp8,agg,1024,1024,8,1,1,1,8,972.31,33.442"
        ));
        let mut both = [squared, stated];
        duplicates(&mut both);
        assert!(both[0].is_excluded() && !both[1].is_excluded());
    }

    #[test]
    fn a_rounded_copy_of_a_measurement_is_excluded() {
        let row = |id: &str, metrics: &str| {
            converted(&format!(
                "s,{id},{FROM},sglang,0.5.9,deepseek-ai/DeepSeek-R1,b200_sxm,fp8,agg,1024,1024,8,1,1,1,8,{metrics}"
            ))
        };
        let excluded = |first: &str, second: &str| {
            let mut rows = [row("x", first), row("y", second)];
            duplicates(&mut rows);
            rows.map(|row| row.is_excluded())
        };
        assert_eq!(excluded("765.4942006920464,13.342251993056447", "765.49,13.34"), [false, true], "rounded");
        assert_eq!(excluded("440.60590355220484,12.17", "440.6059035522048,12.17"), [false, true], "last digit");
        assert_eq!(excluded("765.4942006920464,13.342251993056447", "765.49,13.35"), [false, false], "another TPOT");
        assert_eq!(excluded("765.49,13.34", "765,13"), [false, false], "too few digits in common");
    }
}
