//! An offer of the price book: the hourly price of an instance.

use super::yaml::{decoded, yaml};
use super::{Form, Key};
use crate::tui::app::App;
use atlas_catalog::price::Price;
use atlas_config::library::Library;
use atlas_core::count::Count;
use atlas_core::plan::PriceBasis;
use atlas_document::Diagnostics;

/// The fields of a new offer of the selected target's accelerators.
pub(super) fn begin(app: &App) -> Vec<(Key, String)> {
    let of = app.answer.target.as_deref();
    let number = |value: Option<f64>| value.unwrap_or_default().to_string();
    vec![
        (Key::Provider, String::new()),
        (Key::Accelerator, of.and_then(|target| target.accelerator.as_deref()).unwrap_or_default().to_owned()),
        (Key::Count, of.map_or(Count::new(8), |target| target.accelerators_per_node).to_string()),
        (Key::Hourly, number(of.map(|target| target.cost.hourly_usd))),
        (Key::Basis, PriceBasis::OnDemand.name().to_owned()),
        (Key::Region, String::new()),
        // Only the user knows when the price was read.
        (Key::Date, String::new()),
        (Key::Source, String::new()),
    ]
}

/// The entry of `prices.yaml`.
pub(super) fn text(form: &Form) -> String {
    let optional = |key: Key, name: &str| match form.value(key) {
        "" => String::new(),
        text => format!("  {name}: {}\n", yaml(text)),
    };
    format!(
        "# Created in the terminal interface.\n- provider: {}\n  accelerator: {}\n  accelerators: {}\n  \
         hourly_usd: {} # of the whole instance\n  basis: {}\n{}  date: {}\n{}",
        yaml(form.value(Key::Provider)),
        yaml(form.value(Key::Accelerator)),
        form.value(Key::Count),
        form.value(Key::Hourly),
        yaml(form.value(Key::Basis)),
        optional(Key::Region, "region"),
        quoted(form.value(Key::Date)),
        optional(Key::Source, "source"),
    )
}

/// A date as a quoted string. A year alone would otherwise be parsed as a number.
fn quoted(date: &str) -> String {
    serde_json::Value::from(date).to_string()
}

/// The first problem of the offer, in one line.
pub(super) fn first_problem(library: &Library, form: &Form) -> Option<String> {
    if form.value(Key::Provider).is_empty() {
        return Some("provider: type a name".to_owned());
    }
    if form.value(Key::Date).is_empty() {
        return Some("date: type the date of the price, YYYY-MM-DD".to_owned());
    }
    let (mut problems, text) = (Diagnostics::new(), text(form));
    let price = decoded(&text, Price::decode, &mut problems);
    if let Some(problem) = problems.iter().next() {
        return Some(problem.message.clone());
    }
    let accelerator = price?.accelerator;
    library.catalog().accelerator(&accelerator).err().map(|problem| problem.message)
}
