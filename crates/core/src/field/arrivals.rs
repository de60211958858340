//! How requests arrive, and the limits within which an answer is good.

use super::slot::{number, positive, word};
use super::{Field, Group, Knob, ValueType, entry, real};
use crate::plan::Arrivals;

pub(super) const ARRIVALS: &[Field] = &[
    entry(
        Knob::Arrivals,
        "arrivals",
        &["arrival_process"],
        Group::Serving,
        ValueType::Choice(Arrivals::NAMES),
        &["serving", "arrivals"],
        "how requests arrive: a constant number in flight, at random, in bursts, or all at once",
    )
    .slot(word!(Arrivals, simulation.arrivals))
    .inference()
    .simulated(),
    entry(
        Knob::ArrivalCv,
        "arrival_cv",
        &["burstiness_cv"],
        Group::Serving,
        real(0.0, 20.0, 0.5),
        &["serving", "arrival_cv"],
        "standard deviation over mean of the gaps of gamma arrivals: 1 is Poisson, 0 equal gaps, above 1 bursts",
    )
    .slot(number!(simulation.arrival_cv))
    .usual(1.0)
    .inference()
    .simulated(),
    entry(
        Knob::SloTtft,
        "slo_ttft_ms",
        &[],
        Group::Serving,
        real(0.0, 1e7, 100.0),
        &["serving", "slo", "ttft_ms"],
        "latest first token of a good request; 0: no limit",
    )
    .slot(positive!(simulation.slo_ttft_ms))
    .usual(0.0)
    .unit("ms")
    .inference()
    .simulated(),
    entry(
        Knob::SloTpot,
        "slo_tpot_ms",
        &[],
        Group::Serving,
        real(0.0, 1e7, 5.0),
        &["serving", "slo", "tpot_ms"],
        "longest time per output token of a good request; 0: no limit",
    )
    .slot(positive!(simulation.slo_tpot_ms))
    .usual(0.0)
    .unit("ms")
    .inference()
    .simulated(),
    entry(
        Knob::SloE2e,
        "slo_e2e_ms",
        &[],
        Group::Serving,
        real(0.0, 1e8, 1000.0),
        &["serving", "slo", "e2e_ms"],
        "latest last token of a good request; 0: no limit",
    )
    .slot(positive!(simulation.slo_e2e_ms))
    .usual(0.0)
    .unit("ms")
    .inference()
    .simulated(),
];
