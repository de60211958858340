#![allow(clippy::unwrap_used, clippy::panic)]

use super::{Cell, cell_under_cursor, filtered_rows};
use crate::tui::app::{Overlay, View};
use crate::tui::message::{Effect, Message};
use crate::tui::testing::TestApp;
use crate::tui::update::update;
use atlas_document::Sources;
use atlas_plan::knob::Knob;
use atlas_plan::search::Gauge;

/// Opens the view with two targets marked, so that the table is small.
fn opened() -> TestApp {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("mm#").work();
    assert_eq!(hands.app.view, View::Fits);
    hands
}

fn cell(hands: &TestApp, model: &str) -> Cell {
    let rows = filtered_rows(&hands.app);
    rows.iter().find(|row| &*row.model == model).unwrap().cells.first().unwrap().clone()
}

#[test]
fn a_large_model_does_not_fit_where_a_small_one_does() {
    let hands = opened();
    let Cell::Fits { layout, free, speed, price } = cell(&hands, "llama-3.1-8b") else { panic!("8B fits one node") };
    assert!(layout == (1.0, 1.0) && free > 0.0 && speed.unwrap() > 0.0 && price.unwrap() > 0.0);
    let Cell::Fits { layout: larger, speed: slower, .. } = cell(&hands, "llama-3.1-405b") else {
        panic!("405B in fp8 fits eight devices")
    };
    assert!(larger.0 > layout.0 && slower.unwrap() < speed.unwrap());
    let largest = filtered_rows(&hands.app).last().unwrap().cells.first().unwrap().clone();
    assert!(matches!(largest, Cell::Short(bytes) if bytes > 0.0), "{largest:?}");
}

/// The rows that are visible first are computed first; the rest follows in batches.
#[test]
fn first_batch_of_the_fit_grid_contains_the_scenario_model() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("#");
    let order = hands.effects.iter().find_map(|effect| match effect {
        Effect::Work(order) => Some(order.clone()),
        _ => None,
    });
    let order = order.unwrap();
    let product = order.job.run(&Gauge::default());
    hands.effects = update(&mut hands.app, Message::WorkFinished(order.serial, product));
    let grid = hands.app.fits.table.answer().unwrap();
    assert!(grid.done < grid.of, "{} of {}", grid.done, grid.of);
    assert_eq!(cell_under_cursor(&hands.app).map(|(_, row, _)| &*row.model), Some("llama-3.1-70b"));
    assert!(hands.effects.iter().any(|effect| matches!(effect, Effect::Work(_))), "the rest is asked for");
}

/// Evaluating the layout as a scenario gives the same metrics.
#[test]
fn enter_on_the_scenario_model_applies_a_layout_with_equal_metrics() {
    let mut hands = opened();
    let (_, row, found) = cell_under_cursor(&hands.app).unwrap();
    assert_eq!(&*row.model, "llama-3.1-70b", "the cursor begins on the model of the scenario");
    let Cell::Fits { layout: (tp, _), speed, .. } = *found else { panic!("70B fits") };
    hands.keys("<Enter>");
    assert_eq!(
        hands.app.now.setup.overrides.get(&Knob::Tp).map(ToString::to_string).unwrap_or("4".into()),
        tp.to_string()
    );
    let metric = super::speed(hands.app.answer.mode());
    let own = hands.app.answer.value(metric).unwrap();
    assert!((own / speed.unwrap() - 1.0).abs() < 1e-9, "{own} {speed:?}");
}

#[test]
fn enter_on_another_model_opens_a_form_for_its_workload() {
    let mut hands = opened();
    hands.keys("/3.1-8b<Enter>g<Enter>");
    let Some(Overlay::Form(form)) = &hands.app.overlay else { panic!("{}", hands.text()) };
    assert_eq!(form.value(crate::tui::dialogs::form::Key::Model), "llama-3.1-8b");
}

#[test]
fn the_arrows_move_over_the_targets_and_the_filter_over_the_models() {
    let mut hands = opened();
    hands.keys("l");
    assert_eq!(hands.app.fits.column, 1);
    hands.keys("lll");
    assert_eq!(hands.app.fits.column, 1, "there are two targets");
    hands.keys("/qwen<Enter>");
    assert!(
        !filtered_rows(&hands.app).is_empty() && filtered_rows(&hands.app).iter().all(|row| row.model.contains("qwen"))
    );
    let document = super::export::document(&hands.app).unwrap();
    assert_eq!(document.rows.rows.len(), filtered_rows(&hands.app).len());
}
