//! Computes the table of models and targets row by row: first the model of the scenario, then the models closest to it
//! in size.

use atlas_core::count::Count;
use atlas_core::sort;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atlas_catalog::Model;
use atlas_config::library::Library;
use atlas_config::workload::{PlanSpec, Shape};
use atlas_config::{Mode, Target, Workload};
use atlas_plan::engine;
use atlas_plan::estimate::{Metric, MetricId, Verdict};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::Gauge;

use super::{Cell, Grid, Row, speed};
use crate::demo::Setup;
use crate::tui::work::job::{Job, Product};

/// Layout knobs. Overrides of these are ignored because the search for a layout sets them.
pub(super) const LAYOUT: [Knob; 12] = [
    Knob::Tp,
    Knob::Pp,
    Knob::Vpp,
    Knob::FirstLayers,
    Knob::LastLayers,
    Knob::Dp,
    Knob::Cp,
    Knob::Ep,
    Knob::Etp,
    Knob::AttentionDp,
    Knob::PrefillAccelerators,
    Knob::NumNodes,
];

/// How long rows are collected before they are shown: a shorter time for the first rows, then ten times per second.
const FIRST: Duration = Duration::from_millis(5);
const BATCH: Duration = Duration::from_millis(100);

/// Job that computes the missing rows of a table.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) library: Arc<Library>,
    pub(super) setup: Setup,
    pub(super) targets: Vec<Arc<str>>,
    /// Rows computed so far; empty at the start.
    pub(super) known: Grid,
}

impl Job for Work {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let base = self.library.workload(&self.setup.workload).map_err(|problem| problem.message.clone())?;
        let targets: Vec<&Arc<Target>> =
            self.targets.iter().filter_map(|name| self.library.target(name).ok()).collect();
        let mut overrides = self.setup.overrides.clone();
        overrides.retain(|knob, _| !LAYOUT.contains(knob) && *knob != Knob::Engine);
        let began = Instant::now();
        let batch = if self.known.done == 0 { FIRST } else { BATCH };
        let mut grid = self.known.clone();
        let models = models(&self.library.catalog().models(), base.model.as_deref());
        grid.of = models.len();
        for model in models.iter().skip(self.known.done) {
            if gauge.canceled() {
                return Err("stopped".to_owned());
            }
            let workload = Arc::new(of_model(base, model));
            let cells: Vec<Cell> = targets.iter().map(|target| self.cell(target, &workload, &overrides)).collect();
            // Leave out models that no target can run in this mode, such as an encoder in text serving.
            if cells.iter().any(|cell| !matches!(cell, Cell::Cannot(_))) {
                let row = Row { model: model.id.as_str().into(), parameters: model.parameters(), cells };
                let key = |row: &Row| (row.parameters, Arc::clone(&row.model));
                let at = grid.rows.partition_point(|known| key(known) < key(&row));
                grid.rows.insert(at, row);
            }
            grid.done += 1;
            if began.elapsed() >= batch {
                break;
            }
        }
        grid.targets = targets.into_iter().map(|target| Arc::clone(&target.name)).collect();
        Ok(Product::Fits(Arc::new(grid)))
    }
}

/// Returns all models: first the scenario's own, then by the ratio of their size to it, closest first.
fn models(all: &[Arc<Model>], own: Option<&str>) -> Vec<Arc<Model>> {
    let size = all.iter().find(|model| Some(&*model.id) == own).map_or(1.0, |model| model.parameters());
    let distance = |model: &Arc<Model>| (model.parameters() / size).ln().abs();
    let mut models = all.to_vec();
    sort::by(&mut models, |a, b| {
        let foreign = |model: &Arc<Model>| Some(&*model.id) != own;
        foreign(a).cmp(&foreign(b)).then(distance(a).total_cmp(&distance(b))).then_with(|| a.id.cmp(&b.id))
    });
    models
}

/// Returns the workload with another model, without the dimensions and the layout of the former model.
fn of_model(base: &Workload, model: &Model) -> Workload {
    let plan = PlanSpec {
        cp: None,
        ep: None,
        etp: None,
        vpp: None,
        dp: None,
        first_layers: None,
        last_layers: None,
        attention_dp: None,
        ..base.plan
    };
    Workload {
        model: Some(model.id.clone()),
        architecture: None,
        vocab_size: None,
        n_heads: None,
        n_kv_heads: None,
        ffn_hidden_size: None,
        shape: Shape {
            hidden: Count::ZERO,
            layers: Count::ZERO,
            tp: Count::ONE,
            pp: Count::ONE,
            dp: Count::ONE,
            ..base.shape
        },
        plan,
        phases: [].into(),
        benchboard: None,
        ..base.clone()
    }
}

impl Work {
    /// Returns the smallest layout that fits, or why there is none.
    fn cell(&self, target: &Arc<Target>, workload: &Arc<Workload>, overrides: &Overrides) -> Cell {
        let parts = match Parts::of(&self.library, target, workload) {
            Ok(parts) => parts,
            Err(problems) => return Cell::Cannot(problems.messages()),
        };
        let start = match Scenario::resolve(&parts, overrides) {
            Ok(start) => engine::analytical_scenario(&start),
            Err(error) => return Cell::Cannot(error.to_string()),
        };
        if !start.engine.models_hardware() {
            return Cell::Cannot(format!("{} engine: not comparable", start.engine.name()));
        }
        let mut short: Option<f64> = None;
        let mut refused: Option<String> = None;
        for layout @ (tp, pp) in layouts(&start) {
            let mut scenario = start.clone();
            let set = [(Knob::Tp, tp), (Knob::Pp, pp)]
                .into_iter()
                .try_for_each(|(knob, value)| scenario.set(knob, &Setting::Number(value), &parts));
            if let Err(error) = set {
                refused.get_or_insert(error.to_string());
                continue;
            }
            let estimate = engine::estimate(&scenario);
            match estimate.detail.map(|detail| (detail.verdict, detail)) {
                Some((Verdict::Fits, detail)) => {
                    let value = |metric: &Metric| metric.applicable_value(&estimate, &scenario);
                    let price = value(MetricId::DollarPer1mTokens.metric());
                    return Cell::Fits {
                        layout,
                        free: detail.memory.free(),
                        speed: value(speed(scenario.mode())),
                        price,
                    };
                }
                Some((Verdict::Memory { needs, has }, _)) => {
                    short = Some(short.map_or(needs - has, |least| least.min(needs - has)));
                }
                Some((other, _)) => {
                    refused.get_or_insert(other.describe());
                }
                None => {
                    refused.get_or_insert("no estimate".to_owned());
                }
            }
        }
        match (short, refused) {
            (Some(bytes), _) => Cell::Short(bytes),
            (None, why) => Cell::Cannot(why.unwrap_or_else(|| "no layout divides the model evenly".to_owned())),
        }
    }
}

/// Returns the TP and PP degrees to try, fewest accelerators first. In serving, pipeline stages are only added at the
/// largest TP degree of a node.
fn layouts(scenario: &Scenario) -> Vec<(f64, f64)> {
    let dies = scenario.machine.as_ref().map_or(1.0, |machine| machine.dies);
    let powers =
        |most: f64| std::iter::successors(Some(1.0), |value| Some(value * 2.0)).take_while(move |value| *value <= most);
    let all = scenario.accelerators() * dies;
    let node = scenario.accelerators_per_node * dies;
    // TP within a node, at most 8 in training and 16 in serving.
    let widest = node.min(if scenario.mode() == Mode::Training { 8.0 } else { 16.0 });
    let mut layouts: Vec<(f64, f64)> =
        powers(widest).flat_map(|tp| powers(64.0).map(move |pp| (tp, pp))).filter(|(tp, pp)| tp * pp <= all).collect();
    // For the same number of accelerators, fewer stages have lower latency.
    sort::by(&mut layouts, |(a_tp, a_pp), (b_tp, b_pp)| {
        (a_tp * a_pp).total_cmp(&(b_tp * b_pp)).then(a_pp.total_cmp(b_pp))
    });
    layouts.retain(|(tp, pp)| *pp <= 1.0 || *tp >= widest || scenario.mode() == Mode::Training);
    layouts
}
