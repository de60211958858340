//! Copies text to the user's clipboard with OSC 52, which the terminal itself
//! handles, so that it works over SSH. No answer is expected.

/// Longest text that terminals are known to accept: xterm stops at 100 000 bytes of base64, others earlier.
pub const MAX_BYTES: usize = 56_000;
/// GNU screen passes through strings of at most 768 bytes, delimiters included.
const SCREEN_PIECE: usize = 512;

/// The multiplexer between this program and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplexer {
    /// None.
    Nothing,
    /// tmux: depending on its settings it handles or ignores OSC 52; wrapped sequences pass through.
    Tmux,
    /// GNU screen.
    Screen,
}

impl Multiplexer {
    /// Reads the environment through `lookup`, so that it can be tested.
    #[must_use]
    pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> Multiplexer {
        let set = |name: &str| lookup(name).is_some_and(|value| !value.is_empty());
        if set("TMUX") {
            Multiplexer::Tmux
        } else if set("STY") {
            Multiplexer::Screen
        } else {
            Multiplexer::Nothing
        }
    }
}

/// The bytes that copy `text` to the clipboard.
#[must_use]
pub fn osc52(text: &str, between: Multiplexer) -> Vec<u8> {
    let plain = format!("\x1b]52;c;{}\x07", base64(text.as_bytes()));
    match between {
        Multiplexer::Nothing => plain.into_bytes(),
        // Sends both forms: tmux handles the first with `set-clipboard on` and passes on the second with
        // `allow-passthrough on`.
        Multiplexer::Tmux => format!("{plain}\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b")).into_bytes(),
        Multiplexer::Screen => {
            plain.as_bytes().chunks(SCREEN_PIECE).flat_map(|piece| [b"\x1bP", piece, b"\x1b\\"].concat()).collect()
        }
    }
}

/// Encodes bytes as base64 (RFC 4648, section 4).
pub(in crate::tui) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sextet = (bits >> (18 - 6 * place)) & 63;
            let letter = ALPHABET.get(sextet as usize).copied().unwrap_or(b'=');
            out.push(if place > group.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_rfc_4648_vectors() {
        // RFC 4648, section 10.
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, encoded) in vectors {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
        assert_eq!(base64("×…".as_bytes()), "w5figKY=");
    }

    #[test]
    fn osc52_is_wrapped_for_tmux_and_split_for_screen() {
        assert_eq!(osc52("foo", Multiplexer::Nothing), b"\x1b]52;c;Zm9v\x07");
        let through = osc52("foo", Multiplexer::Tmux);
        assert!(through.ends_with(b"\x1bPtmux;\x1b\x1b]52;c;Zm9v\x07\x1b\\"));
        let long = osc52(&"x".repeat(3000), Multiplexer::Screen);
        for piece in long.split(|byte| *byte == b'\\') {
            assert!(piece.len() <= SCREEN_PIECE + 3);
        }
        let env = |name: &'static str| move |variable: &str| (variable == name).then(|| "1".to_owned());
        assert_eq!(Multiplexer::detect(env("TMUX")), Multiplexer::Tmux);
        assert_eq!(Multiplexer::detect(env("STY")), Multiplexer::Screen);
        assert_eq!(Multiplexer::detect(env("TERM")), Multiplexer::Nothing);
    }
}
