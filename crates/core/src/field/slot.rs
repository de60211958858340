//! Where a plan stores the value of a field, and the default value.

use crate::plan_spec::PlanSpec;

/// Where a plan stores the value of a field.
#[derive(Clone, Copy)]
pub enum Slot {
    /// Not in plans: in a target or a scenario, or in several places.
    Outside,
    /// A number.
    Number {
        /// Returns the stated value.
        get: fn(&PlanSpec) -> Option<f64>,
        /// Sets or clears the value.
        put: fn(&mut PlanSpec, Option<f64>),
    },
    /// On or off.
    Flag {
        /// Returns the stated value.
        get: fn(&PlanSpec) -> Option<bool>,
        /// Sets or clears the value.
        put: fn(&mut PlanSpec, Option<bool>),
    },
    /// One of a few words.
    Word {
        /// Returns the stated word.
        get: fn(&PlanSpec) -> Option<&'static str>,
        /// Sets a word or synonym; returns `false` if it is unknown.
        put: fn(&mut PlanSpec, &str) -> bool,
    },
}

/// Default value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DefaultValue {
    /// Derived from hardware, model, software or other fields.
    Follows,
    /// This number.
    Number(f64),
    /// On or off.
    Flag(bool),
    /// This word.
    Word(&'static str),
}

/// The slot of a number: `number!(serving.prefix_hit)`.
macro_rules! number {
    ($($path:tt)+) => {
        $crate::field::Slot::Number { get: |plan| plan.$($path)+, put: |plan, value| plan.$($path)+ = value }
    };
}

/// The slot of a [`Count`](crate::count::Count), for fields with whole bounds: `count!(serving.max_num_seqs)`.
macro_rules! count {
    ($($path:tt)+) => {
        $crate::field::Slot::Number {
            get: |plan| plan.$($path)+.map(f64::from),
            put: |plan, value| plan.$($path)+ = value.map($crate::count::Count::floor),
        }
    };
}

/// The slot of an optional number, written as 0 in files and knobs if unset: `positive!(simulation.slo_ttft_ms)`.
macro_rules! positive {
    ($($path:tt)+) => {
        $crate::field::Slot::Number {
            get: |plan| plan.$($path)+,
            put: |plan, value| plan.$($path)+ = value.filter(|value| *value > 0.0),
        }
    };
}

/// The slot of an optional count, written as 0 in files and knobs if unset: `nonzero!(serving.run_requests)`.
macro_rules! nonzero {
    ($($path:tt)+) => {
        $crate::field::Slot::Number {
            get: |plan| plan.$($path)+.map(f64::from),
            put: |plan, value| {
                plan.$($path)+ = value.map($crate::count::Count::floor).and_then($crate::count::Count::nonzero);
            },
        }
    };
}

/// The slot of a flag: `flag!(overlap)`.
macro_rules! flag {
    ($($path:tt)+) => {
        $crate::field::Slot::Flag { get: |plan| plan.$($path)+, put: |plan, value| plan.$($path)+ = value }
    };
}

/// The slot of a word of an enum: `word!(Sharding, sharding)`.
macro_rules! word {
    ($words:ident, $($path:tt)+) => {
        $crate::field::Slot::Word {
            get: |plan| plan.$($path)+.map($words::name),
            put: |plan, word| {
                let found = $words::named(word);
                if found.is_some() {
                    plan.$($path)+ = found;
                }
                found.is_some()
            },
        }
    };
}

pub(super) use {count, flag, nonzero, number, positive, word};
