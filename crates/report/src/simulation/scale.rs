//! Output of scaling curves.

use serde_json::{Value, json};

use crate::chart::{Axis, Plot, Series};
use crate::csv;
use crate::table::{Align, Table, wrap};
use atlas_core::units;
use atlas_plan::simulation::scale::{Answer, Curve};
use atlas_sim::scaling::Work;

/// Name of the kind of scaling: strong or weak.
#[must_use]
pub fn name(work: Work) -> &'static str {
    match work {
        Work::Fixed => "strong",
        Work::PerAccelerator => "weak",
    }
}

fn heading(work: Work) -> &'static str {
    match work {
        Work::Fixed => "strong scaling: constant total work",
        Work::PerAccelerator => "weak scaling: constant work per accelerator",
    }
}

/// Share of a step spent waiting for communication; `None` if the answer has no breakdown.
fn communication(answer: &Answer) -> Option<f64> {
    answer.step().map(|(_, parts)| parts.communication / parts.total().max(1e-12))
}

/// Renders the curves as text.
#[must_use]
pub fn render(curves: &[Curve], width: usize) -> String {
    let mut out = String::new();
    for (number, curve) in curves.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        out += heading(curve.work);
        out.push('\n');
        let training = curve.points.iter().any(|p| p.answer.as_ref().is_ok_and(|a| a.step().is_some()));
        let priced = curve.points.iter().any(|p| p.answer.as_ref().is_ok_and(|a| a.cost.is_some()));
        let head = [
            "nodes",
            "accelerators",
            if training { "step" } else { "" },
            "tok/s",
            "efficiency",
            "closed form",
            if training { "network" } else { "stepping" },
            if priced { "$/1M tokens" } else { "" },
            "",
        ];
        let align = |i: usize| if i == 8 { Align::Left } else { Align::Right };
        let mut table = Table::new(head.into_iter().enumerate().map(|(i, name)| (name, align(i))));
        for point in &curve.points {
            let sizes = [point.nodes.to_string(), point.accelerators.to_string()];
            let cells: Vec<String> = match &point.answer {
                Ok(a) => vec![
                    a.step().map_or_else(String::new, |(step, _)| units::duration(step)),
                    units::si(a.rate),
                    units::percent(a.efficiency),
                    units::percent(a.analytical_efficiency),
                    units::percent(communication(a).unwrap_or(a.busy)),
                    a.cost.map_or_else(String::new, |cost| units::usd(cost.usd_per_million_tokens)),
                    if Some(point.nodes) == curve.inefficient_at { "breaks".to_owned() } else { String::new() },
                ],
                Err(why) => std::iter::repeat_n(String::new(), 6).chain([why.clone()]).collect(),
            };
            table.row(sizes.into_iter().chain(cells));
        }
        out += &table.render();
        out += &wrap(&verdict(curve), width, "  ");
        out.push('\n');
    }
    for note in curves.first().iter().flat_map(|curve| &curve.notes) {
        out += &wrap(&format!("note: {note}"), width, "      ");
        out.push('\n');
    }
    out
}

/// Describes where a curve breaks down, why, and what is recommended.
#[must_use]
pub fn verdict(curve: &Curve) -> String {
    let mut out = describe_curve(curve);
    let better = curve
        .points
        .iter()
        .filter_map(|point| point.answer.as_ref().ok())
        .any(|a| a.efficiency > SUPERLINEAR_EFFICIENCY);
    if better {
        out += ". Efficiencies above 100 % mean that the smallest size lacks a resource: for example, it recomputes \
                activations to fit in memory";
    }
    out
}

/// Efficiency above which an explanation is added.
const SUPERLINEAR_EFFICIENCY: f64 = 1.02;

fn describe_curve(curve: &Curve) -> String {
    let limit = units::percent(curve.limit);
    let answered = curve.points.iter().filter(|point| point.answer.is_ok()).count();
    let count = |nodes: f64| if nodes == 1.0 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    let recommended = curve.recommended.map(|nodes| format!("recommended scale: {}", count(nodes)));
    let refused = curve.points.iter().filter(|point| point.answer.is_err());
    let refused: Vec<String> = refused.map(|point| point.nodes.to_string()).collect();
    let (lead, sizes) = match refused.as_slice() {
        [] => (String::new(), "all sizes"),
        [one] if one == "1" => ("1 node cannot run; ".to_owned(), "all sizes that run"),
        all => (format!("{} nodes cannot run; ", all.join(", ")), "all sizes that run"),
    };
    let conclusion = match (curve.inefficient_at, &curve.reason, recommended) {
        _ if answered == 0 => return "no size can run".to_owned(),
        (Some(nodes), Some(why), Some(recommended)) => {
            format!("efficiency falls below {limit} at {}: {why}; {recommended}", count(nodes))
        }
        (Some(nodes), Some(why), None) => format!("efficiency falls below {limit} at {}: {why}", count(nodes)),
        (Some(nodes), None, recommended) => {
            format!("efficiency falls below {limit} at {}; {}", count(nodes), recommended.unwrap_or_default())
        }
        (None, _, Some(recommended)) => {
            format!("efficiency stays at or above {limit} for {sizes}; {recommended}, the largest")
        }
        (None, _, None) => "nothing to compare".to_owned(),
    };
    lead + &conclusion
}

/// Returns the curves as a JSON value.
#[must_use]
pub fn document(name_of: &str, curves: &[Curve]) -> Value {
    let curve = |curve: &Curve| {
        let points = curve.points.iter().map(|point| match &point.answer {
            Ok(a) => json!({
                "nodes": point.nodes,
                "accelerators": point.accelerators,
                "iteration_time": a.step().map(|(step, _)| step),
                "tokens_per_sec": a.rate,
                "analytical_tokens_per_sec": a.analytical_rate,
                "efficiency": a.efficiency,
                "analytical_efficiency": a.analytical_efficiency,
                "communication_ratio": communication(a),
                "busy": a.busy,
                "cost": a.cost,
            }),
            Err(why) => json!({"nodes": point.nodes, "accelerators": point.accelerators, "error": why}),
        });
        json!({
            "mode": name(curve.work),
            "points": points.collect::<Vec<_>>(),
            "threshold": curve.limit,
            "breakdown_point": curve.inefficient_at,
            "reason": curve.reason,
            "recommended_scale": curve.recommended,
            "notes": curve.notes,
        })
    };
    json!({"name": name_of, "curves": curves.iter().map(curve).collect::<Vec<_>>()})
}

/// Returns CSV, a line per point.
#[must_use]
pub fn csv_of(curves: &[Curve]) -> String {
    let mut out = csv::line([
        "mode",
        "nodes",
        "accelerators",
        "iteration_time_s",
        "tokens_per_sec",
        "efficiency",
        "analytical_tokens_per_sec",
        "analytical_efficiency",
        "communication_ratio",
        "usd_per_hour",
        "usd_per_million_tokens",
        "error",
    ]);
    for curve in curves {
        for point in &curve.points {
            let mut cells = vec![name(curve.work).to_owned(), point.nodes.to_string(), point.accelerators.to_string()];
            match &point.answer {
                Ok(a) => {
                    cells.push(csv::optional(a.step().map(|(step, _)| step)));
                    cells.extend(
                        [a.rate, a.efficiency, a.analytical_rate, a.analytical_efficiency].map(|v| v.to_string()),
                    );
                    cells.push(csv::optional(communication(a)));
                    let usd = [a.cost.map(|cost| cost.usd_per_hour), a.cost.map(|cost| cost.usd_per_million_tokens)];
                    cells.extend(usd.map(csv::optional));
                    cells.push(String::new());
                }
                Err(why) => {
                    cells.extend(std::iter::repeat_n(String::new(), 8));
                    cells.push(why.clone());
                }
            }
            out += &csv::line(&cells);
        }
    }
    out
}

/// Plot of efficiency over accelerators, simulated and in closed form.
#[must_use]
pub fn plot(name_of: &str, curves: &[Curve]) -> Plot {
    let points = |curve: &Curve, of: fn(&Answer) -> f64| -> Vec<(f64, f64)> {
        curve.points.iter().filter_map(|p| Some((p.accelerators, of(p.answer.as_ref().ok()?)))).collect()
    };
    let mut series = Vec::new();
    for curve in curves {
        let of = |what: &str, points| Series { name: format!("{} {what}", name(curve.work)), points, joined: true };
        series.push(of("simulated", points(curve, |a| a.efficiency)));
        series.push(of("closed form", points(curve, |a| a.analytical_efficiency)));
    }
    let all = || curves.iter().flat_map(|curve| &curve.points).filter(|p| p.answer.is_ok()).map(|p| p.accelerators);
    let (smallest, largest) =
        all().fold((f64::INFINITY, 0.0), |(smallest, largest), n| (f64::min(smallest, n), f64::max(largest, n)));
    if let Some(limit) = curves.first().map(|curve| curve.limit).filter(|_| smallest < largest) {
        series.push(Series {
            name: "threshold".to_owned(),
            points: vec![(smallest, limit), (largest, limit)],
            joined: true,
        });
    }
    Plot {
        title: format!("{name_of}: scaling efficiency"),
        across: Axis::log("accelerators"),
        up: Axis::linear("efficiency"),
        series,
        highlighted: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_plan::simulation::scale::{ModeAnswer, Point};

    #[test]
    fn conclusion_names_the_sizes_that_cannot_run() {
        let answer = Answer {
            mode: ModeAnswer::Serving { running: 1.0 },
            rate: 1.0,
            analytical_rate: 1.0,
            busy: 1.0,
            efficiency: 1.0,
            analytical_efficiency: 1.0,
            cost: None,
        };
        let point = |nodes, answer| Point { nodes, accelerators: 8.0 * nodes, answer };
        let mut curve = Curve {
            work: Work::Fixed,
            points: vec![point(1.0, Ok(answer)), point(128.0, Err("too few sequences".to_owned()))],
            inefficient_at: None,
            reason: None,
            recommended: Some(1.0),
            limit: 0.7,
            notes: Vec::new(),
        };
        assert_eq!(
            verdict(&curve),
            "128 nodes cannot run; efficiency stays at or above 70.0 % for all sizes that run; recommended scale: 1 node, \
             the largest"
        );
        curve.points.pop();
        assert!(verdict(&curve).starts_with("efficiency stays at or above 70.0 % for all sizes; "));
    }
}
