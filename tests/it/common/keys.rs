//! Notation of key presses in tests: characters, and names in angle brackets.
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// `j<Enter><C-r><A-2>`: j, Enter, Ctrl-r, Alt-2.
pub(crate) fn typed(keys: &str) -> Vec<KeyEvent> {
    let mut rest = keys;
    let mut events = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (name, after) = match rest.strip_prefix('<').and_then(|inner| inner.split_once('>')) {
            Some((name, after)) if !name.is_empty() => (name, after),
            _ => rest.split_at(first.len_utf8()),
        };
        rest = after;
        let (code, modifiers) = match name {
            "Tab" => (KeyCode::Tab, KeyModifiers::NONE),
            "BackTab" => (KeyCode::BackTab, KeyModifiers::SHIFT),
            "Enter" => (KeyCode::Enter, KeyModifiers::NONE),
            "Esc" => (KeyCode::Esc, KeyModifiers::NONE),
            "Space" => (KeyCode::Char(' '), KeyModifiers::NONE),
            "BS" => (KeyCode::Backspace, KeyModifiers::NONE),
            "Up" => (KeyCode::Up, KeyModifiers::NONE),
            "Down" => (KeyCode::Down, KeyModifiers::NONE),
            "Left" => (KeyCode::Left, KeyModifiers::NONE),
            "Right" => (KeyCode::Right, KeyModifiers::NONE),
            other => {
                let (modifier, key) = match other.split_once('-') {
                    Some(("C", key)) => (KeyModifiers::CONTROL, key.chars().next()),
                    Some(("A", key)) => (KeyModifiers::ALT, key.chars().next()),
                    _ => (KeyModifiers::NONE, None),
                };
                (KeyCode::Char(key.unwrap_or(first)), modifier)
            }
        };
        events.push(KeyEvent::new(code, modifiers));
    }
    events
}
