//! What the notes of a serving measurement say in words: data sets and numbers beside phrases.

/// Mean prompt and output tokens of a data set that a row names instead of lengths, and its longest output over the
/// mean. From the data sets' own descriptions.
pub(super) fn data_set(model: &str, notes: &str) -> Option<(f64, f64, f64)> {
    let has = |s: &str| notes.contains(s);
    if has("sharegpt_standard") {
        return Some((260.0, 340.0, 1.5));
    }
    if has("sharegpt_edge") {
        return Some((104.0, 210.0, 1.2));
    }
    if has("sharegpt_longctx") {
        return Some((28_600.0, 230.0, 1.1));
    }
    if has("ShareGPT") {
        return Some((215.0, 200.0, 3.0));
    }
    // ML.ENERGY states no prompts, but how many sequences its full servers ran: where memory kept them below their limit,
    // its keys and values over those sequences, less half an answer, leave 525 tokens to a prompt of the chat task (median
    // of 15 rows) and 1,410 to one of code completion (one row). Reasoning leaves none that can be told: as GPQA has them.
    if has("task lm-arena-chat") {
        return Some((525.0, 600.0, 1.5));
    }
    if has("task gpqa") {
        return Some((250.0, 6000.0, 1.5));
    }
    if has("task sourcegraph-fim") {
        return Some((1410.0, 250.0, 1.5));
    }
    if has("MLPerf") {
        // MLPerf Inference data sets: OpenOrca, CNN/DailyMail, LongBench mix, OpenOrca+GSM8K+MBXP, reasoning sets.
        return match model {
            "llama-2-70b" => Some((294.0, 294.0, 1.5)),
            "gpt-j-6b" | "llama-3.1-8b" => Some((780.0, if model == "gpt-j-6b" { 69.0 } else { 128.0 }, 1.2)),
            "llama-3.1-405b" => Some((9400.0, 680.0, 1.5)),
            "mixtral-8x7b" => Some((250.0, 146.0, 2.0)),
            "deepseek-r1" => Some((900.0, 3880.0, 2.0)),
            "gpt-oss-120b" => Some((1000.0, 1250.0, 2.0)),
            _ => None,
        };
    }
    None
}

/// The number in front of a word, as in "1000 prompts sent at once"; where the word stands more than once, the first
/// that a number precedes.
pub(super) fn number_before(notes: &str, word: &str) -> Option<f64> {
    notes.match_indices(word).find_map(|(at, _)| {
        notes.get(..at)?.trim_end().rsplit([' ', '/', ',', '(']).next()?.parse().ok().filter(|x: &f64| x.is_finite())
    })
}

/// The number after a phrase, as in "context depth 16384".
pub(super) fn number_after(notes: &str, phrase: &str) -> Option<f64> {
    let rest = notes.get(notes.find(phrase)? + phrase.len()..)?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}
