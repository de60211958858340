//! Characters that the interface is drawn with, in Unicode and in ASCII.

/// Set of characters that the terminal can display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glyphs {
    /// Frame: horizontal, vertical, top left, top right, bottom left, bottom right.
    pub border: [&'static str; 6],
    /// The focused frame.
    pub border_focused: [&'static str; 6],
    /// After truncated text.
    pub ellipsis: &'static str,
    /// Up, more above.
    pub up: &'static str,
    /// Down, more below.
    pub down: &'static str,
    /// A difference.
    pub delta: &'static str,
    /// Before a note.
    pub bullet: &'static str,
    /// A marked target.
    pub mark: &'static str,
    /// A changed knob.
    pub changed: &'static str,
    /// Unfolded.
    pub open: &'static str,
    /// Folded.
    pub closed: &'static str,
    /// Condition met.
    pub check: &'static str,
    /// Condition not met.
    pub cross: &'static str,
    /// Eight heights, from low to full, for sparklines.
    pub levels: [&'static str; 8],
    /// Five densities, from nothing to full, for heat maps and shaded regions.
    pub shades: [&'static str; 5],
    ascii: bool,
}

impl Glyphs {
    /// Whether only ASCII can be displayed according to the environment, which is read through `lookup` so that this
    /// can be tested: the locale is not UTF-8 (`LC_ALL`, otherwise `LC_CTYPE`, otherwise `LANG`), or the font of the
    /// terminal has few other characters.
    #[must_use]
    pub fn must_be_ascii(lookup: impl Fn(&str) -> Option<String>) -> bool {
        let value = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(value).unwrap_or_default();
        let utf8 = locale.to_lowercase().replace('-', "").contains("utf8");
        let term = value("TERM").unwrap_or_default();
        !utf8 || matches!(term.as_str(), "" | "linux" | "dumb" | "unknown") || term.starts_with("vt")
    }

    /// Returns Unicode glyphs.
    #[must_use]
    pub const fn unicode() -> Glyphs {
        Glyphs {
            border: ["─", "│", "┌", "┐", "└", "┘"],
            border_focused: ["━", "│", "┍", "┑", "└", "┘"],
            ellipsis: "…",
            up: "▲",
            down: "▼",
            delta: "Δ",
            bullet: "·",
            mark: "◆",
            changed: "●",
            open: "▾",
            closed: "▸",
            check: "✓",
            cross: "✗",
            levels: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
            shades: [" ", "░", "▒", "▓", "█"],
            ascii: false,
        }
    }

    /// Returns ASCII glyphs.
    #[must_use]
    pub const fn ascii() -> Glyphs {
        Glyphs {
            border: ["-", "|", "+", "+", "+", "+"],
            border_focused: ["=", "|", "+", "+", "+", "+"],
            ellipsis: "~",
            up: "^",
            down: "v",
            delta: "d",
            bullet: "-",
            mark: "#",
            changed: "*",
            open: "v",
            closed: ">",
            check: "+",
            cross: "x",
            levels: ["_", ".", ":", "-", "=", "+", "*", "#"],
            shades: [" ", ".", ":", "%", "#"],
            ascii: true,
        }
    }

    /// Whether only ASCII may be shown.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// Whether braille may be shown, for fine charts.
    #[must_use]
    pub fn has_braille(&self) -> bool {
        !self.ascii
    }

    /// Returns the glyph whose height represents `share` (0 to 1) in a sparkline.
    #[must_use]
    pub fn level(&self, share: f64) -> &'static str {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
        let step = (share * 7.0).round() as usize;
        self.levels.get(step).copied().unwrap_or(" ")
    }

    /// Returns the glyph whose density represents `share` (0 to 1). Never blank.
    #[must_use]
    pub fn shade(&self, share: f64) -> &'static str {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 4")]
        let step = 1 + (share * 3.0).round() as usize;
        self.shades.get(step).copied().unwrap_or(" ")
    }

    /// Returns a cell filled from the left by this many eighths.
    #[must_use]
    pub fn eighths(&self, filled: usize) -> &'static str {
        if self.ascii {
            return if filled >= 4 { "#" } else { "-" };
        }
        [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(filled).copied().unwrap_or("█")
    }

    /// Returns a bar of `width` columns filled to `share` (0 to 1), in eighths of a cell, padded with spaces.
    #[must_use]
    pub fn bar(&self, share: f64, width: usize) -> String {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let eighths = (share * width as f64 * 8.0).round() as usize;
        let (full, rest) = (eighths / 8, eighths % 8);
        if self.ascii {
            let full = (share * width as f64).round() as usize;
            return format!("{}{}", "#".repeat(full), ".".repeat(width.saturating_sub(full)));
        }
        let part = if rest == 0 { "" } else { self.eighths(rest) };
        let used = full + usize::from(rest > 0);
        format!("{}{part}{}", "█".repeat(full), " ".repeat(width.saturating_sub(used)))
    }

    /// Returns the name of a key as this terminal can display it: arrows become words in ASCII.
    #[must_use]
    pub fn key<'k>(&self, key: &'k str) -> &'k str {
        match key {
            "↑" if self.ascii => "Up",
            "↓" if self.ascii => "Down",
            "←" if self.ascii => "Left",
            "→" if self.ascii => "Right",
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn must_be_ascii(variables: &[(&str, &str)]) -> bool {
        let lookup =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Glyphs::must_be_ascii(lookup)
    }

    #[test]
    fn glyph_set_depends_on_locale_and_terminal() {
        let term = ("TERM", "xterm-256color");
        assert!(!must_be_ascii(&[term, ("LANG", "en_US.UTF-8")]));
        assert!(!must_be_ascii(&[term, ("LC_ALL", "C.utf8"), ("LANG", "C")]));
        assert!(!must_be_ascii(&[term, ("LC_ALL", ""), ("LC_CTYPE", "de_DE.UTF-8"), ("LANG", "C")]));
        assert!(must_be_ascii(&[term, ("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(must_be_ascii(&[term]));
        assert!(must_be_ascii(&[("TERM", "linux"), ("LANG", "en_US.UTF-8")]));
        assert!(must_be_ascii(&[("LANG", "en_US.UTF-8")]));
    }

    #[test]
    fn every_character_is_one_column_wide() {
        for glyphs in [Glyphs::unicode(), Glyphs::ascii()] {
            let singles = [
                glyphs.ellipsis,
                glyphs.up,
                glyphs.down,
                glyphs.delta,
                glyphs.bullet,
                glyphs.mark,
                glyphs.changed,
                glyphs.open,
                glyphs.closed,
                glyphs.check,
                glyphs.cross,
            ];
            let all = glyphs
                .border
                .iter()
                .chain(&glyphs.border_focused)
                .chain(&glyphs.levels)
                .chain(&glyphs.shades)
                .chain(&singles);
            for glyph in all {
                assert_eq!(glyph.width(), 1, "{glyph}");
                assert_eq!(glyph.is_ascii(), glyphs.is_ascii() || glyph.is_ascii(), "{glyph}");
            }
        }
    }

    #[test]
    fn bars_keep_their_width() {
        for glyphs in [Glyphs::unicode(), Glyphs::ascii()] {
            for share in [-1.0, 0.0, 0.03, 0.3, 0.5, 0.999, 1.0, 7.0, f64::NAN, f64::INFINITY] {
                for width in [0, 1, 7, 20] {
                    assert_eq!(glyphs.bar(share, width).width(), width, "{share} of {width}");
                }
            }
        }
        assert_eq!(Glyphs::unicode().bar(0.5, 3), "█▌ ");
        assert_eq!(Glyphs::ascii().bar(0.5, 4), "##..");
        assert_eq!(Glyphs::unicode().level(1.0), "█");
        assert_eq!(Glyphs::unicode().level(f64::NAN), "▁");
    }
}
