//! What stands side by side: the comparison's columns, which is their reference, and who else a chart shows.

use std::sync::Arc;

use super::app::{Answer, App, Setup, View};
use super::tables::{Sort, Table};
use atlas_config::Target;
use atlas_plan::estimate::{Better, Metric};

impl App {
    /// Works out the comparison, where it is on the screen.
    pub fn recompute_columns(&mut self) {
        if self.view != View::Compare {
            self.columns.clear();
            return;
        }
        let marked = |target: &&Arc<Target>| self.now.marks.len() < 2 || self.now.marks.contains(&target.name);
        let columns = self.library.targets().iter().filter(marked).map(|target| {
            let setup = Setup { target: Arc::clone(&target.name), ..self.now.setup.clone() };
            (Arc::clone(&target.name), self.answered(&setup))
        });
        self.columns = columns.filter(|(name, answer)| self.asks_to_compare(name, answer)).collect();
        self.sort_columns();
        self.column = self.column.min(self.columns.len().saturating_sub(1));
    }

    /// Puts the comparison's columns in order: the best of the chosen metric first, those without a figure last.
    fn sort_columns(&mut self) {
        if self.tables.sort(Table::Compare) == Sort::Name {
            self.columns.sort_by_key(|(name, _)| name.to_lowercase());
            return;
        }
        let Some(metric) = self.order.and_then(Metric::named) else { return };
        let sign = if metric.better == Better::Higher { -1.0 } else { 1.0 };
        let key = |answer: &Answer| answer.value(metric).map_or(f64::INFINITY, |value| sign * value);
        // Where it does not fit, the figure is one that cannot be had.
        self.columns.sort_by(|(_, a), (_, b)| b.fits().cmp(&a.fits()).then(key(a).total_cmp(&key(b))));
    }

    /// The comparison's reference: the baseline's target where it is a column, else the selected one, else the first.
    #[must_use]
    pub fn reference_column(&self) -> usize {
        let of = |name: &Arc<str>| self.columns.iter().position(|(column, _)| column == name);
        let baseline = self.reference().and_then(|setup| of(&setup.target));
        baseline.or_else(|| of(&self.now.setup.target)).unwrap_or_default()
    }

    /// The targets that charts show: the selected one, then the marked ones.
    #[must_use]
    pub fn contenders(&self) -> Vec<Arc<str>> {
        let own = &self.now.setup.target;
        let marked = self.now.marks.iter().filter(|name| *name != own);
        std::iter::once(own).chain(marked).cloned().collect()
    }
}
