#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::DirtyRegion;
use crate::tui::screen::{redraw, view};
use crate::tui::testing::TestApp;

/// Keys that lead to different screens. The test below starts from each of them.
const PLACES: &[&str] = &[
    "",
    "<Tab>",
    "<Tab><Tab>",
    "<Tab><Tab><Right><Right>jjjj<Right>",
    "<Tab><Tab><Tab>",
    "<Tab><Tab><Tab>jjj",
    "mjm<Tab><Tab>",
    "<Tab><Tab>ftp<Enter>",
    "<Tab><Tab>jj<Enter>4",
    "<Tab><Tab>jj<Enter>nonsense",
    "s<Tab><Tab>",
    "T<Tab><Tab>j<Right>",
    "Tvd",
    "b<Tab><Tab>j<Right>",
    ":theme light<Enter><Tab><Tab>",
    "v",
    "t",
    "?",
    ":",
    "/h",
    "c",
    "mjmc",
    "3",
    "<Tab>j3",
    "4",
    "5",
    "6",
    "7",
    "a",
    "!",
    "9",
    "vm",
    "x",
    "S",
    "d",
    "0",
    "vd",
    "<Tab><Tab><Tab>y",
];

/// Partial redraws produce the same picture as a full redraw.
#[test]
fn partial_redraws_produce_the_same_buffer_as_a_full_redraw() {
    let mut seen = [false; 3];
    for size in [(80, 24), (120, 40), (200, 60), (100, 16)] {
        for place in PLACES {
            let mut hands = TestApp::new();
            hands.app.size = size;
            hands.keys(place).work();
            let area = Rect::new(0, 0, size.0, size.1);
            let mut picture = Buffer::empty(area);
            hands.app.stale = DirtyRegion::All;
            redraw(&hands.app, &mut picture, true);
            hands.app.stale = DirtyRegion::Nothing;
            for key in ["j", "j", "k", "<C-d>", "G", "g", "jj", "jk", "jjjjjjjj", "<C-u>", "k", "kk"] {
                hands.keys(key).work();
                match hands.app.stale {
                    DirtyRegion::View => seen[0] = true,
                    DirtyRegion::Pane(_) => seen[1] = true,
                    DirtyRegion::All | DirtyRegion::Outlook | DirtyRegion::Nothing => seen[2] = true,
                }
                redraw(&hands.app, &mut picture, false);
                hands.app.stale = DirtyRegion::Nothing;
                let mut whole = Buffer::empty(area);
                view(&hands.app, &mut whole);
                assert_eq!(picture, whole, "{size:?}, {place:?} then {key:?}");
            }
        }
    }
    assert_eq!(seen, [true; 3]);
}

/// On a wide screen, a change of target redraws everything, and the chart that arrives later redraws only itself.
#[test]
fn late_outlook_chart_marks_only_itself_stale() {
    let mut hands = TestApp::new();
    hands.app.size = (200, 60);
    hands.keys("j").work();
    let area = Rect::new(0, 0, 200, 60);
    let mut picture = Buffer::empty(area);
    redraw(&hands.app, &mut picture, true);
    hands.keys("<Tab>").work();
    hands.app.stale = DirtyRegion::All;
    redraw(&hands.app, &mut picture, false);
    hands.app.stale = DirtyRegion::Nothing;
    hands.keys("j");
    redraw(&hands.app, &mut picture, false);
    hands.app.stale = DirtyRegion::Nothing;
    hands.work();
    assert_eq!(hands.app.stale, DirtyRegion::Outlook);
    redraw(&hands.app, &mut picture, false);
    let mut whole = Buffer::empty(area);
    view(&hands.app, &mut whole);
    assert_eq!(picture, whole);
}

#[test]
fn combining_stale_regions_covers_both() {
    use crate::tui::app::Pane;
    let (knobs, results) = (DirtyRegion::Pane(Pane::Knobs), DirtyRegion::Pane(Pane::Results));
    assert_eq!(knobs.and(knobs), knobs);
    assert_eq!(knobs.and(results), DirtyRegion::All);
    assert_eq!(knobs.and(DirtyRegion::Nothing), knobs);
    assert_eq!(DirtyRegion::Nothing.and(results), results);
    assert_eq!(DirtyRegion::Nothing.and(DirtyRegion::Nothing), DirtyRegion::Nothing);
    assert_eq!(DirtyRegion::View.and(DirtyRegion::All), DirtyRegion::All);
}
