//! A profile of a target: the efficiency factors of the analytical engine, if they are known without a calibration.

use std::sync::Arc;

use super::{Form, Key};
use crate::tui::app::App;
use atlas_config::library::Library;
use atlas_config::profile::stem_for;
use atlas_config::{Efficiency, Factors, Profile};
use atlas_document::Diagnostics;
use atlas_document::parse::parse;

/// The fields: the selected target, and the factors in effect for it.
pub(super) fn begin(app: &App) -> Vec<(Key, String)> {
    let factors: Efficiency = app.answer.scenario.as_ref().map(|scenario| scenario.efficiency).unwrap_or_default();
    let name = app.now.setup.target.to_string();
    let of = |key: fn(usize) -> Key, values: [f64; 4]| {
        values.into_iter().enumerate().map(move |(at, value)| (key(at), value.to_string()))
    };
    let first = std::iter::once((Key::Target, name));
    first.chain(of(Key::Training, factors.training.all())).chain(of(Key::Serving, factors.serving.all())).collect()
}

/// The profile as YAML.
pub(super) fn text(form: &Form) -> String {
    let factors = |key: fn(usize) -> Key| {
        let all = Factors::NAMES.iter().enumerate().map(|(at, name)| format!("{name}: {}", form.value(key(at))));
        all.collect::<Vec<_>>().join(", ")
    };
    format!(
        "# Created in the terminal interface for {}. Factors applied to constants of the analytical engine: above 1 is\n\
         # better. `atlas calibrate` fits them to measured runs.\n\
         efficiency:\n  training: {{ {} }}\n  serving: {{ {} }}\n",
        form.value(Key::Target).escape_default(),
        factors(Key::Training),
        factors(Key::Serving),
    )
}

/// The stem of the profile's file.
pub(super) fn stem(form: &Form) -> String {
    stem_for(form.value(Key::Target))
}

/// The first problem of the profile, in one line.
pub(super) fn first_problem(library: &Library, form: &Form) -> Option<String> {
    let target = form.value(Key::Target);
    if let Err(problem) = library.target(target) {
        return Some(problem.message);
    }
    let stem = stem(form);
    let own = library.profiles().find(|profile| *profile.name == *stem && !profile.origin.is_built_in());
    if let Some(profile) = own {
        return Some(format!("{target} already has a profile: {}", profile.origin.file));
    }
    let label: Arc<str> = "this form".into();
    let (mut problems, text) = (Diagnostics::new(), text(form));
    if let Some(root) = parse(&label, &text, &mut problems) {
        Profile::decode(&label, &stem, &root, &mut problems);
    }
    problems.iter().next().map(|problem| format!("{}: {}", problem.path, problem.message))
}
