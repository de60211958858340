//! Color depth of the terminal, and the nearest color at a given depth.
//!
//! The depth is derived from the environment only. Querying the terminal costs a round trip over SSH, and a late reply
//! appears as garbage in the input.

use ratatui::style::Color;

/// Color depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ColorDepth {
    /// None: bold, dim, underline and reverse only.
    Mono,
    /// The 16 ANSI colors.
    Ansi16,
    /// The 16 ANSI colors, the 6×6×6 cube and the gray ramp of xterm.
    #[default]
    Ansi256,
    /// 24 bits.
    TrueColor,
}

impl ColorDepth {
    /// Returns the color depth according to the environment variables, which are read through `lookup` so that this can
    /// be tested. A non-empty `NO_COLOR` or the terminal `dumb` means no colors; `COLORTERM=truecolor|24bit` or a
    /// `-direct` terminal means 24 bits; otherwise the name of the terminal decides.
    #[must_use]
    pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> ColorDepth {
        let value = |name: &str| lookup(name).unwrap_or_default();
        let term = value("TERM");
        if !value("NO_COLOR").is_empty() || value("CLICOLOR") == "0" || matches!(term.as_str(), "" | "dumb" | "unknown")
        {
            return ColorDepth::Mono;
        }
        // These terminals have no 24-bit colors and would render garbage, even if ssh has forwarded COLORTERM.
        let own_palette_only = ["linux", "vt", "ansi", "cons", "wsvt", "sun", "xterm-16color"];
        if own_palette_only.iter().any(|name| term.starts_with(name)) {
            return if term.starts_with("vt") { ColorDepth::Mono } else { ColorDepth::Ansi16 };
        }
        // GNU screen interprets the parts of a 24-bit sequence as attributes, but still forwards COLORTERM.
        let screen = !value("STY").is_empty() && value("TMUX").is_empty();
        let colorterm = value("COLORTERM").to_ascii_lowercase();
        if screen {
            return ColorDepth::Ansi256;
        }
        if matches!(colorterm.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
            return ColorDepth::TrueColor;
        }
        if term.contains("mono") || term.ends_with("-m") {
            return ColorDepth::Mono;
        }
        if term.ends_with("-16color") || term.ends_with("-8color") {
            return ColorDepth::Ansi16;
        }
        // Every terminal emulator of the last two decades supports the cube, even if TERM is only `xterm` or `screen`.
        ColorDepth::Ansi256
    }

    /// `mono`, `16`, `256` or `truecolor`, for status lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ColorDepth::Mono => "mono",
            ColorDepth::Ansi16 => "16",
            ColorDepth::Ansi256 => "256",
            ColorDepth::TrueColor => "truecolor",
        }
    }

    /// Returns the nearest color at this depth. Colors of the cube are never mapped to the 16 ANSI colors, because
    /// users can change those.
    #[must_use]
    pub fn nearest(self, color: Color) -> Color {
        match (self, color) {
            (_, Color::Reset) | (ColorDepth::Mono, _) => Color::Reset,
            (ColorDepth::TrueColor, _) => color,
            (ColorDepth::Ansi256, Color::Rgb(r, g, b)) => Color::Indexed(nearest_256([r, g, b])),
            (ColorDepth::Ansi16, Color::Rgb(r, g, b)) => nearest_16([r, g, b]),
            (ColorDepth::Ansi16, Color::Indexed(index)) if index >= 16 => nearest_16(indexed_rgb(index)),
            (_, Color::Indexed(index)) if index < 16 => {
                ANSI.get(usize::from(index)).map_or(color, |(_, named, _)| *named)
            }
            _ => color,
        }
    }
}

/// The 16 ANSI color names with xterm's values, which quantization assumes.
const ANSI: [(&str, Color, [u8; 3]); 16] = [
    ("black", Color::Black, [0, 0, 0]),
    ("red", Color::Red, [205, 0, 0]),
    ("green", Color::Green, [0, 205, 0]),
    ("yellow", Color::Yellow, [205, 205, 0]),
    ("blue", Color::Blue, [0, 0, 238]),
    ("magenta", Color::Magenta, [205, 0, 205]),
    ("cyan", Color::Cyan, [0, 205, 205]),
    ("white", Color::Gray, [229, 229, 229]),
    ("bright-black", Color::DarkGray, [127, 127, 127]),
    ("bright-red", Color::LightRed, [255, 92, 92]),
    ("bright-green", Color::LightGreen, [92, 255, 92]),
    ("bright-yellow", Color::LightYellow, [255, 255, 92]),
    ("bright-blue", Color::LightBlue, [92, 92, 255]),
    ("bright-magenta", Color::LightMagenta, [255, 92, 255]),
    ("bright-cyan", Color::LightCyan, [92, 255, 255]),
    ("bright-white", Color::White, [255, 255, 255]),
];

/// Returns all names that [`parse`] accepts, for "did you mean".
pub fn names() -> impl Iterator<Item = &'static str> {
    ANSI.iter().map(|(name, ..)| *name).chain(["default", "gray", "grey"])
}

/// Parses a color of a theme: `#rrggbb`, `#rgb`, an ANSI name (`red`, `bright-blue`), `default`, or 0–255.
#[must_use]
pub fn parse(text: &str) -> Option<Color> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix('#') {
        return parse_hex(hex);
    }
    if let Ok(index) = text.parse::<u8>() {
        return Some(Color::Indexed(index));
    }
    let name = text.to_ascii_lowercase().replace(['_', ' '], "-");
    match name.as_str() {
        "default" | "reset" | "none" => Some(Color::Reset),
        "gray" | "grey" | "dark-gray" | "dark-grey" => Some(Color::DarkGray),
        _ => ANSI.iter().find(|(known, ..)| *known == name).map(|(_, color, _)| *color),
    }
}

fn parse_hex(hex: &str) -> Option<Color> {
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(hex, 16).ok()?;
    let [_, r, g, b] = match hex.len() {
        6 => value.to_be_bytes(),
        // `#abc` is `#aabbcc`.
        3 => [0, 8, 4, 0].map(|shift| ((value >> shift) & 0xf) as u8 * 0x11),
        _ => return None,
    };
    Some(Color::Rgb(r, g, b))
}

/// Returns red, green and blue of a color, with xterm's values for the 16 ANSI colors; `None` for the default color.
#[must_use]
pub fn rgb(color: Color) -> Option<[u8; 3]> {
    match color {
        Color::Reset => None,
        Color::Rgb(r, g, b) => Some([r, g, b]),
        Color::Indexed(index) => Some(indexed_rgb(index)),
        named => ANSI.iter().find(|(_, known, _)| *known == named).map(|(.., looks)| *looks),
    }
}

/// Returns the color of an index. Cube (steps 0, 95, 135, 175, 215, 255) and ramp are the same in all terminals.
fn indexed_rgb(index: u8) -> [u8; 3] {
    match index {
        0..=15 => ANSI.get(usize::from(index)).map_or([0; 3], |(.., looks)| *looks),
        16..=231 => {
            let cube = index - 16;
            [cube / 36, cube / 6 % 6, cube % 6].map(|step| if step == 0 { 0 } else { 55 + 40 * step })
        }
        232..=255 => [8 + (index - 232) * 10; 3],
    }
}

fn nearest_256(rgb: [u8; 3]) -> u8 {
    let wanted = Lab::from(rgb);
    nearest_by(wanted, (16..=255u8).map(|index| (index, indexed_rgb(index)))).unwrap_or(16)
}

fn nearest_16(rgb: [u8; 3]) -> Color {
    let wanted = Lab::from(rgb);
    nearest_by(wanted, ANSI.iter().map(|(_, color, looks)| (*color, *looks))).unwrap_or(Color::Reset)
}

fn nearest_by<T>(wanted: Lab, candidates: impl Iterator<Item = (T, [u8; 3])>) -> Option<T> {
    candidates
        .map(|(what, rgb)| (wanted.distance(Lab::from(rgb)), what))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, what)| what)
}

/// Color in Björn Ottosson's Oklab color space, where equal distances look equally different. RGB distances do not.
#[derive(Clone, Copy)]
struct Lab([f32; 3]);

impl Lab {
    fn from(rgb: [u8; 3]) -> Lab {
        let [r, g, b] = rgb.map(|channel| {
            let c = f32::from(channel) / 255.0;
            if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        let l = (0.412_221_46 * r + 0.536_332_55 * g + 0.051_445_995 * b).cbrt();
        let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
        let s = (0.088_302_46 * r + 0.281_718_85 * g + 0.629_978_7 * b).cbrt();
        Lab([
            0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s,
            1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s,
            0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s,
        ])
    }

    fn distance(self, other: Lab) -> f32 {
        self.0.iter().zip(other.0).map(|(a, b)| (a - b).powi(2)).sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn depth(variables: &[(&str, &str)]) -> ColorDepth {
        ColorDepth::detect(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn color_depth_is_detected_from_environment_variables() {
        assert_eq!(depth(&[]), ColorDepth::Mono);
        assert_eq!(depth(&[("TERM", "dumb"), ("COLORTERM", "truecolor")]), ColorDepth::Mono);
        assert_eq!(depth(&[("TERM", "xterm-256color")]), ColorDepth::Ansi256);
        assert_eq!(depth(&[("TERM", "tmux-256color")]), ColorDepth::Ansi256);
        assert_eq!(depth(&[("TERM", "screen")]), ColorDepth::Ansi256);
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), ColorDepth::TrueColor);
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "24bit")]), ColorDepth::TrueColor);
        assert_eq!(depth(&[("TERM", "xterm-direct")]), ColorDepth::TrueColor);
        let inside = |name| depth(&[("TERM", "screen.xterm"), ("COLORTERM", "truecolor"), (name, "1")]);
        assert_eq!((inside("STY"), inside("TMUX")), (ColorDepth::Ansi256, ColorDepth::TrueColor));
        assert_eq!(depth(&[("TERM", "linux"), ("COLORTERM", "truecolor")]), ColorDepth::Ansi16);
        assert_eq!(depth(&[("TERM", "rxvt-16color")]), ColorDepth::Ansi16);
        assert_eq!(depth(&[("TERM", "vt220")]), ColorDepth::Mono);
        assert_eq!(
            depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")]),
            ColorDepth::Mono
        );
        // By convention, an empty NO_COLOR has no effect.
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("NO_COLOR", "")]), ColorDepth::Ansi256);
    }

    #[test]
    fn colors_are_read_in_every_notation() {
        assert_eq!(parse("#7AA2f7"), Some(Color::Rgb(0x7a, 0xa2, 0xf7)));
        assert_eq!(parse("#1af"), Some(Color::Rgb(0x11, 0xaa, 0xff)));
        assert_eq!(parse("red"), Some(Color::Red));
        assert_eq!(parse("Bright_Blue"), Some(Color::LightBlue));
        assert_eq!(parse("white"), Some(Color::Gray));
        assert_eq!(parse("bright-white"), Some(Color::White));
        assert_eq!(parse("default"), Some(Color::Reset));
        assert_eq!(parse("214"), Some(Color::Indexed(214)));
        for wrong in ["", "#12", "#12345", "#gggggg", "#+12345", "256", "-1", "reddish"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert!(names().all(|name| parse(name).is_some()));
    }

    #[test]
    fn nearest_color_is_exact_on_the_cube_and_valid_for_its_depth() {
        assert_eq!(ColorDepth::Ansi256.nearest(Color::Rgb(95, 135, 175)), Color::Indexed(67));
        assert_eq!(ColorDepth::Ansi256.nearest(Color::Rgb(8, 8, 8)), Color::Indexed(232));
        assert_eq!(ColorDepth::Ansi256.nearest(Color::LightRed), Color::LightRed);
        assert_eq!(ColorDepth::Ansi16.nearest(Color::Rgb(250, 100, 90)), Color::LightRed);
        assert_eq!(ColorDepth::Ansi16.nearest(Color::Indexed(9)), Color::LightRed);
        assert_eq!(ColorDepth::Mono.nearest(Color::Red), Color::Reset);
        assert_eq!(ColorDepth::TrueColor.nearest(Color::Rgb(1, 2, 3)), Color::Rgb(1, 2, 3));
        for r in (0..=255).step_by(15) {
            for g in (0..=255).step_by(51) {
                for b in (0..=255).step_by(51) {
                    assert!(matches!(ColorDepth::Ansi256.nearest(Color::Rgb(r, g, b)), Color::Indexed(16..)));
                    let sixteen = ColorDepth::Ansi16.nearest(Color::Rgb(r, g, b));
                    assert!(!matches!(sixteen, Color::Rgb(..) | Color::Indexed(_) | Color::Reset));
                }
            }
        }
    }
}
