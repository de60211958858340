//! The table of knobs, by family. A knob added here appears everywhere.

mod layout;
mod runtime;
mod serving;
mod simulation;
mod target;

use super::{Group, Home, Kind, Knob, Spec, Step};
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_document::decode::Bounds;

const fn whole(min: f64, max: f64, step: Step) -> Kind {
    Kind::Number { bounds: Bounds { min, max, whole: true }, step }
}

const fn real(min: f64, max: f64, step: f64) -> Kind {
    Kind::Number { bounds: Bounds { min, max, whole: false }, step: Step::Add(step) }
}

const fn ranks(max: f64) -> Kind {
    whole(1.0, max, Step::Double)
}

/// Every engine.
const ALL: &[Engine] = &[Engine::Analytical, Engine::SemiEmpirical, Engine::Event];
/// Those that reason from hardware and model.
const REASONING: &[Engine] = &[Engine::Analytical, Engine::Event];

/// An entry without unit, of both modes, that every engine heeds and that stands in a workload's file.
const fn entry(
    knob: Knob,
    name: &'static str,
    aliases: &'static [&'static str],
    group: Group,
    kind: Kind,
    path: &'static [&'static str],
    help: &'static str,
) -> Spec {
    let home = if path.is_empty() { Home::Nowhere } else { Home::Workload(path) };
    Spec { knob, name, aliases, group, kind, unit: "", home, mode: None, engines: ALL, except: None, help }
}

impl Spec {
    const fn unit(self, unit: &'static str) -> Spec {
        Spec { unit, ..self }
    }

    const fn of_target(self) -> Spec {
        let home = match self.home {
            Home::Workload(path) => Home::Target(path),
            other => other,
        };
        Spec { home, ..self }
    }

    const fn training(self) -> Spec {
        Spec { mode: Some(Mode::Training), ..self }
    }

    const fn inference(self) -> Spec {
        Spec { mode: Some(Mode::Inference), ..self }
    }

    const fn reasoned(self) -> Spec {
        Spec { engines: REASONING, ..self }
    }

    const fn except(self, mode: Mode, engines: &'static [Engine]) -> Spec {
        Spec { except: Some((mode, engines)), ..self }
    }

    const fn simulated(self) -> Spec {
        Spec { engines: &[Engine::Event], ..self }
    }

    const fn drawn(self) -> Spec {
        Spec { engines: &[Engine::SemiEmpirical, Engine::Event], ..self }
    }

    const fn calibrated(self) -> Spec {
        Spec { engines: &[Engine::SemiEmpirical], ..self }
    }
}

/// The knobs that the predecessor dashboard's estimator heeds.
pub(super) const DASHBOARD: [Knob; 13] = [
    Knob::Engine,
    Knob::Microbatch,
    Knob::Global,
    Knob::Precision,
    Knob::Recompute,
    Knob::Tp,
    Knob::Pp,
    Knob::Dp,
    Knob::Prompt,
    Knob::Generate,
    Knob::TrainTokens,
    Knob::Concurrency,
    Knob::HourlyUsd,
];

/// The registry: the families one behind the other, in the order of [`Knob`].
pub static KNOBS: [Spec; COUNT] = joined();

/// The families.
const FAMILIES: [&[Spec]; 5] =
    [&runtime::RUNTIME, &layout::LAYOUT, &serving::SERVING, &target::TARGET, &simulation::SIMULATION];

/// Knobs of all families.
const COUNT: usize = runtime::RUNTIME.len()
    + layout::LAYOUT.len()
    + serving::SERVING.len()
    + target::TARGET.len()
    + simulation::SIMULATION.len();

#[expect(clippy::indexing_slicing, reason = "worked out while compiling, where what is out of range is an error")]
const fn joined() -> [Spec; COUNT] {
    let mut all = [runtime::RUNTIME[0]; COUNT];
    let (mut at, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let mut member = 0;
        while member < FAMILIES[family].len() {
            all[at] = FAMILIES[family][member];
            at += 1;
            member += 1;
        }
        family += 1;
    }
    all
}
