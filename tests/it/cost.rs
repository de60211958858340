//! Cost, energy and time with the analytical engine: invariants of every price and power.

use crate::common::program::{atlas, stdout};
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::engine::estimate;
use atlas_plan::estimate::{Estimate, Metric};
use atlas_plan::explain::explain;
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};

struct Answer(Scenario, Estimate);

impl Answer {
    fn of(target: &str, workload: &str, knobs: &[(Knob, f64)]) -> Answer {
        let parts = Parts::find(&Library::load(&Sources::built_in(), None), target, workload).unwrap();
        let overrides: Overrides = knobs.iter().map(|(knob, value)| (*knob, Setting::Number(*value))).collect();
        let scenario = Scenario::resolve(&parts, &overrides).unwrap();
        let estimate = estimate(&scenario);
        Answer(scenario, estimate)
    }

    fn get(&self, name: &str) -> f64 {
        let metric = Metric::named(name).unwrap_or_else(|| panic!("no metric {name}"));
        assert!(metric.applies_to(&self.0), "{name} says nothing here");
        metric.value(&self.1, &self.0).unwrap()
    }

    fn tells(&self, name: &str) -> bool {
        Metric::named(name).unwrap().applies_to(&self.0)
    }
}

fn same(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * a.abs().max(b.abs()), "{a} is not {b}");
}

const TRAIN: (&str, &str) = ("h100-sxm-8", "llama3.1-8b-train");
const SERVE: (&str, &str) = ("h100-sxm-8", "llama3.1-70b-serve");

#[test]
fn doubling_prices_doubles_cost_metrics() {
    let at =
        |times: f64| Answer::of(TRAIN.0, TRAIN.1, &[(Knob::HourlyUsd, 50.0 * times), (Knob::UsdPerKwh, 0.1 * times)]);
    let (one, two) = (at(1.0), at(2.0));
    for name in ["usd_per_hour", "dollar_per_1k_tokens", "dollar_per_1m_tokens", "dollar_per_1t_tokens", "usd_per_run"]
    {
        same(two.get(name), 2.0 * one.get(name));
    }
    same(two.get("tokens_per_dollar"), 0.5 * one.get("tokens_per_dollar"));
    same(two.get("kwh_per_run"), one.get("kwh_per_run"));
}

#[test]
fn metrics_of_a_training_run_follow_from_its_hours() {
    let run = Answer::of(TRAIN.0, TRAIN.1, &[(Knob::TrainTokens, 3e12)]);
    let hours = run.get("time_to_train_h");
    same(hours, 3e12 / run.get("tokens_per_sec") / 3600.0);
    same(run.get("usd_per_run"), hours * run.get("usd_per_hour"));
    same(run.get("usd_per_run"), 3.0 * run.get("dollar_per_1t_tokens"));
    same(run.get("kwh_per_run"), hours * run.get("power_w") * 1e-3 * run.0.pue);
    same(run.get("kg_co2e_per_run"), run.get("kwh_per_run") * run.0.kg_co2e_per_kwh);
    same(run.get("tokens_per_wh"), 3600.0 * run.get("tokens_per_joule"));
    same(run.get("joules_per_token") * run.get("tokens_per_joule"), 1.0);
    // Cost of the published token budget, 15T for Llama 3.1.
    same(run.get("time_to_published_h"), 5.0 * hours);
    same(run.get("usd_to_published"), 5.0 * run.get("usd_per_run"));
    // The energy in the price equals the energy of the run.
    same(run.1.cost.energy_usd_per_hour * hours, run.get("kwh_per_run") * run.0.usd_per_kwh);
}

#[test]
fn energy_per_served_token_is_power_divided_by_throughput() {
    let served = Answer::of(SERVE.0, SERVE.1, &[]);
    same(served.get("kwh_per_1m_tokens"), served.get("power_w") * served.0.pue / served.get("tokens_per_sec") / 3.6);
    same(served.get("kg_co2e_per_1m_tokens"), served.get("kwh_per_1m_tokens") * served.0.kg_co2e_per_kwh);
    let green = Answer::of(SERVE.0, SERVE.1, &[(Knob::KgCo2ePerKwh, 0.0), (Knob::Pue, 2.0 * served.0.pue)]);
    same(green.get("kg_co2e_per_1m_tokens"), 0.0);
    same(green.get("kwh_per_1m_tokens"), 2.0 * served.get("kwh_per_1m_tokens"));
    same(green.get("joules_per_token"), served.get("joules_per_token"));
    assert!(!served.tells("usd_per_run") && !served.tells("time_to_published_h"));
}

/// Owning with no costs other than the purchase.
const BARE: [(Knob, f64); 5] = [
    (Knob::NetworkShare, 0.0),
    (Knob::SparesShare, 0.0),
    (Knob::StaffUsdNodeYear, 0.0),
    (Knob::UsdPerKwMonth, 0.0),
    (Knob::CapitalCost, 0.0),
];

#[test]
fn owned_cost_is_amortized_purchase_price_plus_energy() {
    let owned = |knobs: &[(Knob, f64)]| Answer::of(TRAIN.0, TRAIN.1, &[&BARE[..], knobs].concat());
    let full = owned(&[(Knob::CapexUsdNode, 350_640.0), (Knob::AmortizationYears, 4.0), (Knob::Utilization, 1.0)]);
    // 350,640 USD over 4 × 8,766 hours are 10 USD per hour.
    let energy = full.1.cost.energy_usd_per_hour;
    same(full.get("usd_per_hour_owned"), 10.0 + energy);
    same(
        full.get("dollar_per_1m_tokens_owned"),
        full.get("usd_per_hour_owned") / full.get("tokens_per_sec") / 3600.0 * 1e6,
    );
    // The owner pays for energy, which the rent includes.
    same(full.get("break_even_months"), 350_640.0 / ((full.0.hourly_usd.unwrap() - energy) * 730.5));
    let half = owned(&[(Knob::CapexUsdNode, 350_640.0), (Knob::AmortizationYears, 4.0), (Knob::Utilization, 0.5)]);
    // An idle hour for every productive one.
    let idle = half.0.idle_node_watts() * 1e-3 * half.0.pue * half.0.usd_per_kwh;
    same(half.get("usd_per_hour_owned"), 20.0 + energy + idle);
    same(half.get("break_even_months"), 350_640.0 / ((full.0.hourly_usd.unwrap() - energy - idle) * 365.25));
    // There are no ownership metrics without a known price, nor with the engine that does not model accelerators.
    assert!(!Answer::of("tpu-v5p-128", TRAIN.1, &[]).tells("usd_per_hour_owned"));
    assert!(!owned(&[(Knob::CapexUsdNode, 0.0)]).tells("break_even_months"));
    let predecessor = Answer::of("NVIDIA_H100_8x_NVLink", "gpt5_1t_train", &[]);
    for name in ["usd_per_hour_owned", "tokens_per_wh", "dollar_per_1t_tokens", "kwh_per_run", "time_to_published_h"] {
        assert!(!predecessor.tells(name), "{name}");
    }
}

#[test]
fn idle_hours_of_owned_nodes_cost_energy() {
    let at = |utilization: f64| {
        let knobs = [(Knob::Utilization, utilization), (Knob::PeakUsdPerKwh, 0.3), (Knob::PeakHours, 6.0)];
        Answer::of(TRAIN.0, TRAIN.1, &knobs)
    };
    // 2.9 kW of an idle node with 8 H100, against 8 kW at work.
    let watts = at(0.5).0.idle_node_watts();
    assert!((2.3e3..=3.2e3).contains(&watts), "{watts}");
    let full = at(1.0);
    let whole = full.0.owned_usd_node_hour().unwrap();
    for utilization in [0.1, 0.25, 0.5, 0.8] {
        let part = at(utilization);
        let energy = watts * 1e-3 * part.0.pue * part.0.idle_usd_per_kwh() * (1.0 - utilization) / utilization;
        same(part.0.owned_usd_node_hour().unwrap(), whole / utilization + energy);
        same(part.get("usd_per_hour_owned"), part.0.owned_usd_node_hour().unwrap() + part.1.cost.energy_usd_per_hour);
        // The owner pays for every hour of the day at its price.
        let worked = utilization * part.0.energy_usd_per_kwh();
        same(worked + (1.0 - utilization) * part.0.idle_usd_per_kwh(), full.0.energy_usd_per_kwh());
        // A tenant does not.
        same(part.get("usd_per_hour"), full.get("usd_per_hour"));
        // The equations have the same value as the metrics.
        let parts = Parts::find(&Library::load(&Sources::built_in(), None), TRAIN.0, TRAIN.1).unwrap();
        let tree = explain(&part.0, &parts, &part.1, Metric::named("usd_per_hour_owned").unwrap()).unwrap();
        assert!(tree.walk().iter().any(|term| term.symbol == "C_idle"));
        let equation = tree.equation.as_ref().unwrap();
        same(equation.value(&tree.terms), part.get("usd_per_hour_owned"));
    }
    assert_eq!(full.0.idle_usd_node_hour(), 0.0);
}

#[test]
fn owning_and_renting_cost_the_same_at_break_even() {
    let own = |knobs: &[(Knob, f64)]| Answer::of(TRAIN.0, TRAIN.1, knobs);
    for rate in [0.0, 0.05, 0.2] {
        let months = own(&[(Knob::CapitalCost, rate)]).get("break_even_months");
        let even = own(&[(Knob::CapitalCost, rate), (Knob::AmortizationYears, months / 12.0)]);
        same(even.get("usd_per_hour_owned"), even.get("usd_per_hour"));
        let half = (Knob::Utilization, 0.5);
        let months = own(&[(Knob::CapitalCost, rate), half]).get("break_even_months");
        let even = own(&[(Knob::CapitalCost, rate), half, (Knob::AmortizationYears, months / 12.0)]);
        same(even.get("usd_per_hour_owned"), even.get("usd_per_hour"));
    }
    // If the rent is below the cost of the building alone, buying never pays off.
    assert!(own(&[(Knob::HourlyUsd, 2.0)]).get("break_even_months").is_infinite());
}

#[test]
fn owned_h100_hour_cost_lies_in_the_published_range() {
    // Published totals of an H100-hour with network, building, staff and capital are 1.4 to 1.8 USD.
    let owned = Answer::of("h100-sxm-64", TRAIN.1, &[]);
    let each = owned.get("usd_per_hour_owned") / 64.0;
    assert!((1.4..=1.85).contains(&each), "{each}");
    // Every component raises it.
    for (knob, more) in [
        (Knob::NetworkShare, 0.5),
        (Knob::SparesShare, 0.1),
        (Knob::StaffUsdNodeYear, 1e4),
        (Knob::UsdPerKwMonth, 250.0),
        (Knob::CapitalCost, 0.15),
    ] {
        let dearer = Answer::of("h100-sxm-64", TRAIN.1, &[(knob, more)]);
        assert!(dearer.get("usd_per_hour_owned") > owned.get("usd_per_hour_owned"), "{knob:?}");
        assert!(dearer.get("break_even_months") > owned.get("break_even_months"), "{knob:?}");
    }
}

/// Estimate with a given price basis.
fn paid(target: &str, basis: &str, knobs: &[(Knob, Setting)]) -> Answer {
    let parts = Parts::find(&Library::load(&Sources::built_in(), None), target, TRAIN.1).unwrap();
    let mut overrides: Overrides = knobs.iter().cloned().collect();
    overrides.insert(Knob::PriceBasis, Setting::Choice(basis.into()));
    let scenario = Scenario::resolve(&parts, &overrides).unwrap();
    let estimate = estimate(&scenario);
    Answer(scenario, estimate)
}

#[test]
fn rental_price_includes_energy_unless_metered_separately() {
    let rented = Answer::of(TRAIN.0, TRAIN.1, &[]);
    same(rented.get("usd_per_hour"), rented.0.hourly_usd.unwrap());
    let metered = paid(TRAIN.0, "stated", &[(Knob::EnergyIncluded, Setting::Toggle(false))]);
    same(metered.get("usd_per_hour"), metered.0.hourly_usd.unwrap() + metered.1.cost.energy_usd_per_hour);
    // Hardware that cannot be rented is depreciated, and its energy is paid.
    let owned = Answer::of("gb10-1", "llama3.1-8b-serve", &[]);
    same(owned.get("usd_per_hour"), owned.0.hourly_usd.unwrap() + owned.1.cost.energy_usd_per_hour);
}

#[test]
fn price_basis_applies_to_all_targets() {
    // With the catalog's marketplace prices, the same accelerator costs the same in every target.
    let each = |target: &str| {
        let answer = paid(target, "marketplace", &[]);
        answer.0.hourly_usd.unwrap() / answer.0.accelerators_per_node
    };
    same(each("h100-sxm-8"), each("h100-sxm-64"));
    assert!(each("h100-sxm-8") > 0.0);
    // The target's own price of that basis takes precedence.
    same(paid("h100-sxm-8", "on-demand", &[]).0.hourly_usd.unwrap(), 55.04);
    // A missing price is not made up.
    let none = paid("h100-sxm-8", "spot", &[]);
    assert_eq!(none.0.hourly_usd, None);
    let notes = atlas_plan::engine::notes::notes(&none.0, &none.1);
    assert!(notes.iter().any(|note| note.contains("spot price")), "{notes:?}");
    // Ownership also determines the cost of tokens.
    let owned = paid("h100-sxm-8", "owned", &[]);
    same(owned.get("usd_per_hour"), owned.get("usd_per_hour_owned"));
    same(owned.get("dollar_per_1m_tokens"), owned.get("dollar_per_1m_tokens_owned"));
}

#[test]
fn reserved_capacity_is_charged_for_idle_hours() {
    let half = |target, basis| {
        let utilization = (Knob::Utilization, Setting::Number(0.5));
        paid(target, basis, &[utilization])
    };
    let reserved = half("trn2-16", "reserved");
    same(reserved.get("usd_per_hour"), 2.0 * reserved.0.hourly_usd.unwrap());
    let on_demand = half("h100-sxm-8", "on-demand");
    same(on_demand.get("usd_per_hour"), on_demand.0.hourly_usd.unwrap());
}

#[test]
fn energy_price_averages_hours_worked_with_off_peak_hours_first() {
    let at = |utilization: f64| {
        let knobs = [
            (Knob::UsdPerKwh, 0.1),
            (Knob::PeakUsdPerKwh, 0.3),
            (Knob::PeakHours, 6.0),
            (Knob::Utilization, utilization),
        ];
        Answer::of(TRAIN.0, TRAIN.1, &knobs).0.energy_usd_per_kwh()
    };
    same(at(0.5), 0.1);
    same(at(1.0), (18.0 * 0.1 + 6.0 * 0.3) / 24.0);
    same(at(0.875), (18.0 * 0.1 + 3.0 * 0.3) / 21.0);
}

#[test]
fn a_power_cap_slows_training_more_than_decoding_and_saves_energy() {
    let capped = |target: &str, workload: &str, watts: f64| Answer::of(target, workload, &[(Knob::PowerCap, watts)]);
    let slowdown = |target: &str, workload: &str, watts: f64| {
        Answer::of(target, workload, &[]).get("tokens_per_sec") / capped(target, workload, watts).get("tokens_per_sec")
    };
    let (training, decoding) = (slowdown(TRAIN.0, TRAIN.1, 350.0), slowdown(SERVE.0, SERVE.1, 350.0));
    assert!(training > 1.2 && training < 1.7, "{training}");
    assert!(decoding > 1.0 && decoding < 0.5 * (training - 1.0) + 1.0, "{decoding} beside {training}");
    let (whole, half) = (Answer::of(TRAIN.0, TRAIN.1, &[]), capped(TRAIN.0, TRAIN.1, 350.0));
    assert!(half.get("tokens_per_joule") > whole.get("tokens_per_joule"));
    assert!(half.get("node_power_w") < 0.8 * whole.get("node_power_w"));
    // A cap above the TDP has no effect, which a note states.
    let above = capped(TRAIN.0, TRAIN.1, 900.0);
    same(above.get("tokens_per_sec"), whole.get("tokens_per_sec"));
    assert!(atlas_plan::engine::notes::notes(&above.0, &above.1).iter().any(|note| note.contains("no effect")));
    // Two nodes that share the power of 1.6 nodes are capped as well.
    let kw = 1.6 * whole.get("node_power_w") / 1000.0;
    let rack = Answer::of(TRAIN.0, TRAIN.1, &[(Knob::RackKw, kw), (Knob::NodesPerRack, 2.0)]);
    assert!(rack.get("tokens_per_sec") < whole.get("tokens_per_sec"));
    same(Answer::of(TRAIN.0, TRAIN.1, &[(Knob::RackKw, kw)]).get("tokens_per_sec"), whole.get("tokens_per_sec"));
}

#[test]
fn missing_spot_price_adds_a_note_on_how_to_state_one() {
    let answer = paid("h100-sxm-8", "spot", &[]);
    let notes = atlas_plan::engine::notes::notes(&answer.0, &answer.1);
    let missing = notes.iter().find(|note| note.contains("spot price")).expect("a note");
    assert!(missing.contains("cost.prices.spot") && missing.contains("workload/prices.yaml"), "{missing}");
    // A missing cost is not made up.
    assert_eq!(answer.0.usd_node_hour(), None);
    let known = paid("h100-sxm-8", "marketplace", &[]);
    let notes = atlas_plan::engine::notes::notes(&known.0, &known.1);
    assert!(notes.iter().any(|note| note.starts_with("marketplace price: median of")), "{notes:?}");
}

#[test]
fn target_file_sets_all_ownership_cost_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let text = "- name: mine\n  vendor: NVIDIA\n  accelerator: nvidia-h100-sxm-80gb\n  accelerators_per_node: 8\n  num_nodes: 2\n  \
                memory_gb_per_accel: 80\n  cost: { hourly_usd: 20, energy_watts_node: 10200, pue: 1.1, capex_usd_node: 300000, \
                amortization_years: 3, utilization: 0.6, network_share: 0, spares_share: 0, staff_usd_node_year: 0, \
                usd_per_kw_month: 0, capital_cost: 0 }\n";
    let targets = dir.path().join("targets.yaml");
    std::fs::write(&targets, text).unwrap();
    let library = Library::load(&Sources { targets: Some(targets), ..Sources::built_in() }, None);
    assert!(library.problems().is_empty(), "{}", library.problems());
    let parts = Parts::find(&library, "mine", TRAIN.1).unwrap();
    let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
    let answer = Answer(scenario.clone(), estimate(&scenario));
    same(
        answer.get("usd_per_hour_owned"),
        2.0 * 300_000.0 / (3.0 * 8766.0 * 0.6)
            + 2.0 * scenario.idle_usd_node_hour()
            + answer.1.cost.energy_usd_per_hour,
    );
    assert_eq!(scenario.get(Knob::Utilization), Setting::Number(0.6));
}

/// An H100 node whose target file states `cost`.
fn own_node(cost: &str) -> Parts {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "- name: mine\n  vendor: NVIDIA\n  accelerator: nvidia-h100-sxm-80gb\n  accelerators_per_node: 8\n  num_nodes: 1\n  \
         memory_gb_per_accel: 80\n  cost: {{ energy_watts_node: 10200, pue: 1.1, capex_usd_node: 300000, {cost} }}\n"
    );
    let targets = dir.path().join("targets.yaml");
    std::fs::write(&targets, text).unwrap();
    let library = Library::load(&Sources { targets: Some(targets), ..Sources::built_in() }, None);
    assert!(library.problems().is_empty(), "{}", library.problems());
    Parts::find(&library, "mine", TRAIN.1).unwrap()
}

fn at_basis(parts: &Parts, basis: &str) -> Answer {
    let overrides = Overrides::from([(Knob::PriceBasis, Setting::Choice(basis.into()))]);
    let scenario = Scenario::resolve(parts, &overrides).unwrap();
    let estimate = estimate(&scenario);
    Answer(scenario, estimate)
}

#[test]
fn a_price_basis_without_a_price_takes_that_of_the_catalog() {
    let price = |basis: &str| {
        let parts = own_node(&format!("basis: {basis}, hourly_usd: 0"));
        at_basis(&parts, "on-demand").0.hourly_usd
    };
    assert_eq!(price("on-demand"), price("reserved"));
    assert!(price("on-demand").is_some_and(|usd| usd > 10.0));
}

#[test]
fn break_even_compares_with_the_same_rent_at_every_price_basis() {
    let parts = own_node("basis: reserved, hourly_usd: 30, utilization: 0.5");
    let months = |basis| at_basis(&parts, basis).get("break_even_months");
    same(months("owned"), months("stated"));
    same(months("owned"), months("reserved"));
}

#[test]
fn break_even_states_what_it_assumes_of_idle_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["break-even", "--target", "h100-sxm-8", "--workload", "llama3.1-70b-serve"];
    let text = stdout(&atlas(dir.path(), &args).assert().code(0));
    assert!(text.contains("owned nodes draw idle power while they are not used"), "{text}");
}

#[test]
fn node_power_increases_with_load() {
    let watts =
        |target: &str, workload: &str, knobs: &[(Knob, f64)]| Answer::of(target, workload, knobs).1.total.node_power_w;
    let training = watts(TRAIN.0, TRAIN.1, &[]);
    // A busy node of 8 H100 draws about 8 of its nominal 10.2 kW (arXiv 2412.08602: at most 8.4).
    assert!((7.2e3..=8.6e3).contains(&training), "{training}");
    let busy = watts(SERVE.0, SERVE.1, &[(Knob::Concurrency, 256.0)]);
    let calm = watts(SERVE.0, SERVE.1, &[(Knob::RequestRate, 0.01)]);
    assert!(training > busy && busy > 1.3 * calm, "{training} {busy} {calm}");
    // With half of the accelerators in use, the idle ones still draw power.
    let half = watts(TRAIN.0, TRAIN.1, &[(Knob::Dp, 4.0), (Knob::Global, 1152.0)]);
    assert!(half > 0.55 * training && half < 0.75 * training, "{half} of {training}");
    // No TDP is published for Trainium; a share of the node's power is used instead.
    let trainium = watts("trn2-16", TRAIN.1, &[]);
    assert!((0.5..0.95).contains(&(trainium / 9600.0)), "{trainium}");
}

#[test]
fn energy_of_owned_hardware_is_derived_from_power_and_its_price() {
    let parts = Parts::find(&Library::load(&Sources::built_in(), None), "h100-sxm-128", "llama3.1-70b-train").unwrap();
    let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
    let estimate = estimate(&scenario);
    let tree = |name: &str| explain(&scenario, &parts, &estimate, Metric::named(name).unwrap()).unwrap();
    let owned = tree("usd_per_hour_owned");
    let symbols: Vec<&str> = owned.walk().iter().map(|term| &*term.symbol).collect();
    assert!(["P_node", "PUE", "USD_kWh"].iter().all(|symbol| symbols.contains(symbol)), "{symbols:?}");
    // A node is bought and rented, so that the energy is that of one node, too.
    let months = tree("break_even_months");
    let saved = months.dependencies.iter().find(|term| term.symbol == "C_saved").unwrap();
    let energy = saved.walk().into_iter().find(|term| term.symbol == "C_energy").unwrap().value;
    same(energy * scenario.num_nodes, estimate.cost.energy_usd_per_hour);
}
