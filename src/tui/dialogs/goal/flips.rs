//! Ranking flips: the changes of this target with which its metric equals that of a marked target.

use std::sync::Arc;

use super::state::RankChange;
use crate::tui::app::App;
use crate::tui::update::applying::resolve;
use atlas_plan::engine::{analytical_scenario, estimate};
use atlas_plan::estimate::{Direction, Metric};
use atlas_plan::knob::Knob;
use atlas_plan::search::condition::fits;
use atlas_plan::search::goal_seek;
use atlas_plan::search::sensitivity::Lever;

/// Maximum number of marked targets that are considered.
const MAX_MARKED_TARGETS: usize = 8;

/// Finds, for each marked target, the change of this target with which its metric equals that of the marked one at the
/// same settings: the price if that suffices, else the first knob or hardware parameter that does.
#[must_use]
pub(super) fn rank_changes(app: &App, metric: &'static Metric) -> Vec<RankChange> {
    let (Some(scenario), Some(parts)) = (&app.answer.scenario, &app.answer.parts) else { return Vec::new() };
    let own = analytical_scenario(scenario);
    if metric.better == Direction::Neutral {
        return Vec::new();
    }
    let setup = &app.now.setup;
    let rivals = app.now.marks.iter().filter(|name| **name != setup.target).take(MAX_MARKED_TARGETS);
    let flip = |rival: &Arc<str>| {
        let (of, other) = resolve(&app.library, rival, setup)?;
        other.check(&of).ok()?;
        let figures = estimate(&other);
        let wanted = metric.applicable_value(&figures, &other).filter(|value| value.is_finite() && fits(&figures))?;
        let goal = goal_seek(&own, parts, metric, wanted);
        let by_price = goal.solutions.iter().find(|way| way.lever == Lever::Knob(Knob::HourlyUsd));
        let way = by_price.or(goal.solutions.first())?.clone();
        let now = goal.now?;
        let passes = (wanted < now) == (metric.better == Direction::Lower);
        (wanted != now).then(|| RankChange { rival: Arc::clone(rival), passes, way })
    };
    rivals.filter_map(flip).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::tui::app::Overlay;
    use crate::tui::testing::TestApp;
    use atlas_document::Sources;
    use atlas_plan::estimate::MetricId;

    /// The goal dialog on the price of a token, with two targets marked.
    fn sought() -> TestApp {
        let mut hands = TestApp::of(&Sources::built_in());
        hands.keys("f-8<Enter>mmmjjjm").keys("V/$/1M tokens<Enter>=");
        hands
    }

    fn found(hands: &TestApp) -> Vec<RankChange> {
        let Some(Overlay::Goal(seek)) = &hands.app.overlay else { panic!("{}", hands.text()) };
        seek.rank_changes.clone()
    }

    #[test]
    fn applying_a_flip_equalizes_the_metric_with_the_marked_target() {
        let hands = sought();
        let flips = found(&hands);
        assert!(!flips.is_empty() && flips.len() <= hands.app.now.marks.len(), "{}", hands.text());
        let metric = MetricId::DollarPer1mTokens.metric();
        for (at, flip) in flips.iter().enumerate() {
            assert_eq!(flip.way.lever, Lever::Knob(Knob::HourlyUsd), "{flip:?}");
            let mut hands = sought();
            assert!(hands.text().contains(&flip.text()), "{}", hands.text());
            hands.keys(&"<Down>".repeat(at)).keys("<Enter>");
            let (parts, other) = resolve(&hands.app.library, &flip.rival, &hands.app.now.setup).unwrap();
            // The changed price applies to this target only; the other one keeps the price of its files.
            let files = atlas_plan::scenario::Scenario::from_files(&parts);
            let mut other = other.clone();
            other.set(Knob::HourlyUsd, &files.get(Knob::HourlyUsd), &parts).unwrap();
            let (own, theirs) =
                (hands.app.answer.value(metric).unwrap(), metric.value(&estimate(&other), &other).unwrap());
            assert!((own / theirs - 1.0).abs() < 1e-3, "{flip:?}: {own} {theirs}");
        }
    }

    #[test]
    fn without_marks_no_ranking_flips() {
        let mut hands = TestApp::of(&Sources::built_in());
        hands.keys("V/$/1M tokens<Enter>=");
        assert_eq!(found(&hands), []);
    }
}
