//! Helpers of the recognizers to find and parse numbers in lines of text.

use std::borrow::Cow;

use memchr::memchr_iter;

/// Returns the position of `key` in `line`. Lines and keys are too short to amortize the construction of a `memmem`
/// searcher.
pub(crate) fn find(line: &str, key: &str) -> Option<usize> {
    let (line, key) = (line.as_bytes(), key.as_bytes());
    let (Some(first), Some(last)) = (key.first(), key.last()) else { return Some(0) };
    // Comparing the last byte first rejects nearly all candidates without comparing slices.
    memchr_iter(*first, line).find(|at| {
        line.get(at + key.len() - 1) == Some(last) && line.get(*at..).is_some_and(|rest| rest.starts_with(key))
    })
}

/// Returns the text after the first occurrence of `key`, without leading blanks.
pub(crate) fn text_after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let at = find(line, key)?;
    line.get(at + key.len()..).map(trim_start_ascii)
}

/// Removes leading ASCII white space; much faster than `trim_start`, which handles Unicode.
pub(crate) fn trim_start_ascii(text: &str) -> &str {
    let mut rest = text.as_bytes();
    while let [b' ' | b'\t' | b'\n' | b'\r' | b'\x0c', behind @ ..] = rest {
        rest = behind;
    }
    text.get(text.len() - rest.len()..).unwrap_or_default()
}

/// Removes leading ASCII bytes for which `kind` is true.
fn trim_start_matching(text: &str, kind: impl Fn(u8) -> bool) -> &str {
    let skipped = text.bytes().take_while(|byte| byte.is_ascii() && kind(*byte)).count();
    text.get(skipped..).unwrap_or_default()
}

/// Iterates over words before colons, and the text after them: `loss: 8.9  memory: 30.99GiB(32.62%)  tps: 7,022`.
#[must_use]
pub(crate) fn labeled(line: &str) -> Labeled<'_> {
    Labeled { line, from: 0 }
}

/// Iterator of [`labeled`].
#[derive(Debug, Clone)]
pub(crate) struct Labeled<'a> {
    line: &'a str,
    from: usize,
}

impl<'a> Iterator for Labeled<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        let bytes = self.line.as_bytes();
        let at = self.from + memchr::memchr(b':', bytes.get(self.from..)?)?;
        self.from = at + 1;
        let before = bytes.get(..at)?;
        let outside = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_';
        let from = before.iter().rposition(outside).map_or(0, |last| last + 1);
        Some((self.line.get(from..at)?, self.line.get(at + 1..)?))
    }
}

/// Iterates over the words of a line, separated by blanks and commas.
#[must_use]
pub(crate) fn words(line: &str) -> Words<'_> {
    Words { rest: line }
}

/// Iterator of [`words`].
#[derive(Debug, Clone)]
pub(crate) struct Words<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let between = |byte: u8| byte.is_ascii_whitespace() || byte == b',';
        let rest = trim_start_matching(self.rest, between);
        let end = rest.bytes().position(between).unwrap_or(rest.len());
        let (word, rest) = rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
}

/// Returns the trimmed text between `key` and the next `end`.
pub(crate) fn text_between<'a>(line: &'a str, key: &str, end: &str) -> Option<&'a str> {
    let rest = text_after(line, key)?;
    rest.split(end).next().map(str::trim)
}

/// Whether `line` contains `key`.
pub(crate) fn has(line: &str, key: &str) -> bool {
    find(line, key).is_some()
}

/// Parses the finite number after `key`. A colon, an equals sign and blanks may precede it.
pub(crate) fn number_after(line: &str, key: &str) -> Option<f64> {
    number(trim_start_matching(text_after(line, key)?, |byte| matches!(byte, b':' | b'=' | b' ' | b'\t')))
}

/// Parses a number without a suffix, for table cells whose column states the unit. Rejecting suffixes avoids matching
/// lines of other documents that happen to have the same number of commas.
pub(crate) fn plain_number(cell: &str) -> Option<f64> {
    cell.trim().parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses the finite number at the start of `text`; see [`parse_leading_number`].
pub(crate) fn number(text: &str) -> Option<f64> {
    parse_leading_number(text).map(|(value, _)| value).filter(|value| value.is_finite())
}

/// Parses the number at the start of `text` as a non-negative integer, discarding a fraction.
pub(crate) fn parse_integer(text: &str) -> Option<u64> {
    number(text).filter(|value| *value >= 0.0 && *value < 1e19).map(|value| value as u64)
}

/// Number of decimal digits that an `f64` represents exactly.
const EXACT_DIGITS: usize = 15;
/// Exponent of the largest power of ten that an `f64` represents exactly.
const EXACT_POWER: usize = 22;
/// Exact powers of ten. The product or quotient of one of them and an exact number is the nearest `f64` (Clinger 1990).
const TENS: [f64; EXACT_POWER + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Parses the number at the start of `text`, and returns it with the rest. Accepts leading blanks, a sign, thousands
/// separators, an exponent, `nan` and `inf`.
pub(crate) fn parse_leading_number(text: &str) -> Option<(f64, &str)> {
    let text = trim_start_ascii(text);
    let bytes = text.as_bytes();
    let (negative, start) = match bytes.first() {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    let mut rest = bytes.get(start..)?;
    let mut mantissa = 0;
    let mut count = digits(&mut rest, &mut mantissa);
    let commas = rest.first() == Some(&b',') && (1..=3).contains(&count);
    if commas {
        count += parse_digit_groups(&mut rest, &mut mantissa);
    }
    let mut decimals = 0;
    if let [b'.', behind @ ..] = rest
        && (count > 0 || matches!(behind, [b'0'..=b'9', ..]))
    {
        rest = behind;
        decimals = digits(&mut rest, &mut mantissa);
        count += decimals;
    }
    if count == 0 {
        return not_a_number(text, start);
    }
    let mut power = 0;
    if let [b'e' | b'E', behind @ ..] = rest {
        let (small, mut behind) = match behind {
            [b'-', behind @ ..] => (true, behind),
            [b'+', behind @ ..] => (false, behind),
            _ => (false, behind),
        };
        let mut exponent = 0;
        let length = digits(&mut behind, &mut exponent);
        if length > 0 {
            rest = behind;
            // Exponents with ten or more digits exceed the range of `f64`.
            power = if length < 10 { exponent as i32 } else { i32::MAX };
            power = if small { -power } else { power };
        }
    }
    let at = text.len() - rest.len();
    let rest = text.get(at..)?;
    let power = power.saturating_sub(decimals as i32);
    if let Some(scale) = TENS.get(power.unsigned_abs() as usize).filter(|_| count <= EXACT_DIGITS) {
        // Signed, because processors convert signed integers in one instruction.
        let digits = mantissa as i64 as f64;
        let value = if power < 0 { digits / scale } else { digits * scale };
        return Some((if negative { -value } else { value }, rest));
    }
    let written = text.get(..at)?;
    let value = if commas { written.replace(',', "").parse() } else { written.parse() };
    Some((value.ok()?, rest))
}

/// Consumes the digits at the start of `rest`, appends them to `number`, and returns their count.
fn digits(rest: &mut &[u8], number: &mut u64) -> usize {
    let length = rest.len();
    while let [digit @ b'0'..=b'9', behind @ ..] = *rest {
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        *rest = behind;
    }
    length - rest.len()
}

/// Like [`digits`], for groups of three digits that each follow a thousands separator.
fn parse_digit_groups(rest: &mut &[u8], number: &mut u64) -> usize {
    let mut count = 0;
    while let [b',', a, b, c, behind @ ..] = *rest
        && [a, b, c].iter().all(|byte| byte.is_ascii_digit())
        && !matches!(behind, [b'0'..=b'9', ..])
    {
        *rest = rest.get(1..).unwrap_or_default();
        count += digits(rest, number);
    }
    count
}

/// Parses `nan` or `inf` at `start`, the position after the sign.
fn not_a_number(text: &str, start: usize) -> Option<(f64, &str)> {
    let word = text.get(start..start + 3)?;
    let value = if word.eq_ignore_ascii_case("nan") {
        f64::NAN
    } else if word.eq_ignore_ascii_case("inf") {
        if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }
    } else {
        return None;
    };
    Some((value, text.get(start + 3..)?))
}

/// Parses a number with an optional decimal suffix K, M, B, G or T, as tools abbreviate counts.
pub(crate) fn parse_abbreviated_number(text: &str) -> Option<f64> {
    let (value, rest) = parse_leading_number(text)?;
    let scale = match rest.as_bytes().first() {
        Some(b'K' | b'k') => 1e3,
        Some(b'M') => 1e6,
        Some(b'G' | b'B') => 1e9,
        Some(b'T') => 1e12,
        _ => 1.0,
    };
    Some(value * scale).filter(|value| value.is_finite())
}

/// Splits a line of CSV into cells, unquoted and trimmed.
pub(crate) fn cells(line: &str) -> Vec<Cow<'_, str>> {
    if memchr::memchr(b'"', line.as_bytes()).is_none() {
        let mut out = Vec::with_capacity(16);
        let mut from = 0;
        for at in memchr_iter(b',', line.as_bytes()).chain([line.len()]) {
            out.push(Cow::Borrowed(line.get(from..at).unwrap_or_default().trim_ascii()));
            from = at + 1;
        }
        return out;
    }
    let mut out = Vec::new();
    let mut cell = String::new();
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(Cow::Owned(std::mem::take(&mut cell).trim().to_owned())),
            c => cell.push(c),
        }
    }
    out.push(Cow::Owned(cell.trim().to_owned()));
    out
}

/// Like [`cells`], with owned strings.
pub(crate) fn owned_cells(line: &str) -> Vec<String> {
    cells(line).into_iter().map(Cow::into_owned).collect()
}

/// Parses a date and time in one of several forms to a Unix time in seconds. Times without a zone are taken as UTC.
pub(crate) fn unix_seconds(text: &str) -> Option<f64> {
    let mut parts = [0_f64; 6];
    let mut rest = text.trim_start();
    for (index, part) in parts.iter_mut().enumerate() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let width = if index == 0 { 4..=4 } else { 1..=2 };
        if !width.contains(&digits) {
            return if index == 5 { None } else { parse_compact_timestamp(text) };
        }
        *part = rest.bytes().take(digits).fold(0.0, |sum, digit| sum * 10.0 + f64::from(digit - b'0'));
        rest = rest.get(digits..)?;
        rest = match index {
            0 | 1 => rest.strip_prefix(['-', '/'])?,
            2 => rest.strip_prefix([' ', 'T', '_', '-'])?.trim_start(),
            3 | 4 => rest.strip_prefix(':')?,
            _ => rest,
        };
    }
    let [year, month, day, hour, minute, second] = parts;
    let digits = rest.strip_prefix(['.', ',']).unwrap_or_default().bytes().take_while(u8::is_ascii_digit);
    let (fraction, _) =
        digits.fold((0.0, 0.1), |(sum, place), digit| (sum + f64::from(digit - b'0') * place, place / 10.0));
    unix_time(year, month, day, hour, minute, second + fraction)
}

/// Parses `20251023 12:39:12`, the form used by Primus.
fn parse_compact_timestamp(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<f64>().ok();
    if text.get(8..9)? != " " || text.get(11..12)? != ":" || text.get(14..15)? != ":" {
        return None;
    }
    unix_time(part(0..4)?, part(4..6)?, part(6..8)?, part(9..11)?, part(12..14)?, part(15..17)?)
}

fn unix_time(year: f64, month: f64, day: f64, hour: f64, minute: f64, second: f64) -> Option<f64> {
    let date = jiff::civil::Date::new(year as i16, month as i8, day as i8).ok()?;
    if hour > 24.0 || minute > 59.0 || second >= 61.0 {
        return None;
    }
    let days = date.since(jiff::civil::date(1970, 1, 1)).ok()?.get_days();
    Some(f64::from(days) * 86_400.0 + hour * 3600.0 + minute * 60.0 + second)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_parse_in_the_notations_of_tools() {
        for (text, value) in [
            ("3171.3 |", 3171.3),
            ("  1.210588E+01", 12.10588),
            ("6,785  mfu", 6785.0),
            ("1,234,567", 1_234_567.0),
            ("9e+3,", 9000.0),
            ("0.186, global", 0.186),
            ("12,5", 12.0),
            ("1000,123", 1000.0),
            ("-1.0", -1.0),
            (".5s", 0.5),
            ("7.5e", 7.5),
            ("1.0E-04 |", 1e-4),
            ("6.02214076e23", 6.02214076e23),
            ("-1.234567890123456789e-30", -1.234_567_890_123_456_8e-30),
            ("1e-400", 0.0),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        assert_eq!(number("nan.0"), None);
        assert!(parse_leading_number("nan.0").unwrap().0.is_nan());
        assert_eq!(number("-"), None);
        assert_eq!(number("N/A"), None);
        assert_eq!(parse_abbreviated_number("4.71K "), Some(4710.0));
        assert_eq!(parse_abbreviated_number("1.18T"), Some(1.18e12));
    }

    proptest::proptest! {
        #[test]
        fn parse_number_rounds_to_the_nearest_f64(mantissa in 0_u64..=u64::MAX >> 4, decimals in 0_usize..20, power in -40_i32..40) {
            let digits = format!("{mantissa:0>21}");
            let (whole, fraction) = digits.split_at(digits.len() - decimals);
            for text in [format!("{whole}.{fraction}"), format!("{whole}.{fraction}e{power}"), format!("-{mantissa}E{power:+}")] {
                let (value, rest) = parse_leading_number(&text).unwrap();
                let expected: f64 = text.parse().unwrap();
                proptest::prop_assert_eq!((value.to_bits(), rest), (expected.to_bits(), ""), "{}", text);
            }
        }
    }

    #[test]
    fn timestamps_parse_in_several_formats() {
        assert_eq!(unix_seconds("2026/06/10 20:05:40.274"), Some(1_781_121_940.274));
        assert_eq!(unix_seconds("2026-06-10T20:05:40"), Some(1_781_121_940.0));
        assert_eq!(unix_seconds("20260610 20:05:40]"), Some(1_781_121_940.0));
        assert_eq!(unix_seconds("2023-04-18 01:46:59,171"), Some(1_681_782_419.171));
        assert_eq!(unix_seconds("not a date"), None);
    }
}
