//! Where a plan keeps the value of a field, and the value that holds if nothing is stated.

use crate::plan_spec::PlanSpec;

/// Where a plan keeps the value of a field.
#[derive(Clone, Copy)]
pub enum Slot {
    /// Outside plans: in a target or a scenario, or in several places.
    Outside,
    /// A number.
    Number {
        /// The stated value.
        get: fn(&PlanSpec) -> Option<f64>,
        /// States a value, or none.
        put: fn(&mut PlanSpec, Option<f64>),
    },
    /// On or off.
    Flag {
        /// The stated value.
        get: fn(&PlanSpec) -> Option<bool>,
        /// States a value, or none.
        put: fn(&mut PlanSpec, Option<bool>),
    },
    /// One of a few words.
    Word {
        /// The stated word.
        get: fn(&PlanSpec) -> Option<&'static str>,
        /// States a word or a synonym; false if it is unknown.
        put: fn(&mut PlanSpec, &str) -> bool,
    },
}

/// The value if neither files nor knobs state one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Usual {
    /// It follows from hardware, model, software or other fields.
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

/// The slot of a [`Count`](crate::count::Count), whose field has whole bounds: `count!(serving.max_num_seqs)`.
macro_rules! count {
    ($($path:tt)+) => {
        $crate::field::Slot::Number {
            get: |plan| plan.$($path)+.map(f64::from),
            put: |plan, value| plan.$($path)+ = value.map($crate::count::Count::floor),
        }
    };
}

/// The slot of an optional number, which files and knobs write as 0 when it is unset: `positive!(simulation.slo_ttft_ms)`.
macro_rules! positive {
    ($($path:tt)+) => {
        $crate::field::Slot::Number {
            get: |plan| plan.$($path)+,
            put: |plan, value| plan.$($path)+ = value.filter(|value| *value > 0.0),
        }
    };
}

/// The slot of an optional count, which files and knobs write as 0 when it is unset: `nonzero!(serving.run_requests)`.
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

/// The slot of something that is on or off.
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
