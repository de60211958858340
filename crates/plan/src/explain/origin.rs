//! Origins of inputs.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::Term;
use crate::knob::{FileLocation, Knob, Setting};
use crate::scenario::{Parts, Scenario};
use atlas_config::{Factors, Mode};
use atlas_core::sort;
use atlas_core::units;
use atlas_document::Node;
use atlas_perf::constants::ListedConstant;
use atlas_perf::efficiency::factor_of;

/// Location in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File, as shown to the user, and line.
    pub at: atlas_document::Origin,
    /// Path of the field in its entry: `cost.hourly_usd`.
    pub path: String,
    /// Original source according to the file: `train.sbatch:31`.
    pub read_from: Option<Arc<str>>,
}

impl Place {
    fn new(at: &atlas_document::Origin, path: impl Into<String>) -> Place {
        Place { at: at.clone(), path: path.into(), read_from: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.read_from {
            Some(source) => write!(f, "{source} ({})", self.path),
            None if self.path.is_empty() => self.at.fmt(f),
            None => write!(f, "{} {}", self.at, self.path),
        }
    }
}

/// Origin of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// Field of a file.
    File(Place),
    /// Changed knob, which may override a field of a file.
    Knob {
        /// The changed knob.
        knob: Knob,
        /// Overridden field.
        over: Option<Place>,
    },
    /// Catalog entry with its source.
    Catalog {
        /// Key of the entry.
        id: String,
        /// Location of the entry.
        place: Place,
        /// Source that the entry cites.
        source: Option<String>,
    },
    /// Constant of the engine.
    Constant(ListedConstant),
    /// Assumption for a value that no file states.
    Default(&'static str),
    /// Value of the engine without a further derivation; the text describes how it is computed.
    Engine(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(place) => place.fmt(f),
            Origin::Knob { knob, over: Some(place) } => write!(f, "knob {}, over {place}", knob.name()),
            Origin::Knob { knob, over: None } => write!(f, "knob {}", knob.name()),
            Origin::Catalog { id, place, source: Some(source) } => write!(f, "catalog {id} ({place}): {source}"),
            Origin::Catalog { id, place, source: None } => write!(f, "catalog {id} ({place})"),
            Origin::Constant(listed) => write!(f, "constant {}: {}", listed.name, described(listed).1),
            Origin::Default(what) => write!(f, "default: {what}"),
            Origin::Engine(how) => f.write_str(how),
        }
    }
}

/// Description and source of a constant.
fn described(listed: &ListedConstant) -> (&'static str, &'static str) {
    match listed.origin.split_once("Origin:") {
        Some((what, origin)) => (what.trim().trim_end_matches('.'), origin.trim().trim_end_matches('.')),
        None => (listed.origin, "documented"),
    }
}

/// The text with its first letter in lower case, unless it begins with an acronym.
fn lowercase_first(text: &'static str) -> Cow<'static, str> {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect::<String>().into()
        }
        _ => text.into(),
    }
}

/// Formats a value with its unit for display.
pub(super) fn shown(value: f64, unit: &str) -> String {
    match unit {
        "ms" => units::duration_ms(value),
        "s" => units::duration(value),
        "h" => units::duration_ms(3.6e6 * value),
        "USD" => units::usd(value),
        "bytes" => units::with_unit(&units::si(value), "B"),
        "" | "1" => {
            if value.abs() < 1e5 {
                let four = units::significant(value, 4);
                if value.fract() == 0.0 { value.to_string() } else { four }
            } else {
                units::si(value)
            }
        }
        unit if value.fract() == 0.0 && value.abs() < 1e4 => units::with_unit(&value.to_string(), unit),
        unit => units::with_unit(&units::si(value), unit),
    }
}

/// Inputs of a scenario with their origins.
pub struct Inputs<'a> {
    scenario: &'a Scenario,
    pub parts: &'a Parts,
    /// Scenario according to the files, without changed knobs.
    files: Scenario,
}

impl<'a> Inputs<'a> {
    pub(super) fn of(scenario: &'a Scenario, parts: &'a Parts) -> Inputs<'a> {
        Inputs { scenario, parts, files: Scenario::from_files(parts) }
    }

    fn place(at: &atlas_document::Origin, document: &Node, path: &[&str]) -> Option<Place> {
        let node = document.at_path(path)?;
        let at = atlas_document::Origin { file: Arc::clone(&at.file), at: node.at };
        let path = path.join(".");
        let read_from = document.at_path(&["read_from", &path]).and_then(Node::text).map(Arc::from);
        Some(Place { read_from, ..Place::new(&at, path) })
    }

    /// Location of a field of the target.
    pub(super) fn in_target(&self, path: &[&str]) -> Option<Place> {
        Inputs::place(&self.parts.target.origin, &self.parts.target.document, path)
    }

    /// Location of a field of the workload.
    pub(super) fn in_workload(&self, path: &[&str]) -> Option<Place> {
        Inputs::place(&self.parts.workload.origin, &self.parts.workload.document, path)
    }

    /// Origin of a field of the target; `silent` describes the default.
    pub fn target(&self, path: &[&str], silent: &'static str) -> Origin {
        self.in_target(path).map_or(Origin::Default(silent), Origin::File)
    }

    /// Location of the value of a knob in the files.
    fn written(&self, knob: Knob) -> Option<Place> {
        // A micro-batch may be stated in two places; this one takes precedence.
        if knob == Knob::Microbatch
            && let Some(place) = self.in_workload(&["batch", "micro"])
        {
            return Some(place);
        }
        if let Some(place) = knob.of_decode_pool().and_then(|own| self.in_workload(own)) {
            return Some(place);
        }
        match knob.spec().location {
            FileLocation::Workload(path) => self.in_workload(path),
            FileLocation::Target(path) => self.in_target(path),
            FileLocation::Nowhere => None,
        }
    }

    /// Origin of the value of a knob in effect.
    pub fn of_knob(&self, knob: Knob) -> Origin {
        let plan = &self.scenario.base.plan;
        let over = self.written(knob);
        let follows = match knob {
            Knob::HourlyUsd if self.scenario.terms.listed.is_some() => {
                Some("median of this type of offer in the catalog")
            }
            Knob::Tp | Knob::Pp | Knob::Ep
                if self.scenario.follows(knob) && self.scenario.has_default_layout(&self.scenario.base) =>
            {
                Some(match self.scenario.mode() {
                    Mode::Training => "the fewest ranks whose model states take 80 % of the memory or less",
                    Mode::Inference => "the fewest ranks that leave 40 % of the memory for more than weights",
                })
            }
            Knob::AttentionDp if plan.attention_dp.is_none() && self.scenario.base.default_groups > 1.0 => {
                Some("ep / tp: groups that share the experts")
            }
            Knob::Dp if plan.dp.is_none() => Some("as many replicas as fit the target"),
            Knob::Global if plan.global.is_none() => Some(self.scenario.default_global(&self.scenario.base)),
            Knob::Concurrency if plan.serving.concurrency.is_none() => Some("16 requests per replica"),
            _ => None,
        };
        if let Some(follows) = follows {
            return Origin::Default(follows);
        }
        if self.scenario.get(knob) != self.files.get(knob) {
            return Origin::Knob { knob, over };
        }
        match over {
            Some(place) => Origin::File(place),
            None => Origin::Default("not stated in the files"),
        }
    }

    /// Converts a knob to a term. Words and active switches have the numeric value 1.
    pub fn knob(&self, symbol: &'static str, knob: Knob) -> Term {
        let setting = self.scenario.get(knob);
        let (value, word): (f64, Option<Arc<str>>) = match &setting {
            Setting::Number(value) => (*value, None),
            Setting::Toggle(on) => (f64::from(u8::from(*on)), Some(setting.to_string().into())),
            Setting::Choice(word) => (1.0, Some(Arc::clone(word))),
            #[expect(clippy::cast_precision_loss, reason = "a seed is shown, not reckoned with")]
            Setting::Seed(seed) => (*seed as f64, None),
        };
        Term { text: word, ..Term::input(symbol, knob.spec().help, knob.spec().unit, value).from(self.of_knob(knob)) }
    }

    /// Value of the accelerator's datasheet, unless the target overrides it at `path`.
    pub fn sheet(
        &self,
        symbol: &'static str,
        name: &'static str,
        unit: &'static str,
        value: f64,
        path: &[&str],
    ) -> Term {
        let term = Term::input(symbol, name, unit, value);
        if let Some(place) = (!path.is_empty()).then(|| self.in_target(path)).flatten() {
            return term.from(Origin::File(place));
        }
        let Some(sheet) = &self.parts.accelerator else { return term };
        let place = Place::new(&sheet.origin, "");
        term.from(Origin::Catalog { id: sheet.id.clone(), place, source: sheet.source.clone() })
    }

    /// Value of the model's architecture.
    pub fn model(
        &self,
        symbol: &'static str,
        name: impl Into<std::borrow::Cow<'static, str>>,
        unit: &'static str,
        value: f64,
    ) -> Term {
        let term = Term::input(symbol, name, unit, value);
        match &self.parts.model {
            Some(model) => {
                let place = Place::new(&model.origin, "");
                term.from(Origin::Catalog { id: model.id.clone(), place, source: model.source.clone() })
            }
            None => match self.in_workload(&["params"]) {
                Some(place) => term.from(Origin::File(place)),
                None => term,
            },
        }
    }

    /// Coefficient of the profile, under its name in the profile.
    pub fn coefficient(&self, symbol: &'static str, path: &'static str, unit: &'static str, value: f64) -> Term {
        let term = Term::input(symbol, path, unit, value);
        match &self.parts.profile {
            Some(profile) => term.from(Origin::File(Place::new(&profile.origin, path))),
            None => term,
        }
    }

    /// Nominal power of a node: stated by the target, or measured by its profile.
    pub fn node_watts(&self) -> Term {
        let term = Term::input("P_nominal", "nominal power of a node", "W", self.scenario.node_watts);
        let measured = self.parts.profile.as_ref().filter(|profile| profile.node_watts.is_some());
        term.from(match measured {
            Some(profile) => Origin::File(Place::new(&profile.origin, "power.node_nominal_w")),
            None => self.target(&["cost", "energy_watts_node"], "not stated in the files"),
        })
    }

    /// Efficiency factors other than 1 that scale any of the constants `names`.
    pub fn efficiency(&self, names: &[&'static str], serving: bool) -> Vec<Term> {
        let efficiency = &self.scenario.efficiency;
        let factors = if serving { efficiency.serving } else { efficiency.training };
        let mode = if serving { "serving" } else { "training" };
        let mut moved: Vec<usize> = names.iter().filter_map(|name| factor_of(name)).collect();
        sort::ascending(&mut moved);
        moved.dedup();
        let term = |index: usize| {
            let (name, value) = (Factors::NAMES.get(index)?, factors.all().get(index).copied()?);
            let path = ["efficiency", mode, name];
            let in_profile = || {
                let profile = self.parts.profile.as_ref()?;
                let place = Place::new(&profile.origin, path.join("."));
                // Date and number of measurements, if the profile states them.
                let known = profile.calibration.as_ref().and_then(|all| all.of(&path.join(".")));
                let described = known.map(|known| {
                    let n = known.n.map_or(String::new(), |n| format!(", n = {n}"));
                    format!("{}{n}", known.date.as_deref().unwrap_or("calibrated"))
                });
                Some(match described {
                    Some(described) => Place { path: format!("{} ({described})", place.path), ..place },
                    None => place,
                })
            };
            let origin = self.in_target(&path).or_else(in_profile);
            let origin = origin.map_or(Origin::Default("as shipped"), Origin::File);
            let words = match index {
                0 => "efficiency factor of this target, compute",
                1 => "efficiency factor of this target, memory",
                2 => "efficiency factor of this target, network",
                _ => "efficiency factor of this target, host",
            };
            (value != 1.0).then(|| Term::input(format!("e_{name}"), words, "", value).from(origin))
        };
        moved.into_iter().filter_map(term).collect()
    }

    /// Number of accelerators of the target: accelerators per node times nodes.
    pub fn accelerators(&self) -> Term {
        let of_node =
            Term::input("n_node", "accelerators per node", "", f64::from(self.scenario.accelerators_per_node))
                .from(self.target(&["accelerators_per_node"], "not stated in the files"));
        Term::derived("N", "accelerators of the target", "", of_node * self.knob("nodes", Knob::NumNodes))
    }

    /// Name of a phase of the schedule.
    pub(super) fn phase_name(&self, index: usize) -> String {
        self.parts.workload.phases.get(index).map_or_else(|| index.to_string(), |phase| phase.name.to_string())
    }

    /// Origin of the duration of a phase.
    pub(super) fn phase_minutes(&self, _index: usize) -> Origin {
        let place = self.in_workload(&["schedule", "phases"]).or_else(|| self.in_workload(&["schedule"]));
        place.map_or(Origin::Default("the workload's duration"), Origin::File)
    }
}

/// Constants by name.
pub(crate) fn constants(listed: impl Iterator<Item = ListedConstant> + Clone, names: &[&'static str]) -> Vec<Term> {
    debug_assert!(
        names.iter().all(|name| listed.clone().any(|one| one.name == *name)),
        "a name of {names:?} is no constant"
    );
    let of = |name: &&'static str| {
        let found = listed.clone().find(|one| one.name == *name)?;
        let unit = if found.unit == "1" { "" } else { found.unit };
        let (what, _) = described(&found);
        Some(Term::input(found.name, lowercase_first(what), unit, found.value).from(Origin::Constant(found)))
    };
    names.iter().filter_map(of).collect()
}
