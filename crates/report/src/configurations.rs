//! Differences in configuration between the columns of a comparison, and the methodology by which they were chosen.

use serde_json::{Value, json};

use super::comparison::Comparison;
use super::table::{Table, left, right};
use super::{csv, optimum};
use atlas_core::sort;
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::Methodology;
use atlas_plan::search::methodology::differences;

/// Maximum targets shown as columns; more are shown as rows.
const MAX_COLUMNS: usize = 4;

/// Methodology, and the knobs whose values differ between the columns that have an estimate, or that a search changed.
#[derive(Debug, Clone)]
pub struct Configurations {
    methodology: Methodology,
    targets: Vec<String>,
    differences: Vec<(Knob, Vec<Option<Setting>>)>,
    /// Targets whose layout cannot run, with the reason.
    troubles: Vec<(String, String)>,
}

impl Configurations {
    /// Collects the differences between the columns of a comparison.
    #[must_use]
    pub fn of(comparison: &Comparison, methodology: Methodology) -> Configurations {
        let answered = || comparison.columns.iter().filter_map(|c| Some((&c.target, c.answer.as_ref().ok()?)));
        let scenarios: Vec<&Scenario> = answered().map(|(_, (scenario, _))| scenario).collect();
        let changed: Vec<Knob> =
            comparison.columns.iter().flat_map(|column| column.changes.iter().map(|(knob, _)| *knob)).collect();
        let trouble = |(target, (_, estimate)): (&String, &(Scenario, atlas_plan::estimate::Estimate))| {
            let verdict = estimate.detail.as_ref().map(|detail| detail.verdict).filter(|verdict| !verdict.fits())?;
            Some((target.clone(), verdict.describe()))
        };
        Configurations {
            methodology,
            targets: answered().map(|(target, _)| target.clone()).collect(),
            differences: differences(&scenarios, &changed),
            troubles: answered().filter_map(trouble).collect(),
        }
    }

    /// Renders the differences as plain text.
    #[must_use]
    pub fn table(&self) -> String {
        let meaning = match self.methodology {
            Methodology::IdenticalConfig => "same knobs on all targets",
            Methodology::MaximumPerformance => "best knobs of each target under the same constraints",
        };
        let mut out = format!("\nmethodology {}: {meaning}\n", self.methodology.name());
        for (target, trouble) in &self.troubles {
            out.push_str(&format!("note: {target} {trouble}\n"));
        }
        if self.differences.is_empty() {
            out.push_str("no knob differs\n");
            return out;
        }
        let show = |value: &Option<Setting>| value.as_ref().map_or_else(|| "n/a".to_owned(), Setting::to_string);
        let few = self.targets.len() <= MAX_COLUMNS;
        let names: Vec<String> = self.differences.iter().map(|(knob, _)| knob.name().to_owned()).collect();
        let columns = if few { self.targets.clone() } else { names };
        let columns = columns.into_iter().map(right);
        let mut table = Table::new(std::iter::once(left("differs".to_owned())).chain(columns));
        if few {
            for (knob, values) in &self.differences {
                table.row(std::iter::once(knob.name().to_owned()).chain(values.iter().map(show)));
            }
        } else {
            for (i, target) in self.targets.iter().enumerate() {
                let values = self.differences.iter().map(|(_, values)| values.get(i).map_or_else(String::new, show));
                table.row(std::iter::once(target.clone()).chain(values));
            }
        }
        out.push('\n');
        out.push_str(&table.render());
        out
    }

    /// Adds the differences to a comparison's JSON document.
    #[must_use]
    pub fn within(&self, mut document: Value) -> Value {
        let differences = self.differences.iter().map(|(knob, values)| {
            let values = self.targets.iter().zip(values);
            let values = values.map(|(target, value)| (target.clone(), json!(value.as_ref().map(optimum::setting))));
            (knob.name().to_owned(), Value::Object(sort::collect_unsorted(values)))
        });
        if let Some(document) = document.as_object_mut() {
            document.insert("methodology".to_owned(), json!(self.methodology.name()));
            document.insert("differences".to_owned(), Value::Object(sort::collect_unsorted(differences)));
        }
        document
    }

    /// Returns lines to append to a comparison's CSV: `knob:NAME` and a value per target.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut out = csv::line(["methodology", self.methodology.name()]);
        for (knob, values) in &self.differences {
            let mut cells = vec![format!("knob:{}", knob.name())];
            cells.extend(values.iter().map(|value| value.as_ref().map_or_else(String::new, Setting::to_string)));
            out.push_str(&csv::line(&cells));
        }
        out
    }
}
