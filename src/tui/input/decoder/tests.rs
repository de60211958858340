#![allow(clippy::unwrap_used)]
use super::*;

fn events(bytes: &[u8]) -> Vec<Event> {
    let mut input = Input::default();
    input.feed(bytes);
    std::iter::from_fn(|| input.pop()).collect()
}

fn code(bytes: &[u8]) -> (KeyCode, KeyModifiers) {
    match events(bytes).as_slice() {
        [Event::Key(key)] => (key.code, key.modifiers),
        other => unreachable!("{bytes:?} gave {other:?}"),
    }
}

#[test]
fn decoder_maps_key_sequences_to_crossterm_key_codes() {
    let (none, shift, alt, control) =
        (KeyModifiers::NONE, KeyModifiers::SHIFT, KeyModifiers::ALT, KeyModifiers::CONTROL);
    let table: &[(&[u8], KeyCode, KeyModifiers)] = &[
        (b"j", KeyCode::Char('j'), none),
        (b"G", KeyCode::Char('G'), shift),
        ("é".as_bytes(), KeyCode::Char('é'), none),
        ("界".as_bytes(), KeyCode::Char('界'), none),
        (b"\r", KeyCode::Enter, none),
        (b"\n", KeyCode::Char('j'), control),
        (b"\t", KeyCode::Tab, none),
        (b"\x7f", KeyCode::Backspace, none),
        (b"\x03", KeyCode::Char('c'), control),
        (b"\x1a", KeyCode::Char('z'), control),
        (b"\0", KeyCode::Char(' '), control),
        (b"\x1f", KeyCode::Char('7'), control),
        (b"\x1bx", KeyCode::Char('x'), alt),
        (b"\x1b\x7f", KeyCode::Backspace, alt),
        (b"\x1b[A", KeyCode::Up, none),
        (b"\x1bOB", KeyCode::Down, none),
        (b"\x1b[1;5C", KeyCode::Right, control),
        (b"\x1b[1;2D", KeyCode::Left, shift),
        (b"\x1b[H", KeyCode::Home, none),
        (b"\x1b[4~", KeyCode::End, none),
        (b"\x1b[5~", KeyCode::PageUp, none),
        (b"\x1b[6;3~", KeyCode::PageDown, alt),
        (b"\x1b[3~", KeyCode::Delete, none),
        (b"\x1b[Z", KeyCode::BackTab, shift),
        (b"\x1bOP", KeyCode::F(1), none),
        (b"\x1b[15~", KeyCode::F(5), none),
        (b"\x1b[24~", KeyCode::F(12), none),
        (b"\x1b[[C", KeyCode::F(3), none),
        (b"\x1b[27;5;13~", KeyCode::Enter, control),
        (b"\x1b[97;5u", KeyCode::Char('a'), control),
    ];
    for (bytes, key, modifiers) in table {
        assert_eq!(code(bytes), (*key, *modifiers), "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn any_split_of_the_bytes_gives_the_same_events() {
    let stream = "jj\x1b[A\x1b[1;5C\x1b[<0;12;7M\x1b[<65;1;1Mé界\x1b[200~pasted \x1b[A text\x1b[201~q\x1bOP\x1b[24~";
    let whole = events(stream.as_bytes());
    assert_eq!(whole.len(), 12);
    for cut in 1..stream.len() {
        let mut input = Input::default();
        let (head, tail) = stream.as_bytes().split_at(cut);
        input.feed(head);
        input.feed(tail);
        assert_eq!(std::iter::from_fn(|| input.pop()).collect::<Vec<_>>(), whole, "cut at {cut}");
    }
    let mut input = Input::default();
    stream.bytes().for_each(|byte| input.feed(&[byte]));
    assert_eq!(std::iter::from_fn(|| input.pop()).collect::<Vec<_>>(), whole, "byte by byte");
}

#[test]
fn sgr_mouse_reports_decode_and_malformed_ones_are_dropped() {
    let mouse = |bytes: &[u8]| match events(bytes).as_slice() {
        [Event::Mouse(mouse)] => Some((mouse.kind, mouse.column, mouse.row, mouse.modifiers)),
        _ => None,
    };
    let none = KeyModifiers::NONE;
    assert_eq!(mouse(b"\x1b[<0;1;1M"), Some((MouseEventKind::Down(MouseButton::Left), 0, 0, none)));
    assert_eq!(mouse(b"\x1b[<2;80;24m"), Some((MouseEventKind::Up(MouseButton::Right), 79, 23, none)));
    assert_eq!(mouse(b"\x1b[<64;5;6M"), Some((MouseEventKind::ScrollUp, 4, 5, none)));
    assert_eq!(mouse(b"\x1b[<81;5;6M"), Some((MouseEventKind::ScrollDown, 4, 5, KeyModifiers::CONTROL)));
    assert_eq!(mouse(b"\x1b[<32;5;6M"), Some((MouseEventKind::Drag(MouseButton::Left), 4, 5, none)));
    for wrong in ["0;0;0M", "0;1M", "x;1;1M", "0;99999;1M", "200;1;1M"] {
        assert_eq!(mouse(format!("\x1b[<{wrong}").as_bytes()), None, "{wrong}");
    }
}

#[test]
fn lone_esc_decodes_as_a_key_press_after_the_timeout() {
    let mut input = Input::default();
    input.feed(b"\x1b");
    assert_eq!(input.pop(), None);
    assert_eq!(input.timeout(), Some(ESC_TIMEOUT));
    input.end_incomplete();
    assert_eq!(input.pop(), Some(key(KeyCode::Esc, KeyModifiers::NONE)));
    assert_eq!(input.timeout(), None);
    assert_eq!(events(b"\x1b\x1b[A").len(), 2, "Esc, then Up");
}

#[test]
fn incomplete_sequence_is_dropped_and_the_next_key_decodes() {
    let mut input = Input::default();
    input.feed(b"\x1b[<0;1");
    assert_eq!(input.timeout(), Some(SEQUENCE_TIMEOUT));
    input.end_incomplete();
    input.feed(b"\x1b[1\x1b[Bk");
    assert_eq!(input.pop(), Some(key(KeyCode::Down, KeyModifiers::NONE)));
    assert_eq!(input.pop(), Some(key(KeyCode::Char('k'), KeyModifiers::NONE)));
    assert_eq!(events(b"\x1b]11;rgb:0000/0000/0000\x07\x1bP>|term\x1b\\x"), events(b"x"));
    assert_eq!(events(b"\xff\xfea"), events(b"a"));
    assert_eq!(events(b"\x1b[5;10Rz"), events(b"z"));
}

#[test]
fn a_paste_is_bounded_and_ends_when_it_stalls() {
    let mut input = Input::default();
    input.feed(b"\x1b[200~");
    for _ in 0..300 {
        input.feed(&[b'x'; 1024]);
    }
    assert_eq!(input.timeout(), Some(PASTE_TIMEOUT));
    input.end_incomplete();
    let Some(Event::Paste(text)) = input.pop() else { unreachable!() };
    assert_eq!(text.len(), MAX_PASTE_BYTES);
}

#[test]
fn ctrl_c_ends_an_unterminated_paste() {
    for cut in 0..4 {
        let mut input = Input::default();
        let (head, tail) = b"abc\x03q".split_at(cut);
        input.feed(b"\x1b[200~");
        input.feed(head);
        assert!(input.is_pasting());
        input.feed(tail);
        assert!(!input.is_pasting());
        let seen: Vec<Event> = std::iter::from_fn(|| input.pop()).collect();
        let interrupt = key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        let quit = key(KeyCode::Char('q'), KeyModifiers::NONE);
        assert_eq!(seen, [Event::Paste("abc".to_owned()), interrupt, quit], "cut at {cut}");
    }
}

#[test]
fn decoder_survives_random_bytes_with_a_bounded_buffer() {
    let mut state = 7u64;
    let mut input = Input::default();
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pieces: [&[u8]; 8] = [b"\x1b", b"[", b"<", b";9", b"M", b"\xe7", b"~", &[(state >> 40) as u8]];
        input.feed(pieces.get((state >> 33) as usize % 8).unwrap());
        if state >> 60 == 0 {
            input.end_incomplete();
        }
        assert!(input.bytes.len() <= MAX_SEQUENCE_BYTES + 1);
        while input.pop().is_some() {}
    }
    input.feed(&[b'['; 100_000]);
}
