//! Step-by-step explanation of one row: its cells, how they were interpreted, the breakdown of the predicted time, and
//! the measurement.

use super::case::{Case, Input};
use super::table::{self, Row};
use super::verdict::Verdict;
use super::{MeasurementKind, Method, RowEvaluator, ValidateError};
use atlas_catalog::Catalog;
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_perf::constants::Constants;
use atlas_perf::serving;
use atlas_perf::serving::ServingInput;
use atlas_perf::serving::step::StepTime;
use atlas_perf::training;
use atlas_perf::training::{TimeBreakdown, TrainingInput};
use atlas_perf::traits::ExpertProducts;
use atlas_plan::engine::answer::event as simulated;
use atlas_plan::estimate::{Breakdown, TimePart};
use atlas_plan::search::Gauge;

/// Explanation of a row.
#[derive(Debug, Clone)]
pub struct RowExplanation {
    /// Cells that are not blank, by column.
    pub states: Vec<(String, String)>,
    /// Input of the engine, and the steps of its estimate.
    pub steps: Vec<(&'static str, String)>,
    /// Breakdown of the predicted time, s: of a step, or of one output token of a replica.
    pub time: Option<Breakdown<TimePart>>,
    /// Predicted and measured values, or why there is no prediction.
    pub verdicts: Vec<Verdict>,
}

/// Explains the row with `id` as predicted by `engine`, the closed form or the simulation. Returns `None` if there is
/// no such row.
///
/// # Errors
/// Returns an error if the file is not valid CSV.
pub fn explain_row(
    kind: MeasurementKind,
    text: &str,
    id: &str,
    engine: Engine,
) -> Result<Option<RowExplanation>, ValidateError> {
    let catalog = Catalog::built_in();
    let gauge = Gauge::default();
    let judge = RowEvaluator { kind, catalog: &catalog, method: Method { engine, ..Method::default() }, gauge: &gauge };
    let rows = table::read(text)?;
    let Some(row) = rows.iter().find(|row| row.text("id") == id) else { return Ok(None) };
    let verdicts = judge.row(row);
    let case = Case::of(row, kind, &catalog).ok().and_then(|cases| cases.into_iter().next());
    let described = case.map(|case| match case.input {
        Input::Training(ref input) => trained(&case, input, engine),
        Input::Serving(ref input) => served(input, engine),
    });
    let (steps, time) = described.map_or((Vec::new(), None), |(steps, time)| (steps, Some(time)));
    Ok(Some(RowExplanation { states: states(row), steps, time, verdicts }))
}

fn states(row: &Row) -> Vec<(String, String)> {
    row.cells().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

type Reported = (Vec<(&'static str, String)>, Breakdown<TimePart>);

fn trained(case: &Case, i: &TrainingInput, engine: Engine) -> Reported {
    let c = Constants::default();
    let mut out = training::estimate(i, &c);
    if let Some(parts) = engine.simulates().then(|| simulated::training::times(i, &out.time)).flatten() {
        let slower = parts.total() / out.step_seconds;
        out.step_seconds *= slower;
        out.mfu /= slower;
        out.time = parts;
    }
    let time = Breakdown::of(&TimeBreakdown::PARTS, out.time.values());
    let flops = i.arch.palm_flops_per_token(i.seq, false);
    let tokens = i.global * i.seq;
    let peak = i.accelerator.peak(i.precision);
    let si = |value: f64, unit: &str| units::with_unit(&units::si(value), unit);
    let measured_step = tokens / (case.measured / case.devices * i.accelerators);
    let gb = units::memory;
    let steps = vec![
        (
            "layout",
            format!(
                "tp {} · pp {} · vpp {} · dp {} · cp {} · ep {} on {} devices, {} per scale-up domain",
                i.tp, i.pp, i.vpp, i.dp, i.cp, i.ep, i.accelerators, i.domain
            ),
        ),
        (
            "plan",
            format!(
                "{} sequences of {} tokens per step, {} per micro-batch, {} micro-batches; {}, recompute {}",
                i.global,
                i.seq,
                i.micro,
                i.micro_batches(),
                i.sharding.name(),
                i.recompute.name()
            ),
        ),
        ("parameters", si(i.arch.params(), "")),
        ("model FLOPs per token", format!("{} (PaLM, appendix B)", si(flops, "FLOP"))),
        ("tokens per step", si(tokens, "tok")),
        ("peak per device", si(peak, "FLOP/s")),
        ("step time at peak", units::duration(flops * tokens / (peak * i.accelerators))),
        ("predicted step time", format!("{}, MFU {}", units::duration(out.step_seconds), units::percent(out.mfu))),
        (
            "measured step time",
            format!(
                "{}, MFU {}",
                units::duration(measured_step),
                units::percent(flops * tokens / (measured_step * peak * i.accelerators))
            ),
        ),
        (
            "predicted memory",
            format!(
                "{} of {}, upper bound {}",
                gb(out.memory.total()),
                gb(i.accelerator.capacity()),
                gb(out.memory_upper)
            ),
        ),
    ];
    (steps, time)
}

/// Describes inefficiencies that an old stack or the device adds to the usual steps of the runtime.
fn describe_inefficiencies(i: &ServingInput) -> String {
    let said = [
        (!i.tuned_products, "GEMMs with few rows not tuned"),
        (
            matches!(i.expert_products, ExpertProducts::Sequential | ExpertProducts::Separate),
            "one kernel launch per expert",
        ),
        (!i.grouped_query_decode, "decode attention reads the KV cache once per query head"),
        (i.expanded_drafts && i.speculation.tokens > 0.0, "draft tokens verified as separate sequences"),
        (i.compiled_batch.is_some(), "batches padded to the compiled size"),
    ];
    said.iter().filter(|(holds, _)| *holds).map(|(_, what)| format!("; {what}")).collect()
}

fn served(i: &ServingInput, engine: Engine) -> Reported {
    let events = engine.simulates().then(|| simulated::serving::figures(i)).flatten();
    let out = events.unwrap_or_else(|| serving::estimate(i, &Constants::default()));
    let l = &i.layout;
    let si = |value: f64, unit: &str| units::with_unit(&units::si(value), unit);
    let ms = units::duration;
    let first = &out.first_token;
    let steps = vec![
        (
            "layout",
            format!("tp {} · pp {} · ep {} · attention dp {}, {} replicas", l.tp, l.pp, l.ep, l.attention_dp, l.dp),
        ),
        (
            "software",
            format!(
                "{:?}, admission {:?}, graphs {}, at most {} sequences and {} tokens per step{}",
                i.stack,
                i.admission,
                i.graphs.name(),
                i.max_sequences(),
                i.max_num_batched_tokens,
                describe_inefficiencies(i)
            ),
        ),
        ("load", format!("{:?}; {} prompt tokens, {} output tokens", i.load, units::si(i.isl), units::si(i.osl))),
        (
            "weights",
            format!(
                "{} parameters, {} bytes each (experts {}), GEMMs in {:?}",
                si(i.arch.params(), ""),
                i.formats.dense_bytes,
                i.formats.expert_bytes,
                i.formats.dense
            ),
        ),
        (
            "KV cache capacity",
            format!("{} sequences per replica; {} running", units::si(out.max_concurrency), units::si(out.batch)),
        ),
        (
            "TTFT",
            format!(
                "{} = slot {} + queue {} + burst {} + prefill {} + overhead {}",
                ms(out.ttft.mean),
                ms(first.slot),
                ms(first.queue),
                ms(first.burst),
                ms(first.prefill),
                ms(first.overhead)
            ),
        ),
        ("TPOT", ms(out.tpot.mean)),
        (
            "throughput",
            format!(
                "{} output, {} including prompts, {}",
                si(out.output_tokens_per_sec, "tok/s"),
                si(out.total_tokens_per_sec, "tok/s"),
                si(out.requests_per_sec, "req/s")
            ),
        ),
    ];
    (steps, Breakdown::of(&StepTime::PARTS, out.time.values()))
}
