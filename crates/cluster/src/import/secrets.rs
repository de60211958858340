//! Secrets in what is reported: tokens and keys are replaced.

/// What stands in place of a secret.
const MASK: &str = "***";
const PREFIXES: &[&str] = &["hf_", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "AKIA", "nvapi-", "eyJ"];

/// The text with tokens, keys and passwords replaced.
pub(crate) fn mask(s: &str) -> String {
    if !PREFIXES.iter().any(|p| s.contains(p)) && !has_name(s) && !s.contains("://") {
        return s.to_owned();
    }
    let mut out = String::with_capacity(s.len());
    let mut secret_next = false;
    for piece in s.split_inclusive([' ', '\t', '\n', ',', ';', '"', '\'']) {
        let word = piece.trim_end_matches([' ', '\t', '\n', ',', ';', '"', '\'']);
        let tail = piece.get(word.len()..).unwrap_or("");
        out.push_str(&mask_word(word, secret_next));
        out.push_str(tail);
        if !word.is_empty() {
            secret_next = word.starts_with('-') && has_name(word) && !word.contains('=');
        }
    }
    out
}

/// Whether a word names a secret: `token`, `password`, `api_key`.
fn has_name(s: &str) -> bool {
    let low = s.to_ascii_lowercase();
    let words: Vec<&str> = low.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let alone = ["token", "secret", "password", "passwd", "apikey", "credentials"];
    words.iter().any(|w| alone.contains(w))
        || words.windows(2).any(|p| matches!(p, ["api" | "access" | "private" | "auth" | "secret", "key"]))
}

fn mask_word(w: &str, secret: bool) -> String {
    if secret && !w.starts_with('-') && !w.starts_with('$') && w.parse::<f64>().is_err() {
        return MASK.to_owned();
    }
    if let Some((k, v)) = w.split_once(['=', ':'])
        && has_name(&format!("{k}="))
        && !v.is_empty()
        && !v.starts_with('$')
        && !v.starts_with("//")
        && v.parse::<f64>().is_err()
    {
        let sep = w.get(k.len()..=k.len()).unwrap_or("=");
        return format!("{k}{sep}{MASK}");
    }
    for p in PREFIXES {
        if let Some(i) = w.find(p) {
            let rest = w.get(i + p.len()..).unwrap_or("");
            let run = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')).count();
            let boundary = i == 0 || w.get(..i).is_some_and(|h| !h.ends_with(|c: char| c.is_ascii_alphanumeric()));
            if run >= 16 && boundary {
                return format!("{}{MASK}", w.get(..i).unwrap_or(""));
            }
        }
    }
    // user:password@host
    if let Some((scheme, rest)) = w.split_once("://")
        && let Some((creds, host)) = rest.split_once('@')
        && creds.contains(':')
        && !creds.contains('/')
    {
        return format!("{scheme}://{MASK}@{host}");
    }
    w.to_owned()
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn tokens_keys_and_passwords_are_replaced() {
        for (text, masked) in [
            ("hf_AbCdEfGhIjKlMnOpQr", "***"),
            ("--api-key abc --port 80", "--api-key *** --port 80"),
            ("WANDB_API_KEY=0123abcd", "WANDB_API_KEY=***"),
            ("https://me:pw@host/x", "https://***@host/x"),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "--max-num-tokens 8192",
            "org/base-7B",
            "$HF_TOKEN",
            "--api-key $KEY",
            "02:00:00",
            "max_tokens=100",
            "gs://bucket/a:b",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
