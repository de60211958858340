//! The three PDF fonts, which every reader provides: encoding and character widths.

use pdf_writer::Name;

/// Standard PDF font, which need not be embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Font {
    /// Helvetica.
    Regular,
    /// Helvetica Bold.
    Bold,
    /// Courier.
    Mono,
}

impl Font {
    /// All fonts.
    pub(super) const ALL: [Font; 3] = [Font::Regular, Font::Bold, Font::Mono];

    /// Name in the page resources.
    pub(super) fn name(self) -> Name<'static> {
        Name(match self {
            Font::Regular => b"F1",
            Font::Bold => b"F2",
            Font::Mono => b"F3",
        })
    }

    /// PostScript name.
    pub(super) fn base(self) -> Name<'static> {
        Name(match self {
            Font::Regular => b"Helvetica",
            Font::Bold => b"Helvetica-Bold",
            Font::Mono => b"Courier",
        })
    }

    /// Width of encoded text at a font size, points.
    pub(super) fn width(self, text: &[u8], size: f32) -> f32 {
        let widths = match self {
            Font::Regular => &REGULAR,
            Font::Bold => &BOLD,
            Font::Mono => return 0.6 * size * text.len() as f32,
        };
        let of = |byte: &u8| byte.checked_sub(32).and_then(|at| widths.get(usize::from(at))).copied().unwrap_or(278);
        text.iter().map(|byte| f32::from(of(byte))).sum::<f32>() * size / 1000.0
    }
}

/// Encodes text in Windows code page 1252. Symbols that it lacks are spelled out; letters of other scripts become
/// question marks.
pub(super) fn encode(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for letter in text.chars() {
        let code = u32::from(letter);
        match (letter, u8::try_from(code)) {
            ('\t' | '\n' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '\u{2007}', _) => out.push(b' '),
            (_, Ok(byte)) if (32..127).contains(&byte) || byte >= 160 => out.push(byte),
            _ => out.extend_from_slice(encode_beyond_latin1(letter)),
        }
    }
    out
}

/// Encodes a character beyond Latin-1.
fn encode_beyond_latin1(letter: char) -> &'static [u8] {
    match letter {
        '€' => &[0x80],
        '‚' => &[0x82],
        'ƒ' => &[0x83],
        '„' => &[0x84],
        '…' => &[0x85],
        '†' => &[0x86],
        '‡' => &[0x87],
        '‰' => &[0x89],
        'Š' => &[0x8a],
        'Œ' => &[0x8c],
        'Ž' => &[0x8e],
        '‘' => &[0x91],
        '’' => &[0x92],
        '“' => &[0x93],
        '”' => &[0x94],
        '•' => &[0x95],
        '–' => &[0x96],
        '—' => &[0x97],
        '™' => &[0x99],
        'š' => &[0x9a],
        'œ' => &[0x9c],
        'ž' => &[0x9e],
        'Ÿ' => &[0x9f],
        'μ' => &[0xb5],
        '−' | '‑' | '‐' => b"-",
        '→' => b"->",
        '←' => b"<-",
        '↔' => b"<->",
        '≤' => b"<=",
        '≥' => b">=",
        '≈' => b"~",
        '≠' => b"!=",
        '√' => b"sqrt",
        'Σ' | '∑' => b"sum",
        'Δ' => b"delta",
        'σ' => b"sigma",
        'ρ' => b"rho",
        'χ' => b"chi",
        'γ' => b"gamma",
        'φ' => b"phi",
        '∞' => b"infinite",
        '✓' | '✔' => b"+",
        '✗' | '✘' => b"x",
        '★' | '◆' => b"*",
        _ => b"?",
    }
}

// Widths of the characters 32 to 255 in thousandths of the font size, from Adobe's font metrics.
#[rustfmt::skip]
const REGULAR: [u16; 224] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584, 350,
    556, 350, 222, 556, 333, 1000, 556, 556, 333, 1000, 667, 333, 1000, 350, 611, 350,
    350, 222, 222, 333, 333, 350, 556, 1000, 333, 1000, 500, 333, 944, 350, 500, 667,
    278, 333, 556, 556, 556, 556, 260, 556, 333, 737, 370, 556, 584, 333, 737, 333,
    400, 584, 333, 333, 333, 556, 537, 278, 333, 333, 365, 556, 834, 834, 834, 611,
    667, 667, 667, 667, 667, 667, 1000, 722, 667, 667, 667, 667, 278, 278, 278, 278,
    722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722, 667, 667, 611,
    556, 556, 556, 556, 556, 556, 889, 500, 556, 556, 556, 556, 278, 278, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 584, 611, 556, 556, 556, 556, 500, 556, 500,
];

#[rustfmt::skip]
const BOLD: [u16; 224] = [
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611,
    975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556,
    333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611,
    611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584, 350,
    556, 350, 278, 556, 500, 1000, 556, 556, 333, 1000, 667, 333, 1000, 350, 611, 350,
    350, 278, 278, 500, 500, 350, 556, 1000, 333, 1000, 556, 333, 944, 350, 500, 667,
    278, 333, 556, 556, 556, 556, 280, 556, 333, 737, 370, 556, 584, 333, 737, 333,
    400, 584, 333, 333, 333, 611, 556, 278, 333, 333, 365, 556, 834, 834, 834, 611,
    722, 722, 722, 722, 722, 722, 1000, 722, 667, 667, 667, 667, 278, 278, 278, 278,
    722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722, 667, 667, 611,
    556, 556, 556, 556, 556, 556, 889, 556, 556, 556, 556, 556, 278, 278, 278, 278,
    611, 611, 611, 611, 611, 611, 611, 584, 611, 611, 611, 611, 611, 556, 611, 556,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_outside_the_code_page_are_substituted() {
        assert_eq!(encode("a – b ≤ µ→€"), [b"a ".as_slice(), &[0x96], b" b <= ", &[0xb5], b"->", &[0x80]].concat());
        assert_eq!(encode("模型"), b"??");
    }

    #[test]
    fn digits_are_equally_wide_and_bold_is_wider() {
        assert!((Font::Regular.width(b"111", 10.0) - Font::Regular.width(b"907", 10.0)).abs() < 1e-4);
        assert!((Font::Regular.width(b"0", 10.0) - 5.56).abs() < 1e-4);
        assert!(Font::Bold.width(b"throughput", 10.0) > Font::Regular.width(b"throughput", 10.0));
        assert!((Font::Mono.width(b"abc", 10.0) - 18.0).abs() < 1e-4);
    }
}
