//! Parsing and stepping of knob values. The knobs themselves are defined in [`atlas_core::field`].

use atlas_core::math;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use atlas_core::field::{Field as Spec, FileLocation, Group, KNOBS, Knob, Step, ValueType};

use atlas_catalog::software::{Caveat, Software};
use atlas_core::plan::{Preset, canonical};
use atlas_core::units::written;
use atlas_document::suggestion::{clause, nearest};
use atlas_document::{Node, Value};

/// Parses and steps values of knobs.
pub trait KnobValues: Sized {
    /// Returns the knob with a name or alias; hyphens count as underscores.
    ///
    /// # Errors
    ///
    /// [`KnobError::Unknown`], with the nearest known name if there is one.
    fn named(name: &str) -> Result<Self, KnobError>;

    /// Parses a value as typed by a user. `fabrics` are the fabrics of the profile.
    ///
    /// # Errors
    ///
    /// [`KnobError::Value`], with the values that the knob accepts.
    fn parse(self, text: &str, fabrics: &[(Arc<str>, f64)]) -> Result<Setting, KnobError>;

    /// Reads a value from a document, such as a line of a batch file or a record. Text is parsed like user input.
    ///
    /// # Errors
    ///
    /// [`KnobError::Value`], with the values that the knob accepts.
    fn read(self, value: &Node, fabrics: &[(Arc<str>, f64)]) -> Result<Setting, KnobError>;

    /// Returns the value `by.abs()` steps up (`by > 0`) or down from `from`, clamped to the range of the knob.
    #[must_use]
    fn step(self, from: &Setting, by: i32, fabrics: &[(Arc<str>, f64)]) -> Setting;
}

impl KnobValues for Knob {
    fn named(name: &str) -> Result<Knob, KnobError> {
        Knob::find(name).ok_or_else(|| {
            let wanted = name.trim().replace('-', "_").to_lowercase();
            KnobError::Unknown { found: name.to_owned(), near: nearest(&wanted, Knob::names()) }
        })
    }

    fn parse(self, text: &str, fabrics: &[(Arc<str>, f64)]) -> Result<Setting, KnobError> {
        let text = text.trim();
        let spec = self.spec();
        let refuse = |expected: String| KnobError::Value { knob: spec.name, found: text.to_owned(), expected };
        match spec.kind {
            ValueType::Toggle => match text.to_lowercase().as_str() {
                "on" | "true" | "yes" | "1" => Ok(Setting::Toggle(true)),
                "off" | "false" | "no" | "0" => Ok(Setting::Toggle(false)),
                _ => Err(refuse("on or off".to_owned())),
            },
            // The format of the block scales is not part of the usual name.
            ValueType::Choice(_)
                if self == Knob::Precision && Preset::named(text).is_some_and(|preset| preset.nvfp4.is_some()) =>
            {
                Ok(Setting::Choice(text.trim().to_ascii_lowercase().into()))
            }
            ValueType::Choice(_) if self == Knob::Precision && Preset::named(text).is_some() => {
                Ok(Setting::Choice(canonical(text).to_ascii_lowercase().into()))
            }
            ValueType::Choice(choices) => {
                let usual = canonical(text);
                let found = choices.iter().find(|choice| choice.eq_ignore_ascii_case(usual));
                found.map(|choice| Setting::Choice((*choice).into())).ok_or_else(|| {
                    refuse(if self == Knob::Precision {
                        format!("one of {}, or {}", choices.join(", "), Preset::NAMES.join(", "))
                    } else if choices.len() > 2 {
                        format!("one of {}", choices.join(", "))
                    } else {
                        choices.join(" or ")
                    })
                })
            }
            ValueType::Fabric => {
                let found = fabrics.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                let names = || fabrics.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ");
                found
                    .map(|(name, _)| Setting::Choice(Arc::clone(name)))
                    .ok_or_else(|| refuse(format!("one of {}", names())))
            }
            ValueType::Software => match Software::parse(text) {
                // A specification without a release stays without one.
                Ok(found) if found.caveat == Some(Caveat::Newest) => {
                    Ok(Setting::Choice(found.family.id.as_str().into()))
                }
                Ok(found) => Ok(Setting::Choice(match &found.caveat {
                    // The note states which release is used for one that is not listed.
                    Some(Caveat::Earlier { requested, .. }) => format!("{}@{requested}", found.family.id).into(),
                    _ => found.spec().into(),
                })),
                Err(problem) => Err(refuse(format!("software, such as vllm@0.11 ({problem})"))),
            },
            ValueType::Number { .. } if spec.zero_is_unset && text.eq_ignore_ascii_case("none") => {
                Ok(Setting::Number(0.0))
            }
            ValueType::Number { bounds, .. } => {
                let percent = text.strip_suffix('%').filter(|_| bounds.max <= 1.0 && !bounds.whole);
                let value = match percent {
                    Some(percent) => parse_number(percent.trim_end()).map(|value| value / 100.0),
                    None => parse_number(bare(text, spec.unit)),
                };
                let value = value.filter(|value| bounds.contains(*value));
                value.map(Setting::Number).ok_or_else(|| refuse(bounds.describe()))
            }
            ValueType::Seed => text.parse().map(Setting::Seed).map_err(|_| refuse("a whole number".to_owned())),
        }
    }

    fn read(self, value: &Node, fabrics: &[(Arc<str>, f64)]) -> Result<Setting, KnobError> {
        match (&value.value, self.spec().kind) {
            (Value::Text(text), _) => self.parse(text, fabrics),
            (Value::Bool(on), ValueType::Toggle) => Ok(Setting::Toggle(*on)),
            (Value::Int(seed), ValueType::Seed) => Ok(Setting::Seed(*seed)),
            (_, ValueType::Number { bounds, .. }) if value.number().is_some_and(|number| bounds.contains(number)) => {
                Ok(Setting::Number(value.number().unwrap_or_default()))
            }
            // `parse` accepts other types too (1 for a toggle), or returns the error for this knob.
            _ => self.parse(&value.describe(), fabrics),
        }
    }

    fn step(self, from: &Setting, by: i32, fabrics: &[(Arc<str>, f64)]) -> Setting {
        match (self.spec().kind, from) {
            (ValueType::Toggle, Setting::Toggle(_)) => Setting::Toggle(by > 0),
            (ValueType::Choice(choices), Setting::Choice(now)) => {
                let names: Vec<Arc<str>> = choices.iter().map(|choice| (*choice).into()).collect();
                Setting::Choice(neighbor(&names, now, by))
            }
            (ValueType::Fabric, Setting::Choice(now)) => {
                let names: Vec<Arc<str>> = fabrics.iter().map(|(name, _)| Arc::clone(name)).collect();
                Setting::Choice(neighbor(&names, now, by))
            }
            (ValueType::Software, Setting::Choice(now)) => Setting::Choice(neighboring_release(now, by)),
            (ValueType::Number { bounds, step }, Setting::Number(now)) => {
                let mut value = *now;
                for _ in 0..by.unsigned_abs() {
                    value = match step {
                        Step::Add(step) => ((value + step * f64::from(by.signum())) / step).round() * step,
                        Step::Double if by > 0 => next_power_of_two(value),
                        Step::Double => previous_power_of_two(value),
                    };
                }
                // Remove the binary rounding error of multiples of 0.05 etc.; six decimals are finer than any step.
                Setting::Number(((value * 1e6).round() / 1e6).clamp(bounds.min, bounds.max))
            }
            (ValueType::Seed, Setting::Seed(now)) => Setting::Seed(now.saturating_add(i128::from(by))),
            _ => from.clone(),
        }
    }
}

/// Returns the release `by` steps later (or earlier, if negative) of the same software, clamped to the first and last.
fn neighboring_release(now: &Arc<str>, by: i32) -> Arc<str> {
    let Ok(found) = Software::parse(now) else { return Arc::clone(now) };
    let Some(index) = found.release else { return Arc::clone(now) };
    let last = found.family.releases.len().saturating_sub(1);
    let next = if by > 0 {
        index.saturating_add(by.unsigned_abs() as usize).min(last)
    } else {
        index.saturating_sub(by.unsigned_abs() as usize)
    };
    Software { release: Some(next), caveat: None, ..found }.spec().into()
}

fn neighbor(names: &[Arc<str>], now: &Arc<str>, by: i32) -> Arc<str> {
    let last = names.len().saturating_sub(1);
    let index = names.iter().position(|name| name == now);
    let index = match index {
        Some(index) if by > 0 => index.saturating_add(by.unsigned_abs() as usize).min(last),
        Some(index) => index.saturating_sub(by.unsigned_abs() as usize),
        None => 0,
    };
    names.get(index).map_or_else(|| Arc::clone(now), Arc::clone)
}

fn next_power_of_two(value: f64) -> f64 {
    if value < 1.0 { 1.0 } else { math::exp2(math::log2(value).floor() + 1.0) }
}

fn previous_power_of_two(value: f64) -> f64 {
    if value <= 1.0 { 0.0 } else { math::exp2(math::log2(value).ceil() - 1.0) }
}

/// Strips the unit of a knob from a number: `48` for `$48`, `48 $/h` or `48/h` if the unit is dollars per hour.
fn bare<'t>(text: &'t str, unit: &str) -> &'t str {
    let text = text.strip_suffix(unit).filter(|_| !unit.is_empty()).unwrap_or(text).trim_end();
    match unit.strip_prefix('$') {
        Some(per) => {
            let text = text.strip_suffix(per).filter(|_| !per.is_empty()).unwrap_or(text);
            text.strip_prefix('$').unwrap_or(text).trim()
        }
        None => text,
    }
}

/// Parses a number with an optional SI-style suffix and separators: `8192`, `8k`, `1.5M`, `15T`, `1_000`, `0.12`.
fn parse_number(text: &str) -> Option<f64> {
    let clean = text.replace('_', "");
    let (digits, scale) = match clean.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (clean.get(..at)?, 1e3),
        Some((at, 'M')) => (clean.get(..at)?, 1e6),
        Some((at, 'G' | 'B')) => (clean.get(..at)?, 1e9),
        Some((at, 'T')) => (clean.get(..at)?, 1e12),
        _ => (clean.as_str(), 1.0),
    };
    // Rust parses `inf` and `nan` as numbers.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+')) {
        return None;
    }
    digits.parse::<f64>().ok().map(|value| value * scale).filter(|value| value.is_finite())
}

/// Value of a knob.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// On or off.
    Toggle(bool),
    /// Numeric value.
    Number(f64),
    /// Name of one of the choices.
    Choice(Arc<str>),
    /// Random seed.
    Seed(i128),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Toggle(true) => f.pad("on"),
            Setting::Toggle(false) => f.pad("off"),
            Setting::Number(value) => f.pad(&written(*value)),
            Setting::Choice(word) => f.pad(word),
            Setting::Seed(seed) => f.pad(&seed.to_string()),
        }
    }
}

/// Why a knob cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// No knob has this name.
    #[error("no knob `{found}`{}", instead(found, *near))]
    Unknown {
        /// The given name.
        found: String,
        /// The nearest known name, if one is close.
        near: Option<&'static str>,
    },
    /// The knob does not accept the value.
    #[error("{knob}: found \"{found}\", expected {expected}")]
    Value {
        /// Name of the knob.
        knob: &'static str,
        /// The given value.
        found: String,
        /// Description of the accepted values.
        expected: String,
    },
    /// `--set` without `=`.
    #[error("found \"{0}\", expected knob=value")]
    Assignment(String),
}

/// Suffix of the error message for an unknown knob name: a hint or the nearest name.
fn instead(found: &str, near: Option<&str>) -> String {
    if found.trim().eq_ignore_ascii_case("model") {
        return "; the model is part of the workload: use NAME:model=MODEL as the workload".to_owned();
    }
    clause(near)
}

/// Knobs that the user has changed; they take precedence over the files.
pub type Overrides = BTreeMap<Knob, Setting>;

/// Splits `knob=value`, the format of `--set` and demos. The value is parsed later, when the profile is available.
pub fn assignment(text: &str) -> Result<(Knob, String), KnobError> {
    let (name, value) = text.split_once('=').ok_or_else(|| KnobError::Assignment(text.to_owned()))?;
    Ok((Knob::named(name)?, value.trim().to_owned()))
}

#[cfg(test)]
mod contradictions;
#[cfg(test)]
mod effects;
#[cfg(test)]
mod fields;
#[cfg(test)]
mod tests;
