//! Splits names and releases of software into words.

/// Splits a text into lower-case words at all other characters, except dots within numbers.
pub(super) fn normalized_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let lower = text.to_lowercase();
    for chunk in lower.split(|c: char| !(c.is_alphanumeric() || c == '.')) {
        let number = chunk.starts_with(|c: char| c.is_ascii_digit()) || is_version(chunk);
        if number {
            words.push(chunk.trim_end_matches('.').to_owned());
        } else {
            words.extend(chunk.split('.').filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    words
}

/// Whether a word looks like a release number: `0.11.0`, `v0.6.3`, `b6918`, `24.07`, `6918`, but not `3` or a hash.
pub(super) fn is_version(word: &str) -> bool {
    let lead = word.strip_prefix(['v', 'b']);
    let rest = lead.unwrap_or(word);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    match rest.as_bytes().get(digits) {
        _ if digits == 0 || digits > 8 => false,
        None => digits > 1 || lead.is_some(),
        Some(b'.') => true,
        Some(_) => false,
    }
}
