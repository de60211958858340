//! Derivations of cost, energy and totals, which are the same for all engines.

use super::expression::Written;
use super::{Context, Origin, Term, derive};
use crate::estimate::{MemoryPart, MetricId};
use crate::knob::Knob;
use crate::scenario::{HOURS_PER_MONTH, HOURS_PER_YEAR, capital_recovery};
use atlas_core::plan::PriceBasis;
use atlas_core::units::BYTES_PER_GB;

/// Number of accelerators that the layout uses.
pub(super) fn working_accelerators(whole: &Context<'_>) -> Term {
    let knobs = [("tp", Knob::Tp), ("pp", Knob::Pp), ("dp", Knob::Dp)];
    let bearing = knobs.map(|(symbol, knob)| whole.inputs.knob(symbol, knob)).to_vec();
    Term::input("n_work", "accelerators used by the layout", "", whole.scenario.working_accelerators())
        .from(Origin::Engine("ranks of the layout / devices per accelerator"))
        .depending_on(bearing)
}

/// Derivation of another metric as a term.
pub(super) fn of(whole: &Context<'_>, symbol: &'static str, id: MetricId) -> Option<Term> {
    Some(Term { symbol: symbol.into(), ..derive(whole, id.metric())? })
}

/// Metrics derived from throughput, power and prices; `None` for all others.
pub(super) fn explain(whole: &Context<'_>, id: MetricId, value: f64) -> Option<Term> {
    let rate = || of(whole, "X", MetricId::TokensPerSec);
    let power = || of(whole, "P_node", MetricId::NodePowerW);
    // A layout that requests more accelerators than exist is estimated as if they existed.
    let nodes = || -> Written {
        let nodes = whole.inputs.knob("nodes", Knob::NumNodes);
        match shortfall(whole) {
            Some(short) if id != MetricId::PowerW => nodes * short,
            _ => nodes.into(),
        }
    };
    Some(match id {
        MetricId::TokensPerSecPerAccel => {
            let working: Written = if whole.scenario.engine.models_hardware() {
                working_accelerators(whole).into()
            } else {
                as_requested(whole, whole.inputs.accelerators())
            };
            Term::stated("X_a", "", "tok/s", value, rate()? / working)
        }
        MetricId::DollarPer1kTokens => {
            Term::stated("C_1k", "", "USD", value, as_requested(whole, hourly(whole)?) * 1000.0 / (rate()? * 3600.0))
        }
        MetricId::DollarPer1mTokens => {
            Term::stated("C_1M", "", "USD", value, of(whole, "C_1k", MetricId::DollarPer1kTokens)? * 1000.0)
        }
        MetricId::TokensPerDollar => {
            let per_thousand = of(whole, "C_1k", MetricId::DollarPer1kTokens)?;
            Term::stated("tokens_per_USD", "", "tok", value, Written::from(1000.0) / per_thousand)
        }
        MetricId::UsdPerHour => Term { name: "".into(), ..hourly(whole)? },
        MetricId::PowerW => Term::stated("P", "", "W", value, power()? * nodes()),
        MetricId::TokensPerJoule => Term::stated("tokens_per_J", "", "tok/J", value, rate()? / (power()? * nodes())),
        MetricId::TimeToTrainH | MetricId::TimeToPublishedH => {
            let symbol = if id == MetricId::TimeToTrainH { "T_run" } else { "T_published" };
            Term::stated(symbol, "", "h", value, budget(whole, id)? / (rate()? * 3600.0))
        }
        MetricId::DollarPer1tTokens => {
            Term::stated("C_1T", "", "USD", value, of(whole, "C_1k", MetricId::DollarPer1kTokens)? * 1e9)
        }
        MetricId::UsdPerRun | MetricId::UsdToPublished => {
            let each = of(whole, "C_1k", MetricId::DollarPer1kTokens)?;
            let symbol = if id == MetricId::UsdPerRun { "C_run" } else { "C_published" };
            Term::stated(symbol, "", "USD", value, each * budget(whole, id)? / 1000.0)
        }
        MetricId::UsdPerHourOwned => owned(whole, value)?,
        MetricId::DollarPer1mTokensOwned => {
            let hour = MetricId::UsdPerHourOwned.metric();
            let hour = owned(whole, hour.value(whole.estimate, whole.scenario)?)?;
            Term::stated("C_1M_owned", "", "USD", value, as_requested(whole, hour) * 1e6 / (rate()? * 3600.0))
        }
        MetricId::BreakEvenMonths => break_even(whole, value)?,
        MetricId::TokensPerWh => Term::stated(
            "tokens_per_Wh",
            "",
            "tok/Wh",
            value,
            of(whole, "tokens_per_J", MetricId::TokensPerJoule)? * 3600.0,
        ),
        MetricId::JoulesPerToken => {
            let per_joule = of(whole, "tokens_per_J", MetricId::TokensPerJoule)?;
            Term::stated("J_token", "", "J", value, Written::from(1.0) / per_joule)
        }
        MetricId::KwhPer1mTokens => energy(whole, value, Written::from(1e6))?,
        MetricId::KwhPerRun => energy(whole, value, budget(whole, id)?.into())?,
        MetricId::KgCo2ePer1mTokens | MetricId::KgCo2ePerRun => {
            let kwh = if id == MetricId::KgCo2ePerRun { MetricId::KwhPerRun } else { MetricId::KwhPer1mTokens };
            let grid = whole.inputs.knob("kg_kWh", Knob::KgCo2ePerKwh);
            Term::stated("CO2e", "", "kg", value, of(whole, "E", kwh)? * grid)
        }
        _ => return None,
    })
}

/// Ratio of accelerators requested by the layout to available ones, if it requests more.
fn shortfall(whole: &Context<'_>) -> Option<Term> {
    let short = whole.estimate.shortfall();
    let term = Term::input("short", "accelerators needed by the layout / available accelerators", "", short);
    (short != 1.0).then(|| term.from(Origin::Engine("tp × pp × cp × dp / accelerators of the target")))
}

/// Scales `term` from the available accelerators to those that the layout requests.
fn as_requested(whole: &Context<'_>, term: Term) -> Written {
    match shortfall(whole) {
        Some(short) => term * short,
        None => term.into(),
    }
}

/// Tokens of the run: stated by the knob, or published for the model.
fn budget(whole: &Context<'_>, id: MetricId) -> Option<Term> {
    if matches!(id, MetricId::TimeToPublishedH | MetricId::UsdToPublished) {
        let tokens = whole.scenario.published_tokens?;
        return Some(whole.inputs.model("D_published", "published number of training tokens", "tok", tokens));
    }
    Some(whole.inputs.knob("D_run", Knob::TrainTokens))
}

/// Energy for `tokens` tokens, including PUE.
fn energy(whole: &Context<'_>, value: f64, tokens: Written) -> Option<Term> {
    let per_joule = of(whole, "tokens_per_J", MetricId::TokensPerJoule)?;
    let written = tokens / per_joule / 3.6e6 * whole.inputs.knob("PUE", Knob::Pue);
    Some(Term::stated("E", "energy including PUE", "kWh", value, written))
}

/// Purchase price of a node.
fn purchase(whole: &Context<'_>) -> Option<Term> {
    let price = Term::input("C_node", "purchase price of a node", "USD", whole.scenario.capex_usd_node?);
    Some(price.from(whole.inputs.of_knob(Knob::CapexUsdNode)))
}

/// Share of the time in which owned hardware is in use.
fn utilization(whole: &Context<'_>) -> Term {
    whole.inputs.knob("worked", Knob::Utilization)
}

/// Initial cost of buying a node.
fn outlay(whole: &Context<'_>) -> Option<Term> {
    let inputs = whole.inputs;
    let shares = inputs.knob("s_net", Knob::NetworkShare) + inputs.knob("s_spare", Knob::SparesShare) + 1.0;
    Some(Term::derived(
        "C_outlay",
        "purchase cost per node, including network, storage and spares",
        "USD",
        purchase(whole)? * shares,
    ))
}

/// Annual cost of running an owned node.
fn running(whole: &Context<'_>) -> Term {
    let inputs = whole.inputs;
    let building = inputs.knob("USD_kW", Knob::UsdPerKwMonth) * inputs.node_watts() * (12.0 / 1000.0);
    let all = inputs.knob("C_staff", Knob::StaffUsdNodeYear) + building;
    Term::derived("C_site", "colocation and staff per node and year", "USD", all)
}

/// Energy cost of one node per hour.
fn energy_of_node(whole: &Context<'_>) -> Option<Term> {
    let (inputs, scenario) = (whole.inputs, whole.scenario);
    let power = of(whole, "P_node", MetricId::NodePowerW)?;
    let kwh: Written = match scenario.terms.peak_usd_per_kwh {
        None => inputs.knob("USD_kWh", Knob::UsdPerKwh).into(),
        Some(_) => Term::input(
            "USD_kWh",
            "mean energy price over the productive hours",
            "$/kWh",
            scenario.energy_usd_per_kwh(),
        )
        .from(Origin::Engine("off-peak hours first"))
        .depending_on(
            [Knob::UsdPerKwh, Knob::PeakUsdPerKwh, Knob::PeakHours].map(|knob| inputs.knob(knob.name(), knob)).to_vec(),
        )
        .into(),
    };
    let energy = power * inputs.knob("PUE", Knob::Pue) / 1000.0 * kwh;
    Some(Term::derived("C_energy", "energy cost of one node per hour", "USD", energy))
}

/// Energy cost of all nodes per hour.
fn energy_hour(whole: &Context<'_>) -> Option<Term> {
    let value = whole.estimate.cost.energy_usd_per_hour;
    let all = energy_of_node(whole)? * whole.inputs.knob("nodes", Knob::NumNodes);
    Some(Term::stated("C_energy_all", "energy cost of all nodes per hour", "USD", value, all))
}

/// Cost of a productive hour of a rented node, without separately billed energy.
fn rent(whole: &Context<'_>) -> Written {
    let rent = whole.inputs.knob("C_rent", Knob::HourlyUsd);
    match whole.scenario.rent_basis() {
        Some(PriceBasis::Reserved) => rent / utilization(whole),
        _ => rent.into(),
    }
}

/// Months until a node has paid for itself.
fn break_even(whole: &Context<'_>, months: f64) -> Option<Term> {
    let hour = match whole.scenario.rent_includes_energy() {
        true => rent(whole) - energy_of_node(whole)?,
        // Both the tenant and the owner pay for energy.
        false => rent(whole),
    };
    let hour = match idle_energy_of_node(whole) {
        Some(idle) => hour - idle,
        None => hour,
    };
    let saved = hour * utilization(whole) * HOURS_PER_MONTH - running(whole) / 12.0;
    let saved = Term::derived("C_saved", "rent saved per month, minus energy, colocation and staff", "USD", saved);
    let origin =
        Origin::Engine("-ln(1 - C_outlay × r / 12 / C_saved) / ln(1 + r / 12); never if C_saved < C_outlay × r / 12");
    let bearing = vec![outlay(whole)?, saved, whole.inputs.knob("r", Knob::CapitalCost)];
    Some(Term::input("months", "", "", months).from(origin).depending_on(bearing))
}

/// Energy cost of the idle hours of an owned node per productive hour; `None` if it always works.
fn idle_energy_of_node(whole: &Context<'_>) -> Option<Term> {
    let (inputs, scenario) = (whole.inputs, whole.scenario);
    if scenario.idle_hours() <= 0.0 {
        return None;
    }
    let power = Term::input("P_idle", "power of an idle node", "W", scenario.idle_node_watts())
        .from(Origin::Engine("idle power of accelerators, hosts, NICs and fans"))
        .depending_on(vec![inputs.node_watts()]);
    let kwh: Written = match scenario.terms.peak_usd_per_kwh {
        None => inputs.knob("USD_kWh", Knob::UsdPerKwh).into(),
        Some(_) => {
            let prices = [Knob::UsdPerKwh, Knob::PeakUsdPerKwh, Knob::PeakHours];
            let price = scenario.idle_usd_per_kwh();
            Term::input("USD_kWh_idle", "mean energy price over the idle hours", "$/kWh", price)
                .from(Origin::Engine("peak hours first"))
                .depending_on(prices.map(|knob| inputs.knob(knob.name(), knob)).to_vec())
                .into()
        }
    };
    let hours = Term::input("h_idle", "idle hours per productive hour", "", scenario.idle_hours())
        .from(Origin::Engine("(1 - worked) / worked"))
        .depending_on(vec![utilization(whole)]);
    let energy = power * inputs.knob("PUE", Knob::Pue) / 1000.0 * kwh * hours;
    Some(Term::derived("C_idle", "energy cost of idle hours per node and productive hour", "USD", energy))
}

/// Cost of a productive hour of owned nodes, without the energy of that hour.
fn owned_hour(whole: &Context<'_>) -> Option<Written> {
    let years = whole.inputs.knob("years", Knob::AmortizationYears);
    let interest = whole.inputs.knob("r", Knob::CapitalCost);
    let recovery = capital_recovery(whole.scenario.terms.capital_cost, whole.scenario.amortization_years);
    let recovery = Term::input(
        "crf",
        "capital recovery factor: share of the purchase paid per year, including interest",
        "",
        recovery,
    )
    .from(Origin::Engine("r / (1 - (1 + r / 12)^(-12 years))"))
    .depending_on(vec![interest, years]);
    let year =
        Term::derived("C_year", "cost of an owned node per year", "USD", outlay(whole)? * recovery + running(whole));
    let hours = Term::derived("h_worked", "productive hours per year", "h", utilization(whole) * HOURS_PER_YEAR);
    let nodes = || whole.inputs.knob("nodes", Knob::NumNodes);
    let hour = year * nodes() / hours;
    Some(match idle_energy_of_node(whole) {
        Some(idle) => hour + idle * nodes(),
        None => hour,
    })
}

/// Cost of a productive hour of owned nodes, including energy.
fn owned(whole: &Context<'_>, value: f64) -> Option<Term> {
    Some(Term::stated("C_owned", "", "USD", value, owned_hour(whole)? + energy_hour(whole)?))
}

/// Hourly cost of all nodes at the price basis in effect.
fn hourly(whole: &Context<'_>) -> Option<Term> {
    let (inputs, scenario) = (whole.inputs, whole.scenario);
    let value = whole.estimate.cost.usd_per_hour;
    if scenario.terms.basis == PriceBasis::Owned {
        let energy = energy_hour(whole)?;
        let all = match owned_hour(whole) {
            Some(owned) => owned + energy,
            None => energy.into(),
        };
        return Some(Term::stated("C_hour", "all owned nodes including energy, per hour", "USD", value, all));
    }
    let rent = rent(whole);
    let nodes = inputs.knob("nodes", Knob::NumNodes);
    if scenario.energy_is_included() {
        return Some(Term::stated("C_hour", "rental of all nodes per hour", "USD", value, rent * nodes));
    }
    let energy = energy_of_node(whole)?;
    let all = (rent + energy) * nodes;
    Some(Term::stated("C_hour", "rental and energy cost of all nodes per hour", "USD", value, all))
}

/// Power of a node with an engine that models the hardware: accelerators and the rest of the node.
pub(super) fn node_power(whole: &Context<'_>, value: f64) -> Term {
    let (scenario, inputs) = (whole.scenario, whole.inputs);
    let Some(power) = whole.estimate.detail.as_ref().and_then(|detail| detail.power) else {
        return Term::input("P_node", "", "W", value).from(Origin::Engine("nominal power"));
    };
    let tdp = scenario.machine.map_or(0.0, |machine| machine.device.tdp_w.unwrap_or(0.0) * machine.dies);
    let count = Term::input("n_node", "accelerators per node", "", f64::from(scenario.accelerators_per_node))
        .from(inputs.target(&["accelerators_per_node"], "not stated in the files"));
    let mut bearing = vec![count, inputs.sheet("TDP", "TDP of an accelerator", "W", tdp, &[])];
    let (flop, hbm) = (whole.total.flop_utilization, whole.total.hbm_bw_util);
    for (id, symbol, share) in [(MetricId::FlopUtilization, "u_flop", flop), (MetricId::HbmBwUtil, "u_hbm", hbm)] {
        let help = id.metric().help;
        bearing.push(Term::input(symbol, help, "", share).from(Origin::Engine("computed by the engine")));
    }
    if scenario.terms.clock_share < 1.0 {
        bearing.push(inputs.knob("f_clock", Knob::ClockShare));
    }
    let how = "idle, active, compute and memory power, capped at the TDP";
    let accelerators = Term::input("P_acc", "accelerators of a node", "W", power.accelerators)
        .from(Origin::Engine(how))
        .depending_on(bearing);
    let around = Term::input("P_host", "hosts, NICs and fans of a node", "W", power.around)
        .from(Origin::Engine("share of the nominal node power besides accelerators, depending on their load"))
        .depending_on(vec![inputs.node_watts()]);
    Term::stated("P_node", "", "W", value, accelerators + around)
}

/// Point estimate of the memory of the fullest device: the sum of its parts.
fn point_memory(whole: &Context<'_>, of_part: impl Fn(MemoryPart, Term) -> Term) -> Option<Term> {
    let memory = &whole.estimate.detail.as_ref()?.memory;
    let parts = memory.parts.parts().map(|(part, bytes)| of_part(part, Term::part("M", part, "bytes", bytes)));
    let total = super::expression::sum(parts);
    Some(Term::stated("M", "point estimate for the fullest device", "bytes", memory.total(), total))
}

/// Upper bound of the memory of the fullest device, and its capacity.
fn bounds(whole: &Context<'_>) -> Option<(Term, Term)> {
    let memory = &whole.estimate.detail.as_ref()?.memory;
    let upper = Term::input("M_upper", "upper bound, which determines whether it fits", "bytes", memory.upper)
        .from(Origin::Engine("plus fragmentation of temporary allocations"));
    let has = Term::input("M_has", "usable device memory", "bytes", memory.capacity)
        .from(Origin::Engine("device memory; in serving, × gpu_memory_utilization"));
    Some((upper, has))
}

/// Power of a node and memory of a device, for training and serving; `None` for all other metrics.
pub(super) fn hardware(
    whole: &Context<'_>,
    id: MetricId,
    value: f64,
    of_part: impl Fn(MemoryPart, Term) -> Term,
) -> Option<Term> {
    match id {
        MetricId::NodePowerW => Some(node_power(whole, value)),
        MetricId::PeakMemGb => memory(whole, value, of_part),
        MetricId::MemoryFill => memory_fill(whole, value, of_part),
        _ => None,
    }
}

/// Peak memory of an accelerator: the sum of the parts on its fullest device.
pub(super) fn memory(whole: &Context<'_>, value: f64, of_part: impl Fn(MemoryPart, Term) -> Term) -> Option<Term> {
    let total = point_memory(whole, of_part)?;
    let (upper, has) = bounds(whole)?;
    let dies = whole.scenario.machine.map_or(1.0, |machine| machine.dies);
    let written = if dies == 1.0 {
        total / BYTES_PER_GB
    } else {
        let dies = Term::input("dies", "devices per accelerator, as seen by software", "", dies)
            .from(Origin::Engine("from the accelerator generation"));
        total * dies / BYTES_PER_GB
    };
    Some(Term::stated("M_GB", "", "GB", value, written).depending_on(vec![upper, has]))
}

/// Upper bound of memory relative to the capacity of the fullest device.
pub(super) fn memory_fill(whole: &Context<'_>, value: f64, of_part: impl Fn(MemoryPart, Term) -> Term) -> Option<Term> {
    let (upper, has) = bounds(whole)?;
    let upper = upper.depending_on(vec![point_memory(whole, of_part)?]);
    Some(Term::stated("fill", "", "", value, upper / has))
}
