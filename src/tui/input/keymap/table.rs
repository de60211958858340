//! The table of keys, composed of the global ones and the `Spec` of each view.

use std::sync::LazyLock;

use super::binding::{Binding, Keys};
use super::global::{Entry, GLOBAL, Openings};
use super::mode::Mode;
use super::scope::Scope;
use crate::demo::View;

impl Openings {
    /// The keys of the group.
    fn bindings(self) -> Vec<&'static Binding> {
        let openings = View::ALL.iter().filter_map(|view| {
            let spec = view.spec();
            let opening = spec.opening.as_ref()?;
            let group = match second_key_of(opening) {
                _ if spec.is_in_footers => Openings::InFooters,
                Some(_) => Openings::AfterV,
                None => Openings::Other,
            };
            (group == self).then_some(opening)
        });
        let mut openings: Vec<&Binding> = openings.collect();
        if self == Openings::AfterV {
            openings.sort_by_key(|opening| second_key_of(opening));
        }
        openings
    }
}

/// The key of the binding that is pressed after a first one.
fn second_key_of(binding: &Binding) -> Option<&'static str> {
    binding.keys.iter().copied().find_map(super::second_key)
}

/// A row of the table.
struct Row {
    /// The modes in which it applies.
    scope: Scope,
    binding: &'static Binding,
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut table = Vec::new();
    for entry in GLOBAL {
        match entry {
            Entry::Key(scope, binding) => table.push(Row { scope: *scope, binding }),
            Entry::ViewKeys(place) => {
                let views = View::ALL.iter().filter(|view| view.spec().keys_place == *place);
                for (view, keys) in views.flat_map(|view| view.spec().keys.iter().map(move |keys| (*view, keys))) {
                    let (scope, bindings) = match keys {
                        Keys::Own(bindings) => (Scope::View(view), bindings),
                        Keys::In(modes, bindings) => (Scope::Modes(modes), bindings),
                    };
                    table.extend(bindings.iter().map(|binding| Row { scope, binding }));
                }
            }
            Entry::Openings(group) => table.extend(group.bindings().into_iter().map(|binding| {
                let after_v: &[Mode] = if second_key_of(binding).is_some() { &[Mode::AfterV] } else { &[] };
                Row { scope: Scope::Screens(after_v), binding }
            })),
        }
    }
    table
});

/// All bindings. Those that views share are repeated.
pub fn bindings() -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().map(|row| row.binding)
}

/// The bindings of a mode, in the order in which the footer shows their hints.
pub fn rows(mode: Mode) -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(move |row| row.scope.contains(mode)).map(|row| row.binding)
}

/// The bindings of a mode that the help lists under its name.
pub(in crate::tui) fn special(mode: Mode) -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(move |row| row.scope.contains(mode) && !row.scope.is_general()).map(|row| row.binding)
}

/// The bindings that the help lists by topic, because they work in many modes.
pub(in crate::tui) fn general() -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(|row| row.scope.is_general()).map(|row| row.binding)
}
