//! The list of views.

/// Passes the list of all views to a macro: the documentation of each, its variant of [`View`], its name in scripts and
/// sessions, and its module in `tui::views`. The help lists the keys of views in this order.
macro_rules! for_all_views {
    ($define:ident) => {
        $define! {
            /// The panes: targets, workloads, knobs and results.
            #[default]
            Main "main" overview,
            /// Best layout of each target under the same constraints.
            Race "race" race,
            /// Targets side by side with the same knobs.
            Compare "compare" comparison,
            /// Breakdown of time and memory.
            Breakdown "breakdown" breakdown,
            /// A metric as a function of one or two knobs.
            Sweep "sweep" sweep,
            /// Pareto frontier of two metrics.
            Frontier "frontier" frontier,
            /// Sensitivity to knobs and hardware parameters.
            Sensitivity "sensitivity" tornado,
            /// Best knobs for an objective under constraints.
            Optimum "optimize" optimum,
            /// Timeline of the simulation.
            Timeline "timeline" timeline,
            /// Recommended changes.
            Advice "advice" advice,
            /// Derivation of a metric.
            Explain "explain" explain,
            /// The schedule, phase by phase.
            Schedule "schedule" schedule,
            /// Diagnostics about the files.
            Problems "problems" problems,
            /// Differences between the scenario and another tab or the baseline.
            Diff "diff" diff,
            /// Measurements alongside predictions.
            Measurements "measurements" measurements,
            /// A running job against its prediction.
            Watch "watch" watch,
            /// The history of predictions, submissions, runs and measurements.
            History "history" history,
            /// The files that launch the scenario.
            Launch "launch" launch,
            /// The releases of the scenario's software.
            Releases "releases" releases,
            /// Which models run on which targets.
            Fits "fits" fits,
            /// The number formats in which the scenario could run.
            Formats "formats" formats,
        }
    };
}
pub(crate) use for_all_views;

macro_rules! define_view {
    ($($(#[$attribute:meta])* $view:ident $name:literal $module:ident,)*) => {
        /// A screen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum View {
            $($(#[$attribute])* $view,)*
        }

        impl View {
            /// All views.
            pub const ALL: &[View] = &[$(View::$view),*];

            /// Returns the name in scripts and sessions.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(View::$view => $name,)*
                }
            }
        }
    };
}
for_all_views!(define_view);

impl View {
    /// Returns the view called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<View> {
        View::ALL.iter().copied().find(|view| view.name() == name)
    }

    /// Whether the steps of a tour can show it. The other views are about jobs, files and the whole catalog.
    #[must_use]
    pub fn is_in_tours(self) -> bool {
        !matches!(self, View::Watch | View::History | View::Launch | View::Releases | View::Fits | View::Formats)
    }
}
