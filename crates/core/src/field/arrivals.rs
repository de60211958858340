//! Arrival process and service-level objectives.

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
        "arrival process: constant number in flight, random, bursty, or all at once",
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
        "coefficient of variation of gamma-distributed arrival gaps: 1 is Poisson, 0 is evenly spaced, above 1 is bursty",
    )
    .slot(number!(simulation.arrival_cv))
    .with_default(1.0)
    .inference()
    .simulated(),
    entry(
        Knob::SloTtft,
        "slo_ttft_ms",
        &[],
        Group::Serving,
        real(0.0, 1e7, 100.0),
        &["serving", "slo", "ttft_ms"],
        "TTFT objective of a request (SLO); 0: none",
    )
    .slot(positive!(simulation.slo_ttft_ms))
    .zero_is_unset()
    .with_default(0.0)
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
        "TPOT objective of a request (SLO); 0: none",
    )
    .slot(positive!(simulation.slo_tpot_ms))
    .zero_is_unset()
    .with_default(0.0)
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
        "end-to-end latency objective of a request (SLO); 0: none",
    )
    .slot(positive!(simulation.slo_e2e_ms))
    .zero_is_unset()
    .with_default(0.0)
    .unit("ms")
    .inference()
    .simulated(),
];
