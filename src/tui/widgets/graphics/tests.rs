#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use ratatui::buffer::Buffer;

use super::*;
use crate::tui::app::stale::DirtyRegion;
use crate::tui::app::{Pane, View};
use crate::tui::screen::redraw;
use crate::tui::testing::TestApp;
use atlas_document::Sources;

fn detect(environment: &[(&str, &str)]) -> Result<Graphics, String> {
    Graphics::detect(|variable| {
        let known = environment.iter().find(|(name, _)| *name == variable);
        known
            .map(|(_, value)| (*value).to_owned())
            .or_else(|| (variable == "TERM").then(|| "xterm-256color".to_owned()))
    })
}

#[test]
fn kitty_graphics_are_detected_from_the_environment() {
    let kitty = Ok(Graphics::Kitty);
    for (name, value) in [
        ("KITTY_WINDOW_ID", "1"),
        ("TERM", "xterm-kitty"),
        ("TERM", "xterm-ghostty"),
        ("TERM_PROGRAM", "WezTerm"),
        ("TERM_PROGRAM", "ghostty"),
        ("ATLAS_GRAPHICS", "kitty"),
    ] {
        assert_eq!(detect(&[(name, value)]), kitty, "{name}={value}");
        assert_eq!(detect(&[("ATLAS_GRAPHICS", "off"), (name, value)]), Ok(Graphics::Off), "{name}={value}");
    }
    for environment in [
        &[][..],
        &[("TERM_PROGRAM", "Apple_Terminal")],
        &[("KITTY_WINDOW_ID", "1"), ("TMUX", "/tmp/tmux-0/default,1,0")],
        &[("KITTY_WINDOW_ID", "1"), ("STY", "1.pts")],
        &[("KITTY_WINDOW_ID", "1"), ("TERM", "screen-256color")],
        &[("KITTY_WINDOW_ID", "1"), ("NO_COLOR", "1")],
    ] {
        assert_eq!(detect(environment), Ok(Graphics::Off), "{environment:?}");
    }
}

#[test]
fn unsupported_graphics_setting_returns_the_reason() {
    let why = |environment: &[(&str, &str)]| detect(environment).unwrap_err();
    assert!(why(&[("ATLAS_GRAPHICS", "sixel")]).contains("expected `off` or `kitty`"));
    assert!(why(&[("ATLAS_GRAPHICS", "kitty"), ("TMUX", "1")]).contains("not supported inside tmux and screen"));
    assert!(why(&[("ATLAS_GRAPHICS", "kitty"), ("NO_COLOR", "1")]).contains("need colors"));
}

/// A rising line over 20 by 5 cells.
fn chart() -> Chart {
    let points = vec![Some((0.0, 0.0)), Some((0.5, 0.5)), None, Some((0.6, 0.6)), Some((1.0, 1.0))];
    let curve = Curve { points, shape: Shape::Line, color: [10, 200, 30] };
    Chart { area: Rect::new(4, 2, 20, 5), curves: vec![curve] }
}

/// The control keys of each command of the protocol, and the concatenated data.
fn commands(bytes: &[u8]) -> (Vec<String>, String) {
    let text = std::str::from_utf8(bytes).unwrap();
    let all = text.split("\x1b_G").skip(1).map(|rest| rest.split_once("\x1b\\").unwrap().0);
    let parts = all.map(|command| command.split_once(';').unwrap_or((command, "")));
    let (keys, data): (Vec<&str>, Vec<&str>) = parts.unzip();
    (keys.into_iter().map(str::to_owned).collect(), data.concat())
}

/// Decodes base64.
fn decoded(text: &str) -> Vec<u8> {
    let sextet = |byte: u8| (0..64).find(|n| base64(&[n << 2]).as_bytes()[0] == byte).unwrap();
    let bits = |group: &[u8]| {
        let data: Vec<u8> = group.iter().filter(|byte| **byte != b'=').map(|byte| sextet(*byte)).collect();
        let value = data.iter().fold(0_u32, |value, six| value << 6 | u32::from(*six)) << (6 * (4 - data.len()));
        value.to_be_bytes()[1..data.len()].to_vec()
    };
    text.as_bytes().chunks(4).flat_map(bits).collect()
}

#[test]
fn image_is_placed_at_its_chart_area_behind_the_text() {
    let bytes = Images::default().show(Some(vec![chart()]), false, None);
    let text = String::from_utf8(bytes.clone()).unwrap();
    let begin = "\x1b7\x1b[3;5H\x1b_Ga=T,f=100,i=6386796,p=1,c=20,r=5,z=-1,C=1,q=2,m=0;iVBORw0KGgo";
    assert!(text.starts_with(begin), "{text:?}");
    assert!(text.ends_with("\x1b\\\x1b8"), "{text:?}");
    // The image has the curve in its color, and is clear elsewhere.
    let (_, data) = commands(&bytes);
    let mut decoder = png::Decoder::new(std::io::Cursor::new(decoded(&data)));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height, info.color_type), (200, 100, png::ColorType::Rgba));
    let pixel = |x: usize, y: usize| &pixels[4 * (200 * y + x)..4 * (200 * y + x) + 4];
    assert_eq!(pixel(50, 74), [10, 200, 30, 255]);
    assert_eq!(pixel(110, 44)[3], 0, "a gap is drawn");
    assert_eq!((pixel(0, 0)[3], pixel(199, 99)[3]), (0, 0));
}

#[test]
fn bytes_are_sent_only_when_a_chart_changes_or_the_screen_was_cleared() {
    let mut images = Images::default();
    let deleted = |bytes: &[u8]| commands(bytes).0.iter().any(|keys| keys.starts_with("a=d,d=I,i=6386796"));
    let hidden = |bytes: &[u8]| commands(bytes).0.iter().any(|keys| keys.starts_with("a=d,d=i,i=6386796"));
    let placed = |bytes: &[u8]| commands(bytes).0.iter().any(|keys| keys.starts_with("a=T"));
    assert!(images.show(None, true, None).is_empty());
    let first = images.show(Some(vec![chart()]), false, None);
    assert!(placed(&first) && !deleted(&first));
    assert!(images.show(Some(vec![chart()]), false, None).is_empty());
    assert!(images.show(None, false, None).is_empty());
    let again = images.show(None, true, None);
    assert!(placed(&again) && deleted(&again), "a cleared screen has lost its images");
    let gone = images.show(Some(Vec::new()), false, None);
    assert!(hidden(&gone) && !placed(&gone));
    // An image that is shown again is sent without its pixels.
    let back = images.show(Some(vec![chart()]), false, None);
    assert_eq!(commands(&back).0, ["a=p,i=6386796,p=1,c=20,r=5,z=-1,C=1,q=2"]);
    // Another chart has an image of its own, until all are taken.
    let other = |rows| Chart { area: Rect::new(4, 2, 20, rows), ..chart() };
    let sent = images.show(Some(vec![other(6)]), false, None);
    assert!(hidden(&sent) && placed_as(&sent, FIRST_ID + 1), "{sent:?}");
    assert!(placed_as(&images.show(Some(vec![other(7)]), false, None), FIRST_ID + 2));
    assert!(placed_as(&images.show(Some(vec![other(8)]), false, None), FIRST_ID + 3));
    let fifth = images.show(Some(vec![other(9)]), false, None);
    assert!(deleted(&fifth) && placed_as(&fifth, FIRST_ID), "the oldest gives way");
    let cleared = images.show(Some(Vec::new()), true, None);
    assert!(deleted(&cleared) && !placed(&cleared));
    assert!(images.show(Some(Vec::new()), true, None).is_empty());
}

fn placed_as(bytes: &[u8], id: usize) -> bool {
    commands(bytes).0.iter().any(|keys| keys.starts_with("a=T") && keys.contains(&format!("i={id},")))
}

#[test]
fn a_long_image_is_sent_in_pieces_that_the_protocol_allows() {
    let points = (0..200).map(|at| Some((f64::from(at) / 199.0, f64::from(at * 7 % 100) / 100.0))).collect();
    let curve = Curve { points, shape: Shape::Line, color: [200, 90, 10] };
    let area = Rect::new(0, 0, 190, 55);
    let bytes = Images::default().show(Some(vec![Chart { area, curves: vec![curve] }]), false, None);
    let (keys, data) = commands(&bytes);
    assert!(keys.len() > 1 && data.len() > PIECE * (keys.len() - 1));
    assert!(keys[0].ends_with("m=1") && keys.last().unwrap() == "m=0,q=2");
    assert!(keys[1..keys.len() - 1].iter().all(|keys| keys == "m=1,q=2"));
    let text = String::from_utf8(bytes).unwrap();
    let longest = text.split("\x1b_G").skip(1).map(|rest| rest.split_once("\x1b\\").unwrap().0.len()).max().unwrap();
    assert!(longest <= PIECE + 100);
    let reader = png::Decoder::new(std::io::Cursor::new(decoded(&data))).read_info().unwrap();
    let info = reader.info();
    assert!(info.width * info.height <= 1_000_000, "{}x{}", info.width, info.height);
}

/// The application in a terminal with these graphics, after these keys.
fn shown(graphics: Graphics, keys: &str) -> TestApp {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.app.graphics = graphics;
    hands.keys(keys).work();
    hands
}

fn drawn(hands: &TestApp) -> (Buffer, Vec<Chart>) {
    let mut picture = Buffer::empty(Rect::new(0, 0, hands.app.size.0, hands.app.size.1));
    let drawn = redraw(&hands.app, &mut picture, true);
    (picture, drawn.charts.unwrap())
}

fn braille(picture: &Buffer) -> usize {
    let is = |symbol: &str| symbol.chars().any(|c| ('\u{2800}'..='\u{28ff}').contains(&c));
    picture.content.iter().filter(|cell| is(cell.symbol())).count()
}

#[test]
fn curves_are_images_or_braille_and_the_rest_is_the_same_text() {
    for (keys, view) in [("4", View::Sweep), ("5", View::Frontier)] {
        let (plain, none) = drawn(&shown(Graphics::Off, keys));
        let hands = shown(Graphics::Kitty, keys);
        assert_eq!(hands.app.view, view);
        let (picture, charts) = drawn(&hands);
        assert!(none.is_empty() && braille(&plain) > 20, "{view:?}");
        assert_eq!((charts.len(), braille(&picture)), (1, 0), "{view:?}");
        let area = charts[0].area;
        let is_text =
            |cell: &ratatui::buffer::Cell| !cell.symbol().chars().any(|c| ('\u{2800}'..='\u{28ff}').contains(&c));
        for (at, (cell, other)) in plain.content.iter().zip(&picture.content).enumerate() {
            let place = plain.pos_of(at);
            assert!(cell == other || (area.contains(place.into()) && !is_text(cell)), "{view:?} {place:?}");
        }
    }
}

#[test]
fn opening_a_dialog_or_another_view_removes_the_image() {
    let mut hands = shown(Graphics::Kitty, "5");
    assert_eq!(drawn(&hands).1.len(), 1);
    hands.keys(":");
    assert_eq!(drawn(&hands).1, []);
    hands.keys("<Esc>").work();
    assert_eq!(drawn(&hands).1.len(), 1);
    hands.keys("1");
    assert_eq!(drawn(&hands).1, []);
}

#[test]
fn overview_chart_image_is_redrawn_only_with_the_outlook() {
    let mut hands = shown(Graphics::Kitty, "V");
    hands.app.size = (200, 60);
    crate::tui::input::scrolling::follow(&mut hands.app);
    hands.keys("j").work();
    let (mut picture, before) = drawn(&hands);
    assert_eq!(before.len(), 1);
    hands.app.stale = DirtyRegion::Outlook;
    assert_eq!(redraw(&hands.app, &mut picture, false).charts, Some(before));
    assert_eq!(braille(&picture), 0);
    hands.app.stale = DirtyRegion::Pane(Pane::Results);
    assert_eq!(redraw(&hands.app, &mut picture, false).charts, None, "those on the screen stay");
}

#[test]
fn moving_a_cursor_sends_no_image() {
    let mut hands = shown(Graphics::Kitty, "5");
    let (_, before) = drawn(&hands);
    hands.keys("<Right><Right>");
    assert_eq!(drawn(&hands).1, before);
}
