//! `schedule`: the phases of a workload, each with its overrides merged.

use std::sync::Arc;

use super::{Arrival, PhaseSpec, Traffic, read_shape};
use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::diagnostic::{Diagnostic, Diagnostics, Severity};
use atlas_document::node::Node;
use atlas_document::suggestion::did_you_mean;

/// Reads `schedule` and merges each phase's overrides into the workload.
pub(super) struct Schedule<'a> {
    pub(super) file: &'a Arc<str>,
    pub(super) label: &'a str,
    pub(super) workload: &'a Node,
    pub(super) duration_minutes: Option<f64>,
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl Schedule<'_> {
    fn complain(&mut self, severity: Severity, node: &Node, path: String, message: String, help: Option<String>) {
        let file = Arc::clone(self.file);
        self.diagnostics.push(Diagnostic { severity, file, at: node.at, path, message, help });
    }

    pub(super) fn decode(mut self, schedule: &Node) -> Vec<PhaseSpec> {
        let path = format!("{}.schedule", self.label);
        let Some(entries) = schedule.entries() else {
            let message =
                format!("found {}, expected a mapping with `phases`; the schedule is ignored", schedule.describe());
            self.complain(Severity::Warning, schedule, path, message, None);
            return Vec::new();
        };
        for entry in entries.iter().filter(|entry| !["phases", "default_request_profile"].contains(&&*entry.key)) {
            let help = did_you_mean(&entry.key, ["phases", "default_request_profile"]);
            let file = Arc::clone(self.file);
            let message = "unknown key; kept but ignored".to_owned();
            let path = format!("{path}.{}", entry.key);
            self.diagnostics.push(Diagnostic {
                severity: Severity::Warning,
                file,
                at: entry.key_at,
                path,
                message,
                help,
            });
        }
        let default_profile = schedule.get("default_request_profile").filter(|node| !node.is_null());
        if let Some(node) = default_profile.filter(|node| node.text().and_then(Traffic::named).is_none()) {
            let message = format!("found {}, treated as steady_state; known: {}", node.describe(), Traffic::names());
            self.complain(Severity::Warning, node, format!("{path}.default_request_profile"), message, None);
        }
        let default_profile = default_profile.and_then(Node::text).map(str::to_owned);
        let Some(list) = schedule.get("phases").filter(|phases| !phases.is_null()) else { return Vec::new() };
        let Some(items) = list.items() else {
            let message = format!("found {}, expected a list of phases; the schedule is ignored", list.describe());
            self.complain(Severity::Warning, list, format!("{path}.phases"), message, None);
            return Vec::new();
        };
        let mut phases = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if item.entries().is_none() {
                let message = format!("found {}, expected a mapping; the phase is skipped", item.describe());
                self.complain(Severity::Warning, item, format!("{path}.phases[{index}]"), message, None);
                continue;
            }
            phases.extend(self.phase(index, item, default_profile.as_deref()));
        }
        phases
    }

    fn phase(&mut self, index: usize, node: &Node, default_profile: Option<&str>) -> Option<PhaseSpec> {
        let path = format!("{}.schedule.phases[{index}]", self.label);
        let mut fields = Fields::open(self.file, path.clone(), node, self.diagnostics)?;
        let name = fields.text("name").unwrap_or_else(|| format!("phase_{}", index + 1));
        let minutes = fields.number("duration_minutes", Bounds::FINITE);
        let tokens_scale = fields.number("tokens_scale", Bounds::FINITE);
        let autoscale_factor = fields.number("autoscale_factor", Bounds::FINITE);
        let request_profile = fields.text("request_profile");
        for optional in ["description", "notes"] {
            fields.text(optional);
        }
        let profile = request_profile.as_deref().filter(|name| !name.is_empty()).or(default_profile);
        let traffic = match profile.map(|name| (name, Traffic::named(name))) {
            None => Traffic::STEADY,
            Some((_, Some(traffic))) => traffic,
            // An unknown default has already been reported at its own location.
            Some((_, None)) if request_profile.as_deref().is_none_or(str::is_empty) => Traffic::STEADY,
            Some((name, None)) => {
                let names = Traffic::PROFILES.map(|(name, _)| name);
                let near = did_you_mean(name, names);
                let message =
                    format!("unknown profile \"{name}\", treated as steady_state; known: {}", names.join(", "));
                fields.warn("request_profile", message, near);
                Traffic::STEADY
            }
        };
        let arrival = fields.map("arrival", read_arrival).unwrap_or_default();
        // Some files contain an empty list to mean no overrides.
        let written = fields.node("overrides").filter(|node| !node.items().is_some_and(<[Node]>::is_empty));
        let overrides = written.cloned().unwrap_or_else(|| Node::synthetic(atlas_document::Value::Map(Vec::new())));
        fields.finish();
        // The predecessor gives such phases no weight, or the duration of the workload.
        if let Some(stated) = minutes.filter(|minutes| *minutes <= 0.0) {
            let message = format!("found {stated}, expected a number above 0");
            let at = path.clone() + ".duration_minutes";
            self.complain(Severity::Warning, node, at, message, None);
        }
        if minutes.is_none() && self.duration_minutes.is_none() {
            let message = "no duration: neither the phase nor the workload has duration_minutes".to_owned();
            self.complain(Severity::Error, node, path.clone(), message, Some("add duration_minutes".to_owned()));
        }
        let merged = self.workload.merged(&overrides);
        // Only the shape is read here. Unknown keys have already been reported for the whole workload.
        let mut scratch = Diagnostics::new();
        let (shape, plan) = Fields::open(self.file, format!("{path}.overrides"), &merged, &mut scratch)
            .map(|mut fields| {
                let (shape, plan, _) = read_shape(&mut fields);
                fields.ignore_unknown_keys();
                fields.finish();
                (shape, plan)
            })
            .unzip();
        let shape = shape.flatten();
        for problem in scratch.iter().filter(|problem| problem.severity == Severity::Error) {
            self.diagnostics.push(problem.clone());
        }
        let raw = |key: &str| node.get(key).cloned().unwrap_or_else(|| Node::synthetic(atlas_document::Value::Null));
        Some(PhaseSpec {
            name: name.into(),
            index: u32::try_from(index).unwrap_or(u32::MAX),
            minutes: minutes.filter(|minutes| *minutes > 0.0).or(self.duration_minutes).unwrap_or_default(),
            shape: shape?,
            plan: plan.unwrap_or_default(),
            tokens_scale,
            autoscale_factor,
            request_profile: request_profile.map(Into::into),
            traffic,
            arrival,
            settings: Arc::new([raw("tokens_scale"), raw("autoscale_factor"), raw("request_profile")]),
            overrides: Arc::new(overrides),
        })
    }
}

fn read_arrival(fields: &mut Fields<'_>) -> Arrival {
    // As in the predecessor model, values other than positive integers are ignored, but with a warning.
    let dp_override = match fields.node("dp_override").map(|node| &node.value) {
        Some(atlas_document::Value::Int(dp)) => u32::try_from(*dp).ok().map(Count::new).and_then(Count::nonzero),
        _ => None,
    };
    if dp_override.is_none() && fields.node("dp_override").is_some() {
        fields.warn("dp_override", "expected a positive whole number; the phase's dp is used", None);
    }
    let servers = fields.number("servers", Bounds { max: 1e9, ..Bounds::POSITIVE });
    if servers.is_some_and(|servers| servers.fract() != 0.0) {
        fields.warn("servers", "expected a whole number; rounding down", None);
    }
    Arrival {
        requests_per_sec: fields.number("requests_per_sec", Bounds::POSITIVE),
        servers: servers.map(Count::floor),
        dp_override,
        service_cv: fields.number("service_cv", Bounds::POSITIVE),
        arrival_cv: fields.number("arrival_cv", Bounds::POSITIVE),
    }
}
