//! The table of fields: every setting of targets and workloads, described once.
//!
//! Documents, diagnostics, JSON Schema, `--set`, panes, columns of measurements, batch input, completions and the
//! reference use this table. A field added here appears in all of them.

mod arrivals;
mod cache;
mod layout;
mod names;
mod runtime;
mod serving;
mod simulation;
mod slot;
mod target;

pub use names::{Group, Knob};
pub use slot::{DefaultValue, Slot};

use crate::bounds::Bounds;
use crate::mode::Mode;
use crate::plan::Engine;

/// Location of a knob's value in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLocation {
    /// In the workload's entry, at this path.
    Workload(&'static [&'static str]),
    /// In the target's entry, at this path.
    Target(&'static [&'static str]),
    /// Not in a file.
    Nowhere,
}

impl FileLocation {
    /// Path in the workload's entry; `None` for other locations.
    #[must_use]
    pub fn in_workload(self) -> Option<&'static [&'static str]> {
        match self {
            FileLocation::Workload(path) => Some(path),
            FileLocation::Target(_) | FileLocation::Nowhere => None,
        }
    }
}

/// Increment of a numeric knob.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Adds or subtracts this number.
    Add(f64),
    /// Doubles or halves, along the powers of two.
    Double,
}

/// The type of a knob's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueType {
    /// On or off.
    Toggle,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of the profile's fabrics.
    Fabric,
    /// A training framework or serving engine, with an optional release.
    Software,
    /// A number.
    Number {
        /// Allowed values.
        bounds: Bounds,
        /// Increment of the Left and Right keys.
        step: Step,
    },
    /// Any integer, as accepted by Python's random number generator.
    Seed,
}

/// A setting of targets and workloads.
#[derive(Clone, Copy)]
pub struct Field {
    /// The knob.
    pub knob: Knob,
    /// Name in files, flags and panes.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// Section in which it is shown.
    pub group: Group,
    /// Type of its values.
    pub kind: ValueType,
    /// Bounds for files, if they differ from those of commands and panes.
    pub file_bounds: Option<Bounds>,
    /// Unit; empty for dimensionless numbers.
    pub unit: &'static str,
    /// Location in files.
    pub location: FileLocation,
    /// Location in plans.
    pub slot: Slot,
    /// Default value.
    pub default: DefaultValue,
    /// Mode to which it applies; `None`: both.
    pub mode: Option<Mode>,
    /// Engines to which it applies.
    pub engines: &'static [Engine],
    /// Mode and engines to which it does not apply, as an exception.
    pub except: Option<(Mode, &'static [Engine])>,
    /// Whether the number 0 means that nothing is set: no limit, off, or unknown. Panes show a dash, and `none` is
    /// accepted.
    pub zero_is_unset: bool,
    /// Whether it describes an existing model or weight file, so that values between the known ones are meaningless.
    pub is_model_property: bool,
    /// Help, one line.
    pub help: &'static str,
}

impl PartialEq for Field {
    /// Compares knobs, each of which has one field.
    fn eq(&self, other: &Field) -> bool {
        self.knob == other.knob
    }
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Field").field(&self.knob).finish()
    }
}

impl Field {
    /// Whether the field affects estimates in `mode` with `engine`.
    #[must_use]
    pub fn affects(&self, mode: Mode, engine: Engine) -> bool {
        if engine == Engine::Benchboard {
            return DASHBOARD.contains(&self.knob) && self.mode.is_none_or(|only| only == mode);
        }
        self.mode.is_none_or(|only| only == mode)
            && self.engines.contains(&engine)
            && !self.except.is_some_and(|(silent, engines)| silent == mode && engines.contains(&engine))
    }
}

impl Field {
    /// Key in its mapping in files; empty if it is not in a file.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self.location {
            FileLocation::Workload(path) | FileLocation::Target(path) => path.last().copied().unwrap_or_default(),
            FileLocation::Nowhere => "",
        }
    }

    /// Bounds for numbers in files.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        match (self.file_bounds, self.kind) {
            (Some(files), _) => files,
            (None, ValueType::Number { bounds, .. }) => bounds,
            _ => Bounds::FINITE,
        }
    }

    /// Accepted words; empty for other types.
    #[must_use]
    pub fn words(&self) -> &'static [&'static str] {
        match self.kind {
            ValueType::Choice(words) => words,
            _ => &[],
        }
    }
}

impl Knob {
    /// The knob's entry in [`KNOBS`].
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "the table has an entry for every knob, in order; a test compares them"
    )]
    pub const fn spec(self) -> &'static Field {
        &KNOBS[self as usize]
    }

    /// Whether it overrides a default of the software that can depend on the layout.
    #[must_use]
    pub fn is_switch(self) -> bool {
        matches!(
            self,
            Knob::OverlapTensor
                | Knob::OverlapPipeline
                | Knob::OverlapExperts
                | Knob::OverlapData
                | Knob::AttentionKernel
                | Knob::GraphCapture
                | Knob::Compiled
                | Knob::MoeDispatcher
                | Knob::MoeCapacity
        )
    }

    /// Path in documents at which decode-only replicas can override it; takes precedence over its usual path.
    #[must_use]
    pub fn of_decode_pool(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Knob::Tp => &["serving", "pools", "decode", "tp"],
            Knob::Pp => &["serving", "pools", "decode", "pp"],
            Knob::Ep => &["serving", "pools", "decode", "ep"],
            Knob::AttentionDp => &["serving", "pools", "decode", "attention_dp"],
            Knob::Dp => &["serving", "pools", "decode", "workers"],
            _ => return None,
        })
    }

    /// Name of the knob.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// All knobs, in table order.
    pub fn all() -> impl Iterator<Item = Knob> {
        KNOBS.iter().map(|spec| spec.knob)
    }

    /// Finds a knob by name or alias; hyphens and underscores are equivalent.
    #[must_use]
    pub fn find(name: &str) -> Option<Knob> {
        let wanted = name.trim().replace('-', "_").to_lowercase();
        let found = KNOBS.iter().find(|field| field.name == wanted || field.aliases.contains(&wanted.as_str()));
        found.map(|field| field.knob)
    }

    /// All names and aliases.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOBS.iter().flat_map(|field| std::iter::once(&field.name).chain(field.aliases)).copied()
    }
}

const fn whole(min: f64, max: f64, step: Step) -> ValueType {
    ValueType::Number { bounds: Bounds { min, max, whole: true }, step }
}

const fn real(min: f64, max: f64, step: f64) -> ValueType {
    ValueType::Number { bounds: Bounds { min, max, whole: false }, step: Step::Add(step) }
}

const fn ranks(max: f64) -> ValueType {
    whole(1.0, max, Step::Double)
}

/// Every engine.
const ALL: &[Engine] = &[Engine::Analytical, Engine::SemiEmpirical, Engine::Event];
/// Engines that estimate from hardware and model.
const HARDWARE_MODELING: &[Engine] = &[Engine::Analytical, Engine::Event];

/// A field of workloads with default properties: no unit, both modes, all engines.
const fn entry(
    knob: Knob,
    name: &'static str,
    aliases: &'static [&'static str],
    group: Group,
    kind: ValueType,
    path: &'static [&'static str],
    help: &'static str,
) -> Field {
    let home = if path.is_empty() { FileLocation::Nowhere } else { FileLocation::Workload(path) };
    Field {
        knob,
        name,
        aliases,
        group,
        kind,
        file_bounds: None,
        unit: "",
        location: home,
        slot: Slot::Outside,
        default: DefaultValue::Follows,
        mode: None,
        engines: ALL,
        except: None,
        zero_is_unset: false,
        is_model_property: false,
        help,
    }
}

impl Field {
    /// Sets the bounds for files.
    const fn with_file_bounds(self, min: f64, max: f64) -> Field {
        let whole = matches!(self.kind, ValueType::Number { bounds: Bounds { whole: true, .. }, .. });
        Field { file_bounds: Some(Bounds { min, max, whole }), ..self }
    }

    /// Like [`Field::with_file_bounds`], but fractional numbers are allowed, for means.
    const fn with_fractional_file_bounds(self, min: f64, max: f64) -> Field {
        Field { file_bounds: Some(Bounds { min, max, whole: false }), ..self }
    }

    const fn slot(self, slot: Slot) -> Field {
        Field { slot, ..self }
    }

    const fn with_default(self, value: f64) -> Field {
        Field { default: DefaultValue::Number(value), ..self }
    }

    const fn with_default_flag(self, on: bool) -> Field {
        Field { default: DefaultValue::Flag(on), ..self }
    }

    const fn with_default_word(self, word: &'static str) -> Field {
        Field { default: DefaultValue::Word(word), ..self }
    }

    const fn zero_is_unset(self) -> Field {
        Field { zero_is_unset: true, ..self }
    }

    const fn model_property(self) -> Field {
        Field { is_model_property: true, ..self }
    }

    const fn unit(self, unit: &'static str) -> Field {
        Field { unit, ..self }
    }

    const fn of_target(self) -> Field {
        let home = match self.location {
            FileLocation::Workload(path) => FileLocation::Target(path),
            other => other,
        };
        Field { location: home, ..self }
    }

    const fn training(self) -> Field {
        Field { mode: Some(Mode::Training), ..self }
    }

    const fn inference(self) -> Field {
        Field { mode: Some(Mode::Inference), ..self }
    }

    const fn hardware_modeling(self) -> Field {
        Field { engines: HARDWARE_MODELING, ..self }
    }

    const fn except(self, mode: Mode, engines: &'static [Engine]) -> Field {
        Field { except: Some((mode, engines)), ..self }
    }

    const fn simulated(self) -> Field {
        Field { engines: &[Engine::Event], ..self }
    }

    const fn randomized(self) -> Field {
        Field { engines: &[Engine::SemiEmpirical, Engine::Event], ..self }
    }

    const fn calibrated(self) -> Field {
        Field { engines: &[Engine::SemiEmpirical], ..self }
    }
}

/// Knobs used by the predecessor dashboard's estimator.
pub(super) const DASHBOARD: [Knob; 13] = [
    Knob::Engine,
    Knob::Microbatch,
    Knob::Global,
    Knob::Precision,
    Knob::Recompute,
    Knob::Tp,
    Knob::Pp,
    Knob::Dp,
    Knob::Prompt,
    Knob::Generate,
    Knob::TrainTokens,
    Knob::Concurrency,
    Knob::HourlyUsd,
];

/// The table of fields: all families in sequence, in the order of [`Knob`].
pub static KNOBS: [Field; COUNT] = joined();

/// Families of fields.
const FIELD_GROUPS: [&[Field]; 7] = [
    runtime::RUNTIME,
    layout::LAYOUT,
    serving::SERVING,
    cache::CACHE,
    arrivals::ARRIVALS,
    target::TARGET,
    simulation::SIMULATION,
];

/// Number of fields in all families.
const COUNT: usize = runtime::RUNTIME.len()
    + layout::LAYOUT.len()
    + serving::SERVING.len()
    + cache::CACHE.len()
    + arrivals::ARRIVALS.len()
    + target::TARGET.len()
    + simulation::SIMULATION.len();

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time, where an index out of range is an error")]
const fn joined() -> [Field; COUNT] {
    let mut all = [runtime::RUNTIME[0]; COUNT];
    let (mut at, mut family) = (0, 0);
    while family < FIELD_GROUPS.len() {
        let mut member = 0;
        while member < FIELD_GROUPS[family].len() {
            all[at] = FIELD_GROUPS[family][member];
            at += 1;
            member += 1;
        }
        family += 1;
    }
    all
}

#[cfg(test)]
mod tests;
