//! A text input of one line.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Maximum length of the text, in characters.
const MAX_CHARS: usize = 240;

/// The text, and the position of the cursor in characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    text: String,
    cursor: usize,
    /// The whole text is selected: typing replaces it, moving keeps it.
    selected: bool,
}

impl Line {
    /// Creates an input with a text and the cursor at its end.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Line {
        let text = text.into();
        let cursor = text.chars().count();
        Line { text, cursor, selected: false }
    }

    /// Creates an input whose whole text is selected.
    #[must_use]
    pub fn selected(text: impl Into<String>) -> Line {
        Line { selected: true, ..Line::new(text) }
    }

    /// Whether the whole text is selected.
    #[must_use]
    pub fn is_selected(&self) -> bool {
        self.selected
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The cursor, in characters from the left.
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    fn byte(&self, at: usize) -> usize {
        self.text.char_indices().nth(at).map_or(self.text.len(), |(byte, _)| byte)
    }

    /// Inserts text at the cursor, without its control characters.
    pub fn insert(&mut self, text: &str) {
        if std::mem::take(&mut self.selected) {
            self.text.clear();
            self.cursor = 0;
        }
        for c in text.chars().filter(|c| !c.is_control()) {
            if self.text.chars().count() >= MAX_CHARS {
                return;
            }
            let at = self.byte(self.cursor);
            self.text.insert(at, c);
            self.cursor += 1;
        }
    }

    /// Handles a key. Returns whether it was used.
    pub fn key(&mut self, key: &KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let length = self.text.chars().count();
        if self.selected && matches!(key.code, KeyCode::Backspace | KeyCode::Delete) {
            *self = Line::default();
            return true;
        }
        let typing = matches!(key.code, KeyCode::Char(_)) && !control;
        self.selected &= typing
            || !matches!(key.code, KeyCode::Char(_) | KeyCode::Left | KeyCode::Right | KeyCode::Home | KeyCode::End);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = length,
            KeyCode::Char('u') if control => {
                let at = self.byte(self.cursor);
                self.text.drain(..at);
                self.cursor = 0;
            }
            KeyCode::Char('w') if control => {
                let head: String = self.text.chars().take(self.cursor).collect();
                let kept =
                    head.trim_end().rfind(' ').map_or(0, |space| head.get(..=space).map_or(0, |s| s.chars().count()));
                let (from, to) = (self.byte(kept), self.byte(self.cursor));
                self.text.drain(from..to);
                self.cursor = kept;
            }
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c.encode_utf8(&mut [0; 4]))
            }
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                let at = self.byte(self.cursor);
                self.text.remove(at);
            }
            KeyCode::Delete if self.cursor < length => {
                let at = self.byte(self.cursor);
                self.text.remove(at);
            }
            KeyCode::Backspace | KeyCode::Delete => {}
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(length),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = length,
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_editor_inserts_moves_deletes_and_limits_the_length() {
        let mut line = Line::new("8192");
        let press = |line: &mut Line, code| line.key(&KeyEvent::new(code, KeyModifiers::NONE));
        press(&mut line, KeyCode::Left);
        press(&mut line, KeyCode::Backspace);
        press(&mut line, KeyCode::Char('é'));
        assert_eq!((line.text(), line.cursor()), ("81é2", 3));
        press(&mut line, KeyCode::Home);
        press(&mut line, KeyCode::Delete);
        assert_eq!((line.text(), line.cursor()), ("1é2", 0));
        press(&mut line, KeyCode::Backspace);
        line.insert("a\nb\u{7}");
        assert_eq!(line.text(), "ab1é2");
        line.key(&KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(line.text(), "1é2");
        line.insert(&"x".repeat(500));
        assert_eq!(line.text().chars().count(), MAX_CHARS);
        assert!(!press(&mut line, KeyCode::Enter));
    }

    #[test]
    fn typing_replaces_a_selected_text_and_moving_keeps_it() {
        let press = |line: &mut Line, code| line.key(&KeyEvent::new(code, KeyModifiers::NONE));
        let mut line = Line::selected("8192");
        press(&mut line, KeyCode::Char('4'));
        press(&mut line, KeyCode::Char('0'));
        assert_eq!(line.text(), "40");
        let mut line = Line::selected("8192");
        press(&mut line, KeyCode::Left);
        press(&mut line, KeyCode::Char('0'));
        assert_eq!(line.text(), "81902");
        let mut line = Line::selected("8192");
        press(&mut line, KeyCode::Backspace);
        assert_eq!((line.text(), line.cursor()), ("", 0));
    }

    #[test]
    fn ctrl_w_deletes_the_previous_word() {
        let mut line = Line::new("two words");
        line.key(&KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!((line.text(), line.cursor()), ("two ", 4));
        line.key(&KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!((line.text(), line.cursor()), ("", 0));
    }
}
