//! Profiles: the calibrated coefficients of the semi-empirical model.

use std::sync::Arc;

use super::calibration::Calibration;
use super::corrections::Corrections;
use super::efficiency::Efficiency;
use atlas_document::Origin;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::diagnostic::Diagnostics;
use atlas_document::node::Node;

pub use atlas_legacy::semi_empirical::coefficients::Coefficients;

/// A named set of coefficients, and the targets to which it applies.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Name: the file stem, such as `nvidia`.
    pub name: Arc<str>,
    /// Vendor of the targets to which the profile applies.
    pub match_vendor: Option<String>,
    /// Name of the target to which the profile applies.
    pub match_name: Option<String>,
    /// Description, one line.
    pub description: Option<String>,
    /// Recommended uses.
    pub best_for: Vec<String>,
    /// Sources and caveats.
    pub notes: Option<String>,
    /// The coefficients.
    pub coefficients: Coefficients,
    /// Communication factors (gamma_fabric) by fabric name, in file order.
    pub fabrics: Arc<[(Arc<str>, f64)]>,
    /// Measured node power (p_node_nominal), W; `None`: that of the target.
    pub node_watts: Option<f64>,
    /// Efficiency factors of the analytical engine.
    pub efficiency: Option<Efficiency>,
    /// Corrections of the analytical engine's metrics, learned from runs.
    pub corrections: Option<Arc<Corrections>>,
    /// Whether there are coefficients. A profile can contain only efficiency factors or corrections.
    pub calibrated: bool,
    /// Provenance of the coefficients.
    pub calibration: Option<Arc<Calibration>>,
    /// Location of the file.
    pub origin: Origin,
}

/// The fields by which a profile is selected, read before its coefficients.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileKey {
    /// File stem, lower case.
    pub stem: String,
    /// `match.vendor`, lower case.
    pub vendor: Option<String>,
    /// `match.name`.
    pub target: Option<String>,
}

impl ProfileKey {
    /// Reads the key of a profile document.
    #[must_use]
    pub fn of(stem: &str, node: &Node) -> ProfileKey {
        ProfileKey::matching(stem, node.get("match"))
    }

    /// Creates the key of a profile document whose `match` node is `matched`.
    #[must_use]
    pub fn matching(stem: &str, matched: Option<&Node>) -> ProfileKey {
        let text = |key: &str| matched.and_then(|matched| matched.get(key)).and_then(Node::text).map(str::to_owned);
        ProfileKey { stem: stem.to_lowercase(), vendor: text("vendor").map(|v| v.to_lowercase()), target: text("name") }
    }
}

/// File stem of a target's own profile: the name in lower case, with `_` for non-alphanumeric characters.
#[must_use]
pub fn stem_for(name: &str) -> String {
    name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Selects a profile for a target: the one named after the target, else after its vendor, else the first whose `match`
/// contains the target or the vendor. Profiles are tried in the given order, which is sorted by name to be independent
/// of the file system.
#[must_use]
pub fn choose(keys: &[ProfileKey], target_name: &str, vendor: &str) -> Option<usize> {
    let own = stem_for(target_name);
    let vendor = vendor.to_lowercase();
    let by_stem = |stem: &str| keys.iter().position(|key| key.stem == stem);
    by_stem(&own).or_else(|| by_stem(&vendor)).or_else(|| {
        keys.iter().position(|key| {
            key.target.as_deref() == Some(target_name) || key.vendor.as_deref() == Some(vendor.as_str())
        })
    })
}

impl Profile {
    /// Decodes a profile document. `stem` is its file name without the extension.
    pub fn decode(file: &Arc<str>, stem: &str, node: &Node, diagnostics: &mut Diagnostics) -> Option<Profile> {
        let before = diagnostics.errors();
        let mut fields = Fields::open(file, stem, node, diagnostics)?;
        let mut c = Coefficients::default();
        let efficiency = Efficiency::read(&mut fields);
        let corrections = Corrections::read(&mut fields).map(Arc::new);
        // A profile with only efficiency factors or corrections is valid.
        let none = efficiency.is_none() && corrections.is_none();
        let calibrated = none || SECTIONS.iter().any(|key| node.get(key).is_some());
        let (fabrics, node_watts) = if calibrated { coefficients(&mut fields, &mut c) } else { (Vec::new(), None) };
        let matched = fields.map("match", |m| (m.text("vendor"), m.text("name"))).unwrap_or_default();
        let description = fields.text("description");
        let best_for = fields.texts("best_for");
        let notes = fields.text("notes");
        let calibration = fields.node("calibration").and_then(Calibration::of_node).map(Arc::new);
        let at = fields.at();
        fields.finish();
        if diagnostics.errors() > before {
            return None;
        }
        Some(Profile {
            name: stem.into(),
            match_vendor: matched.0,
            match_name: matched.1,
            description,
            best_for,
            notes,
            coefficients: c,
            fabrics: fabrics.into(),
            node_watts,
            efficiency,
            corrections,
            calibrated,
            calibration,
            origin: Origin { file: Arc::clone(file), at },
        })
    }

    /// Whether this profile and `other` result in the same estimates.
    #[must_use]
    pub fn is_equivalent_to(&self, other: &Profile) -> bool {
        self.coefficients == other.coefficients
            && self.fabrics == other.fabrics
            && self.node_watts == other.node_watts
            && self.efficiency == other.efficiency
            && self.corrections == other.corrections
            && self.calibrated == other.calibrated
    }

    /// Communication factor (gamma_fabric) of a fabric; `None` if the profile does not contain it.
    #[must_use]
    pub fn fabric_factor(&self, fabric: &str) -> Option<f64> {
        self.fabrics.iter().find(|(name, _)| &**name == fabric).map(|(_, factor)| *factor)
    }
}

/// Sections with coefficients.
const SECTIONS: [&str; 10] =
    ["compute", "utilization", "communication", "throughput", "latency", "power", "hbm", "memory", "noise", "retries"];

type Slots<'s> = [(&'static str, &'s mut f64)];

/// Reads all coefficients into `c`. Returns the factors of fabrics by name, and the measured node power, if stated.
fn coefficients(fields: &mut Fields<'_>, c: &mut Coefficients) -> (Vec<(Arc<str>, f64)>, Option<f64>) {
    let at = &mut *fields;
    required(
        at,
        "compute",
        &mut [("base_tokens_per_accel", &mut c.b_base), ("comm_penalty_coeff", &mut c.kappa_comm)],
        "factors",
        &mut [("training", &mut c.f_training), ("inference", &mut c.f_inference)],
    );
    required(
        at,
        "utilization",
        &mut [("base", &mut c.rho_base), ("max", &mut c.rho_max)],
        "knob_increments",
        &mut [
            ("cuda_graphs", &mut c.delta_rho_cuda),
            ("gpudirect_rdma", &mut c.delta_rho_gpudirect),
            ("inference_bonus", &mut c.delta_rho_infer),
        ],
    );
    let fabrics = communication(fields, c);
    let at = &mut *fields;
    required(at, "throughput", &mut [("overhead_weight", &mut c.omega)], "", &mut []);
    required(
        at,
        "latency",
        &mut [("min_p50_ms", &mut c.lat_min), ("base_p50_coeff", &mut c.lat_base_coeff), ("ttft_ratio", &mut c.r_ttft)],
        "tail",
        &mut [
            ("p95_multiplier", &mut c.m95),
            ("p99_multiplier", &mut c.m99),
            ("comm_tail", &mut c.tail_comm),
            ("sriov_tail", &mut c.tail_sriov),
        ],
    );
    let node_watts = at.required_map("power", &["idle_fraction", "util_fraction"], |section| {
        fill(section, &mut [("idle_fraction", &mut c.phi_idle), ("util_fraction", &mut c.phi_util)]);
        section.number("node_nominal_w", Bounds::POSITIVE).filter(|watts| *watts > 0.0)
    });
    required(
        at,
        "hbm",
        &mut [
            ("base", &mut c.hbm_base),
            ("seq_scale", &mut c.hbm_seq_scale),
            ("seq_norm", &mut c.hbm_seq_norm),
            ("max", &mut c.hbm_max),
        ],
        "",
        &mut [],
    );
    required(at, "memory", &mut [("peak_tokens_factor", &mut c.peak_tokens_factor)], "", &mut []);
    required(at, "noise", &mut [("amplitude", &mut c.sigma_noise), ("tail_scale", &mut c.sigma_tail)], "", &mut []);
    required(at, "retries", &mut [("overhead_threshold", &mut c.overhead_threshold)], "", &mut []);
    (fabrics, node_watts.flatten())
}

/// Reads the numbers of section `key` and, unless `inner_slots` is empty, of its subsection `inner` into their slots.
fn required(
    fields: &mut Fields<'_>,
    key: &'static str,
    slots: &mut Slots<'_>,
    inner: &'static str,
    inner_slots: &mut Slots<'_>,
) {
    let mut needed: Vec<String> = slots.iter().map(|(name, _)| (*name).to_owned()).collect();
    needed.extend(inner_slots.iter().map(|(name, _)| format!("{inner}.{name}")));
    let needed: Vec<&str> = needed.iter().map(String::as_str).collect();
    fields.required_map(key, &needed, |section| {
        fill(section, slots);
        if !inner_slots.is_empty() {
            let names: Vec<&str> = inner_slots.iter().map(|(name, _)| *name).collect();
            section.required_map(inner, &names, |sub| fill(sub, inner_slots));
        }
    });
}

/// Bounds of a coefficient. Rates, shares, factors and times are not negative; an optimization can reduce utilization.
fn bounds(name: &str) -> Bounds {
    match name {
        "cuda_graphs" | "gpudirect_rdma" | "inference_bonus" => Bounds { min: -1.0, max: 1.0, whole: false },
        // A limit above 1 has no effect, but occurs in files of the predecessor system.
        "max" => Bounds { min: 0.0, max: 2.0, whole: false },
        "idle_fraction" | "util_fraction" => Bounds { min: 0.0, max: 10.0, whole: false },
        "seq_norm" => Bounds { min: 1e-6, max: 1e12, whole: false },
        _ => Bounds { max: 1e12, ..Bounds::POSITIVE },
    }
}

fn fill(section: &mut Fields<'_>, slots: &mut Slots<'_>) {
    for (name, slot) in slots {
        if let Some(value) = section.required_number(name, bounds(name)) {
            **slot = value;
        }
    }
}

/// Reads the communication section, in which fabric names are arbitrary.
fn communication(fields: &mut Fields<'_>, c: &mut Coefficients) -> Vec<(Arc<str>, f64)> {
    let needed = [
        "jitter_per_sriov",
        "gpudirect_multiplier",
        "min_overhead",
        "intensity.base",
        "intensity.per_tp",
        "intensity.per_pp",
        "intensity.inference_scale",
        "fabric_factors",
    ];
    fields
        .required_map("communication", &needed, |section| {
            fill(
                section,
                &mut [
                    ("jitter_per_sriov", &mut c.jitter_sriov),
                    ("gpudirect_multiplier", &mut c.gamma_gpudirect),
                    ("min_overhead", &mut c.omega_min),
                ],
            );
            section.required_map("intensity", &["base", "per_tp", "per_pp", "inference_scale"], |sub| {
                fill(
                    sub,
                    &mut [
                        ("base", &mut c.chi_base),
                        ("per_tp", &mut c.chi_tp),
                        ("per_pp", &mut c.chi_pp),
                        ("inference_scale", &mut c.chi_infer_scale),
                    ],
                );
            });
            section
                .required_map("fabric_factors", &["IB"], |sub| {
                    let mut fabrics: Vec<(Arc<str>, f64)> = Vec::new();
                    for entry in sub.all() {
                        match entry.value.number().filter(|value| Bounds::POSITIVE.contains(*value)) {
                            Some(factor) => fabrics.push(((*entry.key).into(), factor)),
                            None => {
                                let message = format!("found {}, expected a number from 0", entry.value.describe());
                                sub.error(&entry.key, message, None);
                            }
                        }
                    }
                    fabrics
                })
                .unwrap_or_default()
        })
        .unwrap_or_default()
}
