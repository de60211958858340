//! Formats a calibration as a profile document.

use std::fmt::Write as _;

use super::parameter::{Parameter, ProfileValues};
use super::{Outcome, Start};
use atlas_config::corrections::{Factor, Quantity};
use atlas_config::profile::Coefficients;
use atlas_config::{Corrections, Efficiency};

/// Returns the profile as YAML: the new coefficients, and the provenance of every parameter found.
#[must_use]
pub fn profile(outcome: &Outcome, start: &Start, vendor: &str, date: &str) -> String {
    let mut out = String::new();
    let all = outcome.all();
    let _ = writeln!(
        out,
        "# Written by `atlas calibrate`. `calibration` lists the measured parameters; all others are unchanged."
    );
    let base = start.profile.as_ref().filter(|profile| profile.calibrated);
    let from = base.map_or("the shipped constants".to_owned(), |profile| format!("profile {}", profile.name));
    line(&mut out, 0, "description", &quoted(&format!("{}, calibrated on {date} from {from}", outcome.target)));
    let _ = writeln!(out, "match:");
    line(&mut out, 2, "name", &quoted(&outcome.target));
    if base.is_some() {
        line(&mut out, 2, "vendor", &quoted(vendor));
    }
    if let Some(profile) = base {
        if !profile.best_for.is_empty() {
            let _ = writeln!(out, "best_for:");
            for use_ in &profile.best_for {
                let _ = writeln!(out, "  - {}", quoted(use_));
            }
        }
        if let Some(notes) = &profile.notes {
            line(&mut out, 0, "notes", &quoted(notes));
        }
    }
    if let Some(figures) = &outcome.figures {
        coefficients(&mut out, figures);
    }
    if outcome.efficiency != Efficiency::default() {
        efficiency(&mut out, &outcome.efficiency);
    }
    if let Some(found) = &outcome.corrections {
        corrections(&mut out, found);
    }
    calibration(&mut out, outcome, &all, date);
    out
}

/// Returns the profile of a target without measurements: the coefficients of another profile, to be calibrated later.
#[must_use]
pub fn uncalibrated(target: &str, vendor: &str, base: &str, figures: &ProfileValues) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "# Written by `atlas config profile`. Nothing here was measured on this target; `atlas calibrate`"
    );
    let _ = writeln!(out, "# replaces the values that measurements determine.");
    line(&mut out, 0, "description", &quoted(&format!("{target}, not calibrated: coefficients of profile {base}")));
    let _ = writeln!(out, "match:");
    line(&mut out, 2, "name", &quoted(target));
    line(&mut out, 2, "vendor", &quoted(vendor));
    coefficients(&mut out, figures);
    out
}

fn line(out: &mut String, indent: usize, key: &str, value: &str) {
    let _ = writeln!(out, "{:indent$}{key}: {value}", "");
}

/// Quotes text for YAML: JSON strings are always valid.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Formats a number such that YAML parses it as the same number.
fn number(value: f64) -> String {
    let text = format!("{value:?}");
    // YAML 1.2 requires a decimal point before an exponent.
    match text.split_once('e') {
        Some((head, exponent)) if !head.contains('.') => format!("{head}.0e{exponent}"),
        _ => text,
    }
}

/// Writes a section of numbers.
fn section(out: &mut String, key: &str, fields: &[(&str, f64)]) {
    numbers(out, 0, key, fields);
}

/// Writes a section of numbers in another section.
fn nested(out: &mut String, key: &str, fields: &[(&str, f64)]) {
    numbers(out, 2, key, fields);
}

fn numbers(out: &mut String, indent: usize, key: &str, fields: &[(&str, f64)]) {
    let _ = writeln!(out, "{:indent$}{key}:", "");
    for (name, value) in fields {
        line(out, indent + 2, name, &number(*value));
    }
}

fn coefficients(out: &mut String, figures: &ProfileValues) {
    let c: &Coefficients = &figures.coefficients;
    section(out, "compute", &[("base_tokens_per_accel", c.b_base), ("comm_penalty_coeff", c.kappa_comm)]);
    nested(out, "factors", &[("training", c.f_training), ("inference", c.f_inference)]);
    section(out, "utilization", &[("base", c.rho_base), ("max", c.rho_max)]);
    nested(
        out,
        "knob_increments",
        &[
            ("cuda_graphs", c.delta_rho_cuda),
            ("gpudirect_rdma", c.delta_rho_gpudirect),
            ("inference_bonus", c.delta_rho_infer),
        ],
    );
    let _ = writeln!(out, "communication:");
    nested(
        out,
        "intensity",
        &[("base", c.chi_base), ("per_tp", c.chi_tp), ("per_pp", c.chi_pp), ("inference_scale", c.chi_infer_scale)],
    );
    let _ = writeln!(out, "  fabric_factors:");
    for (name, factor) in &figures.fabrics {
        line(out, 4, &quoted(name), &number(*factor));
    }
    for (name, value) in [
        ("jitter_per_sriov", c.jitter_sriov),
        ("gpudirect_multiplier", c.gamma_gpudirect),
        ("min_overhead", c.omega_min),
    ] {
        line(out, 2, name, &number(value));
    }
    section(out, "throughput", &[("overhead_weight", c.omega)]);
    section(
        out,
        "latency",
        &[("min_p50_ms", c.lat_min), ("base_p50_coeff", c.lat_base_coeff), ("ttft_ratio", c.r_ttft)],
    );
    nested(
        out,
        "tail",
        &[
            ("p95_multiplier", c.m95),
            ("p99_multiplier", c.m99),
            ("sriov_tail", c.tail_sriov),
            ("comm_tail", c.tail_comm),
        ],
    );
    section(out, "power", &[("idle_fraction", c.phi_idle), ("util_fraction", c.phi_util)]);
    if let Some(watts) = figures.node_watts {
        line(out, 2, "node_nominal_w", &number(watts));
    }
    section(out, "memory", &[("peak_tokens_factor", c.peak_tokens_factor)]);
    section(
        out,
        "hbm",
        &[("base", c.hbm_base), ("seq_scale", c.hbm_seq_scale), ("seq_norm", c.hbm_seq_norm), ("max", c.hbm_max)],
    );
    section(out, "noise", &[("amplitude", c.sigma_noise), ("tail_scale", c.sigma_tail)]);
    section(out, "retries", &[("overhead_threshold", c.overhead_threshold)]);
}

/// Writes the efficiency section of profiles and targets.
pub fn efficiency(out: &mut String, efficiency: &Efficiency) {
    let _ = writeln!(out, "efficiency:");
    for (mode, factors) in [("training", efficiency.training), ("serving", efficiency.serving)] {
        let all: Vec<String> = atlas_config::Factors::NAMES
            .iter()
            .zip(factors.all())
            .map(|(name, value)| format!("{name}: {}", number((value * 1e4).round() / 1e4)))
            .collect();
        let _ = writeln!(out, "  {mode}: {{ {} }}", all.join(", "));
    }
}

/// Writes the corrections section of profiles.
fn corrections(out: &mut String, found: &Corrections) {
    let _ =
        writeln!(out, "# Effects are additive in the logarithm of measured over predicted; see docs/calibration.md.");
    let _ = writeln!(out, "corrections:");
    line(out, 2, "accelerator", &quoted(&found.accelerator));
    let runs: Vec<String> = found.runs.iter().map(|run| quoted(run)).collect();
    line(out, 2, "runs", &format!("[{}]", runs.join(", ")));
    for quantity in Quantity::ALL {
        let Some(one) = found.of(quantity) else { continue };
        let _ = writeln!(out, "  {}:", quantity.key());
        line(out, 4, "runs", &one.runs.to_string());
        line(out, 4, "residual", &number(one.residual));
        line(out, 4, "reach", &number(one.reach));
        line(out, 4, "growth", &number(one.growth));
        let unseen = one.unseen;
        let all = [("accelerator", unseen.accelerator), ("software", unseen.software), ("model", unseen.model)];
        let all: Vec<String> = all.iter().map(|(name, value)| format!("{name}: {}", number(*value))).collect();
        line(out, 4, "unseen", &format!("{{ {} }}", all.join(", ")));
        let _ = writeln!(out, "    effects:");
        for (factor, value) in &one.effects {
            let (kind, name) = factor.kind_and_name();
            let name = name.map_or_else(String::new, |name| format!(", name: {}", quoted(name)));
            let at = match factor {
                Factor::Near(one) => format!(
                    ", accelerator: {}, software: {}, at: [{}], falloff: {}",
                    quoted(&one.accelerator),
                    quoted(&one.software),
                    one.shape.0.map(number).join(", "),
                    number(one.falloff)
                ),
                _ => String::new(),
            };
            let _ = writeln!(out, "      - {{ of: {kind}{name}{at}, value: {} }}", number(*value));
        }
        let _ = writeln!(out, "    covariance:");
        for row in &one.covariance {
            let row: Vec<String> = row.iter().map(|cell| number(*cell)).collect();
            let _ = writeln!(out, "      - [{}]", row.join(", "));
        }
    }
}

fn calibration(out: &mut String, outcome: &Outcome, all: &[Parameter], date: &str) {
    let _ = writeln!(out, "calibration:");
    line(out, 2, "date", &quoted(date));
    line(out, 2, "target", &quoted(&outcome.target));
    if !outcome.warnings.is_empty() {
        let _ = writeln!(out, "  warnings:");
        for warning in &outcome.warnings {
            let _ = writeln!(out, "    - {}", quoted(warning));
        }
    }
    let _ = writeln!(out, "  parameters:{}", if all.is_empty() { " {}" } else { "" });
    for parameter in all {
        let _ = writeln!(out, "    {}:", quoted(&parameter.path));
        line(out, 6, "symbol", &quoted(&parameter.symbol));
        line(out, 6, "value", &number(parameter.value));
        if let Some([low, high]) = parameter.interval {
            line(out, 6, "interval", &format!("[{}, {}]", number(low), number(high)));
        }
        line(out, 6, "n", &parameter.n.to_string());
        if let Some(r2) = parameter.r2 {
            line(out, 6, "r2", &number((r2 * 1e4).round() / 1e4));
        }
        line(out, 6, "method", &quoted(&parameter.method));
        line(out, 6, "date", &quoted(date));
        let sources: Vec<String> = parameter.sources.iter().map(|source| quoted(source)).collect();
        line(out, 6, "sources", &format!("[{}]", sources.join(", ")));
    }
}
