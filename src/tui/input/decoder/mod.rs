//! Turns bytes from the terminal into crossterm events.
//!
//! crossterm's own reader blocks inside its parser: an incomplete mouse report blocks the whole program until the rest
//! arrives, a terminal that has disconnected makes it spin, bytes beyond the first kilobyte of a burst are not
//! delivered until the next key press, and an arrow key that arrives in two packets over a slow link becomes Esc, `[`
//! and `A`. Therefore [`Waiter`](crate::tui::runtime::wait::Waiter) reads the bytes, waiting for all event sources at
//! once, and this module only parses them, with a timeout for incomplete sequences. The events have the types and the
//! meaning of crossterm's.

use std::collections::VecDeque;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

const ESC: u8 = 0x1b;
/// How long to wait for the rest of a sequence after Esc. Delays above about 50 ms are noticeable.
const ESC_TIMEOUT: Duration = Duration::from_millis(25);
/// How long to wait for the rest of any other incomplete sequence.
const SEQUENCE_TIMEOUT: Duration = Duration::from_millis(250);
/// Maximum pause within a paste.
const PASTE_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest sequence to wait for; real ones are under thirty bytes.
const MAX_SEQUENCE_BYTES: usize = 256;
/// Maximum number of bytes kept of a paste, more than any field accepts.
const MAX_PASTE_BYTES: usize = 64 * 1024;
const PASTE_END: &[u8] = b"\x1b[201~";
/// Ctrl-C: terminals never send it within a paste, so it ends one whose end mark was lost.
const INTERRUPT: u8 = 0x03;

/// The parser: [`feed`](Input::feed) it bytes, [`pop`](Input::pop) events.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    events: VecDeque<Event>,
    /// Text of a bracketed paste that has not ended yet.
    paste: Option<Vec<u8>>,
}

/// The result of parsing the front of the buffer.
enum ParseResult {
    /// Number of bytes, and their event; `None` for sequences that are ignored.
    Bytes(usize, Option<Event>),
    /// The start mark of a bracketed paste, with its length.
    Paste(usize),
    /// Incomplete.
    Incomplete,
}

impl Input {
    /// Adds bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.parse();
    }

    /// The next event, if one is complete.
    pub fn pop(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether an event is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.events.is_empty()
    }

    /// How long to wait for more bytes before [`end_incomplete`](Input::end_incomplete); `None` if no sequence is incomplete.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        match (&self.paste, self.bytes.as_slice()) {
            (Some(_), _) => Some(PASTE_TIMEOUT),
            (None, []) => None,
            (None, [ESC]) => Some(ESC_TIMEOUT),
            (None, _) => Some(SEQUENCE_TIMEOUT),
        }
    }

    /// Whether a paste has begun and not ended.
    #[must_use]
    pub fn is_pasting(&self) -> bool {
        self.paste.is_some()
    }

    /// Ends an incomplete sequence. A lone Esc is the Esc key, Esc and one byte are an Alt combination, and a paste
    /// ends with the text so far. Any other incomplete sequence is dropped, because its bytes would be taken for key
    /// presses.
    pub fn end_incomplete(&mut self) {
        if let Some(text) = self.paste.take() {
            self.events.push_back(pasted(&text));
        } else {
            match self.bytes.as_slice() {
                [ESC] => self.events.push_back(key(KeyCode::Esc, KeyModifiers::NONE)),
                [ESC, byte] => self.events.push_back(key(KeyCode::Char(char::from(*byte)), KeyModifiers::ALT)),
                _ => {}
            }
        }
        self.bytes.clear();
    }

    /// Clears the state after another program used the terminal.
    pub fn discard(&mut self) {
        *self = Input::default();
    }

    fn parse(&mut self) {
        let mut done = 0;
        loop {
            let rest = self.bytes.get(done..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            if let Some(text) = &mut self.paste {
                let Some(used) = take_paste(text, rest) else { break };
                done += used;
                if let Some(text) = self.paste.take() {
                    self.events.push_back(pasted(&text));
                }
                continue;
            }
            match front(rest) {
                ParseResult::Bytes(count, event) => {
                    done += count;
                    self.events.extend(event);
                }
                ParseResult::Paste(count) => {
                    done += count;
                    self.paste = Some(Vec::new());
                }
                ParseResult::Incomplete if rest.len() > MAX_SEQUENCE_BYTES => done += rest.len(),
                ParseResult::Incomplete => break,
            }
        }
        self.bytes.drain(..done);
        // Keep only the bytes that may be the beginning of the end mark, so that the others are not searched again.
        if let Some(text) = &mut self.paste {
            let keep = self.bytes.len().min(PASTE_END.len() - 1);
            let taken = self.bytes.drain(..self.bytes.len() - keep);
            text.extend(taken.take(MAX_PASTE_BYTES.saturating_sub(text.len())));
        }
    }
}

/// Appends the bytes before the end mark or Ctrl-C to `text`. Returns the number of bytes consumed, or `None` if
/// neither has arrived. Ctrl-C is not consumed, so that it is read as a key press.
fn take_paste(text: &mut Vec<u8>, rest: &[u8]) -> Option<usize> {
    let mark = rest.windows(PASTE_END.len()).position(|window| window == PASTE_END);
    let interrupt = rest.iter().position(|byte| *byte == INTERRUPT);
    let (end, used) = match (mark, interrupt) {
        (mark, Some(interrupt)) if mark.is_none_or(|mark| interrupt < mark) => (interrupt, interrupt),
        (mark, _) => mark.map(|mark| (mark, mark + PASTE_END.len()))?,
    };
    text.extend(rest.iter().take(end).take(MAX_PASTE_BYTES.saturating_sub(text.len())));
    Some(used)
}

fn pasted(text: &[u8]) -> Event {
    Event::Paste(String::from_utf8_lossy(text).into_owned())
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

/// Parses the front of `bytes`, which must not be empty.
fn front(bytes: &[u8]) -> ParseResult {
    match bytes {
        [ESC] | [] => ParseResult::Incomplete,
        // Of two in a row, the first is the Esc key; the second may begin a sequence.
        [ESC, ESC, ..] => ParseResult::Bytes(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [ESC, b'[', rest @ ..] => csi(rest),
        [ESC, b'O', rest @ ..] => match rest {
            [] => ParseResult::Incomplete,
            [code, ..] => ParseResult::Bytes(3, letter_key(*code).map(|code| key(code, KeyModifiers::NONE))),
        },
        // Replies to queries of other programs are dropped.
        [ESC, b']', b'0'..=b'9', ..] | [ESC, b'P', b'0'..=b'9' | b'$' | b'>' | b'!' | b'+', ..] => string_end(bytes),
        [ESC, rest @ ..] => match plain(rest) {
            ParseResult::Bytes(count, Some(Event::Key(KeyEvent { code, modifiers, .. }))) => {
                ParseResult::Bytes(count + 1, Some(key(code, modifiers | KeyModifiers::ALT)))
            }
            ParseResult::Bytes(count, event) => ParseResult::Bytes(count + 1, event),
            other => other,
        },
        _ => plain(bytes),
    }
}

/// Skips a string sequence, which ends with BEL or ST.
fn string_end(bytes: &[u8]) -> ParseResult {
    let bell = bytes.iter().position(|byte| *byte == 0x07).map(|at| at + 1);
    let terminator = bytes.windows(2).position(|pair| pair == b"\x1b\\").map(|at| at + 2);
    match bell.into_iter().chain(terminator).min() {
        Some(count) => ParseResult::Bytes(count, None),
        None => ParseResult::Incomplete,
    }
}

/// A key that needs no escape sequence.
fn plain(bytes: &[u8]) -> ParseResult {
    let Some(&first) = bytes.first() else { return ParseResult::Incomplete };
    let control = |c: u8| key(KeyCode::Char(char::from(c)), KeyModifiers::CONTROL);
    let event = match first {
        b'\r' => key(KeyCode::Enter, KeyModifiers::NONE),
        b'\t' => key(KeyCode::Tab, KeyModifiers::NONE),
        0x7f => key(KeyCode::Backspace, KeyModifiers::NONE),
        0 => control(b' '),
        1..=26 => control(first - 1 + b'a'),
        28..=31 => control(first - 28 + b'4'),
        _ => return character(bytes),
    };
    ParseResult::Bytes(1, Some(event))
}

fn character(bytes: &[u8]) -> ParseResult {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    match bytes.get(..length).map(std::str::from_utf8) {
        Some(Ok(text)) => ParseResult::Bytes(length, text.chars().next().map(character_key)),
        // Invalid UTF-8: only the first byte is dropped, because the following ones may be valid.
        Some(Err(_)) => ParseResult::Bytes(1, None),
        None if bytes.iter().skip(1).all(|byte| (0x80..=0xbf).contains(byte)) => ParseResult::Incomplete,
        None => ParseResult::Bytes(1, None),
    }
}

fn character_key(c: char) -> Event {
    let shift = if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
    key(KeyCode::Char(c), shift)
}

/// Parses what follows `ESC [`.
fn csi(rest: &[u8]) -> ParseResult {
    // The Linux console's F1 to F5.
    if let [b'[', tail @ ..] = rest {
        return match tail {
            [] => ParseResult::Incomplete,
            [code @ b'A'..=b'E', ..] => {
                ParseResult::Bytes(4, Some(key(KeyCode::F(code - b'A' + 1), KeyModifiers::NONE)))
            }
            _ => ParseResult::Bytes(4, None),
        };
    }
    let Some(length) = rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        return ParseResult::Incomplete;
    };
    let (parameters, end) = rest.split_at(length);
    let Some(&code) = end.first() else { return ParseResult::Incomplete };
    let used = 2 + length + 1;
    match code {
        // Another sequence begins before this one ended: drop the first.
        ESC => ParseResult::Bytes(used - 1, None),
        b'~' if parameters == b"200" => ParseResult::Paste(used),
        // Mouse reports in the legacy encoding, which this program never enables, carry three more bytes.
        b'M' if parameters.is_empty() => {
            if end.len() < 4 {
                ParseResult::Incomplete
            } else {
                ParseResult::Bytes(used + 3, None)
            }
        }
        _ => ParseResult::Bytes(used, control_sequence(parameters, code)),
    }
}

fn control_sequence(parameters: &[u8], code: u8) -> Option<Event> {
    if let [b'<', report @ ..] = parameters {
        return mouse(report, code);
    }
    let numbers = Numbers::read(parameters)?;
    let modifiers = modifiers(numbers.second);
    let kind = match numbers.event {
        2 => KeyEventKind::Repeat,
        3 => KeyEventKind::Release,
        _ => KeyEventKind::Press,
    };
    let code = match code {
        b'I' => return Some(Event::FocusGained),
        b'O' => return Some(Event::FocusLost),
        b'Z' => return Some(key(KeyCode::BackTab, modifiers | KeyModifiers::SHIFT)),
        b'~' if numbers.first == 27 => character_code(numbers.third)?,
        b'~' => numbered_key(numbers.first)?,
        b'u' => character_code(numbers.first)?,
        // The reply to a cursor position query also ends in `R`. This program never sends that query; a reply is
        // ignored unless its first parameter is 1.
        b'R' if numbers.first == 1 => KeyCode::F(3),
        b'R' => return None,
        letter => letter_key(letter)?,
    };
    Some(Event::Key(KeyEvent::new_with_kind(code, modifiers, kind)))
}

/// The numbers of a control sequence that key presses use.
struct Numbers {
    first: u32,
    second: u32,
    /// Subparameter of the second number: press, repeat or release.
    event: u32,
    third: u32,
}

impl Numbers {
    fn read(parameters: &[u8]) -> Option<Numbers> {
        let text = std::str::from_utf8(parameters).ok()?;
        let number = |text: Option<&str>| match text {
            None | Some("") => Some(0),
            Some(digits) => digits.parse().ok(),
        };
        let mut groups = text.split(';').map(|group| group.split(':'));
        let first = number(groups.next().and_then(|mut group| group.next()))?;
        let mut second = groups.next();
        let [second, event] = [(); 2].map(|()| number(second.as_mut().and_then(Iterator::next)));
        let third = number(groups.next().and_then(|mut group| group.next()))?;
        Some(Numbers { first, second: second?, event: event?, third })
    }
}

fn modifiers(code: u32) -> KeyModifiers {
    let bits = code.saturating_sub(1);
    let all = [
        KeyModifiers::SHIFT,
        KeyModifiers::ALT,
        KeyModifiers::CONTROL,
        KeyModifiers::SUPER,
        KeyModifiers::HYPER,
        KeyModifiers::META,
    ];
    all.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, modifier)| modifier).collect()
}

fn letter_key(code: u8) -> Option<KeyCode> {
    Some(match code {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(code - b'P' + 1),
        _ => return None,
    })
}

fn numbered_key(number: u32) -> Option<KeyCode> {
    let function = |number: u32, offset: u32| u8::try_from(number - offset).ok().map(KeyCode::F);
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => function(number, 10),
        17..=21 => function(number, 11),
        23..=26 => function(number, 12),
        28..=29 => function(number, 13),
        31..=34 => function(number, 14),
        _ => None,
    }
}

fn character_code(code: u32) -> Option<KeyCode> {
    match code {
        8 | 127 => Some(KeyCode::Backspace),
        9 => Some(KeyCode::Tab),
        13 => Some(KeyCode::Enter),
        27 => Some(KeyCode::Esc),
        _ => char::from_u32(code).filter(|c| !c.is_control()).map(KeyCode::Char),
    }
}

/// An SGR mouse report: button, column and row from 1; `M` when pressed, `m` when released.
fn mouse(report: &[u8], code: u8) -> Option<Event> {
    let mut numbers = std::str::from_utf8(report).ok()?.split(';').map(str::parse::<u16>);
    let (button, column, row) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    let motion = button & 32 != 0;
    let pressed = match button & 0b1100_0011 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match (pressed, code) {
        (Some(button), b'M') if motion => MouseEventKind::Drag(button),
        (Some(button), b'M') => MouseEventKind::Down(button),
        (Some(button), b'm') => MouseEventKind::Up(button),
        (None, b'M') => match button & 0b1100_0011 {
            3 => MouseEventKind::Moved,
            64 => MouseEventKind::ScrollUp,
            65 => MouseEventKind::ScrollDown,
            66 => MouseEventKind::ScrollLeft,
            67 => MouseEventKind::ScrollRight,
            _ => return None,
        },
        _ => return None,
    };
    let all = [(4, KeyModifiers::SHIFT), (8, KeyModifiers::ALT), (16, KeyModifiers::CONTROL)];
    let modifiers = all.into_iter().filter(|(bit, _)| button & bit != 0).map(|(_, modifier)| modifier).collect();
    let (column, row) = (column.checked_sub(1)?, row.checked_sub(1)?);
    Some(Event::Mouse(MouseEvent { kind, column, row, modifiers }))
}

#[cfg(test)]
mod tests;
