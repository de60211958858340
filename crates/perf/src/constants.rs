//! Fitted and fixed coefficients that are neither datasheet values nor counts, each with unit, meaning and origin. They
//! are fields of one struct so that they can be fitted, perturbed and listed.
//!
//! *Fitted* constants are refitted without each source in turn to obtain the quoted errors. Constants set *by hand on
//! all rows* are not, so the quoted errors are slightly optimistic: changing any of them by a fifth changes the
//! leave-one-source-out median by less than half a point.

pub mod documented;
pub mod generation;
#[allow(clippy::approx_constant, reason = "a fitted value may come close to a mathematical constant")]
mod table;

pub use table::Constants;

/// Description of one constant, for listing and fitting.
pub struct Field<T> {
    /// Identifier.
    pub name: &'static str,
    /// Unit; "1" for plain numbers.
    pub unit: &'static str,
    /// Lower end of the physically plausible range, which limits the fit.
    pub low: f64,
    /// Upper end of that range.
    pub high: f64,
    /// Meaning and origin of the value.
    pub origin: &'static str,
    /// Whether a fit may change the value; the origin of a fixed value is in its doc comment.
    pub fitted: bool,
    /// Reads the value.
    pub get: fn(&T) -> f64,
    /// Writes the value.
    pub set: fn(&mut T, f64),
}

/// A constant as listed for users.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ListedConstant {
    /// Identifier.
    pub name: &'static str,
    /// Current value.
    pub value: f64,
    /// Unit; "1" for plain numbers.
    pub unit: &'static str,
    /// Whether the value comes from a fit.
    pub fitted: bool,
    /// Meaning and origin of the value.
    pub origin: &'static str,
}

/// Declares a struct of constants with their default values and a table of `Field`s for the fit.
#[macro_export]
macro_rules! constant_set {
    ($(#[$outer:meta])* $name:ident { $( $(#[doc = $doc:literal])* $field:ident : $value:expr, $unit:literal, $low:expr, $high:expr, $kind:ident $($prior:literal)?; )* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name { $( $(#[doc = $doc])* pub $field: f64, )* }

        impl Default for $name {
            fn default() -> Self { $name::SHIPPED }
        }

        impl $name {
            /// The constants of this release.
            pub const SHIPPED: $name = $name { $( $field: $value, )* };

            /// Starting point and prior of a fit: values from the literature or from counting, never from an earlier
            /// fit. Fixed constants keep their value.
            pub fn literature() -> $name {
                $name { $( $field: $crate::constant_set!(@prior $value, $kind $($prior)?), )* }
            }

            /// Name, unit, range, and access of every constant, in order of declaration.
            pub const FIELDS: &'static [$crate::constants::Field<$name>] = &[
                $( $crate::constants::Field {
                    name: stringify!($field), unit: $unit, low: $low, high: $high, origin: concat!($($doc),*),
                    fitted: $crate::constant_set!(@$kind),
                    get: |c| c.$field, set: |c, v| c.$field = v,
                }, )*
            ];

            /// Name, value, unit and origin of every constant, in order of declaration.
            pub fn table(&self) -> impl Iterator<Item = $crate::constants::ListedConstant> {
                Self::FIELDS.iter().map(|field| $crate::constants::ListedConstant {
                    name: field.name,
                    value: (field.get)(self),
                    unit: field.unit,
                    fitted: field.fitted,
                    origin: field.origin.trim(),
                })
            }
        }
    };
    (@fitted) => { true };
    (@fixed) => { false };
    (@prior $value:expr, fixed) => { $value };
    (@prior $value:expr, fitted $prior:literal) => { $prior };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_lie_in_their_ranges_and_names_are_unique() {
        let c = Constants::default();
        for f in Constants::FIELDS {
            let v = (f.get)(&c);
            assert!(v >= f.low && v <= f.high, "{} = {v}", f.name);
            assert_eq!(Constants::FIELDS.iter().filter(|g| g.name == f.name).count(), 1);
        }
        for listed in c.table() {
            assert!(listed.origin.contains("Origin:"), "{}: {}", listed.name, listed.origin);
        }
    }
}
