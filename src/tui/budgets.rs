//! Byte budgets of frames drawn from the shipped catalog. Unlike times, byte counts are the same on every machine.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::testing::TestApp;
use crate::theme::color::ColorDepth;
use crate::tui::painter::Painter;
use crate::tui::screen::view;
use atlas_core::sort;
use atlas_document::Sources;

/// Bytes of the first frame, then of the frame after each key.
fn bytes(size: (u16, u16), keys: &[&str]) -> Vec<usize> {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.app.size = size;
    crate::tui::input::scrolling::follow(&mut hands.app);
    let mut painter = Painter::new(Vec::new(), ColorDepth::TrueColor);
    let mut frame = |hands: &TestApp| {
        let mut picture = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        view(&hands.app, &mut picture);
        painter.paint(&picture, None).unwrap()
    };
    let mut sent = vec![frame(&hands)];
    for key in keys {
        hands.keys(key);
        sent.push(frame(&hands));
    }
    sent
}

#[test]
fn a_frame_stays_within_its_budget() {
    const KB: usize = 1000;
    for (size, first, edit) in [((80, 24), 4 * KB, 2 * KB), ((120, 40), 8 * KB, 4 * KB), ((200, 60), 12 * KB, 6 * KB)] {
        let sent = bytes(size, &["K", "j", "k", "k", "<Right>", "<Left>", "jjjj<Right>"]);
        let [start, focus, down, up, nothing, engine, back, knob] = sent[..] else { panic!("{sent:?}") };
        assert!(start <= first, "{size:?}: the first frame is {start} bytes");
        assert!(focus <= 2 * KB && down.max(up) <= 400, "{size:?}: {focus} {down} {up}");
        assert_eq!(nothing, 0, "{size:?}: a key that changes nothing sends nothing");
        // Another engine has other knobs, so the whole pane is redrawn.
        for (bytes, edit) in [(engine, edit + KB), (back, edit + KB), (knob, edit)] {
            assert!(bytes <= edit, "{size:?}: an edit is {bytes} bytes");
        }
    }
}

/// Bytes that one step down a list takes in the most economical of the other programs measured, at 120x40 (bottom
/// 0.15.0).
const LEANEST_ELSEWHERE: usize = 186;

#[test]
fn median_bytes_per_cursor_step_stay_within_the_leanest_other_program() {
    let keys: Vec<&str> = std::iter::once("K").chain(["j"; 10]).chain(["k"; 10]).collect();
    let mut steps = bytes((120, 40), &keys).split_off(2);
    sort::ascending(&mut steps);
    let median = usize::midpoint(steps[9], steps[10]);
    assert!(median <= LEANEST_ELSEWHERE, "half of all steps send more than {median} bytes: {steps:?}");
}
