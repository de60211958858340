//! Masks secrets (tokens, keys and passwords) in everything that is reported or stored.

use std::sync::LazyLock;

use atlas_core::sort;
use serde_json::Value;

/// Replacement for a secret.
pub const MASK: &str = "***";
const PREFIXES: &[&str] =
    &["hf_", "sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "ASIA", "nvapi-", "eyJ"];
/// Characters that end a word.
const ENDS: [char; 10] = [' ', '\t', '\n', ',', ';', '"', '\'', '{', '}', '\\'];
/// Beginning of `-----BEGIN … PRIVATE KEY-----`, and of the line that ends the key.
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";

/// Values of environment variables whose names denote secrets, longest first.
static ENVIRONMENT: LazyLock<Vec<String>> = LazyLock::new(|| {
    let secret = |(name, value): (String, String)| (names_secret(&name) && value.len() >= 8).then_some(value);
    let mut values: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter_map(secret)
        .collect();
    sort::by_key(&mut values, |value| std::cmp::Reverse(value.len()));
    values
});

/// Masks secrets in a text: words that look like tokens, values after names such as `api_key` or `--password`,
/// passwords in URLs, and private keys.
#[must_use]
pub fn mask(text: &str) -> String {
    if !PREFIXES.iter().any(|prefix| text.contains(prefix))
        && !names_secret(text)
        && !text.contains("://")
        && !text.contains(KEY_BEGINS)
        && !text.to_ascii_lowercase().contains("bearer ")
    {
        return text.to_owned();
    }
    let text = without_private_keys(text);
    let mut out = String::with_capacity(text.len());
    // Whether the next word is the value of a name that denotes a secret.
    let mut secret_next = false;
    let mut rest = text.as_str();
    while !rest.is_empty() {
        if secret_next && let Some((quote, value, behind)) = quoted(rest) {
            secret_next = false;
            // The value of `"Authorization"` may consist of two words.
            let value = if is_secret(value) { MASK.to_owned() } else { value.to_owned() };
            out.push_str(&format!("{quote}{value}{quote}"));
            rest = behind;
            continue;
        }
        let end = rest.find(ENDS).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        out.push_str(&mask_word(word, secret_next));
        let end = behind.chars().next();
        // A quote inside a quoted text is escaped with a backslash.
        let escaped = behind.starts_with("\\\"") || behind.starts_with("\\'");
        let (tail, behind) = behind.split_at(if escaped { 2 } else { end.map_or(0, char::len_utf8) });
        if matches!(word, "" | ":" | "=" | ":=") {
            secret_next &= !matches!(end, Some('\n' | ';' | ','));
        } else {
            let option = word.starts_with('-') && !word.contains('=');
            let assigned = word.ends_with([':', '=']) || matches!(end, Some('"' | '\'' | '\\'));
            let broken = matches!(end, Some('\n' | ';'));
            let name = word.trim_end_matches([':', '=']);
            let names = names_secret(name) && !name.contains(['=', ':']);
            secret_next = name.eq_ignore_ascii_case("bearer") || (option || assigned) && names && !broken;
        }
        // A quote that may begin the value is processed together with the quoted text.
        if secret_next
            && word.ends_with(['=', ':'])
            && rest.get(word.len()..).is_some_and(|rest| quoted(rest).is_some())
        {
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        out.push_str(tail);
        rest = behind;
    }
    out
}

/// Splits a quoted text from the beginning of `text`: its quote, its content, and the rest.
fn quoted(text: &str) -> Option<(&str, &str, &str)> {
    let quote = ["\\\"", "\\'", "\"", "'"].into_iter().find(|quote| text.starts_with(quote))?;
    let (inside, behind) = text.get(quote.len()..)?.split_once(quote)?;
    (!inside.contains('\n')).then_some((quote, inside, behind))
}

/// Like [`mask`], for a JSON document. Values of keys that denote secrets are replaced as a whole.
#[must_use]
pub fn mask_document(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(mask(text)),
        Value::Array(items) => Value::Array(masked_words(items)),
        Value::Object(map) => Value::Object(sort::collect_unsorted(map.iter().map(|(key, value)| {
            let hidden = names_secret(key) && matches!(value, Value::String(text) if is_secret(text));
            (mask(key), if hidden { MASK.into() } else { mask_document(value) })
        }))),
        other => other.clone(),
    }
}

/// Masks the items of a list, in which `--token` may be followed by its value.
fn masked_words(items: &[Value]) -> Vec<Value> {
    let mut secret_next = false;
    let words = items.iter().map(|item| {
        let hidden = std::mem::take(&mut secret_next);
        match item {
            Value::String(text) if hidden && !text.starts_with('-') && is_secret(text) => MASK.into(),
            Value::String(text) => {
                secret_next = text.starts_with('-') && names_secret(text) && !text.contains(['=', ' ']);
                Value::String(mask(text))
            }
            other => mask_document(other),
        }
    });
    words.collect()
}

/// Masks the words of a command line, including the values of environment variables whose names denote secrets.
#[must_use]
pub fn mask_words(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let words: Vec<Value> = words.into_iter().map(|word| Value::String(mask_known(&word))).collect();
    let text = |word: Value| word.as_str().map(str::to_owned);
    masked_words(&words).into_iter().filter_map(text).collect()
}

/// Masks the secrets in this program's environment.
fn mask_known(text: &str) -> String {
    ENVIRONMENT.iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
}

/// Masks the bodies of private keys. A key without an end line is masked up to the end of the text.
fn without_private_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, key)) = rest.split_once(KEY_BEGINS) {
        out.push_str(before);
        let (head, behind) = key.split_once("-----").unwrap_or((key, ""));
        out.push_str(KEY_BEGINS);
        if !head.contains("PRIVATE KEY") {
            rest = key;
            continue;
        }
        out.push_str("PRIVATE KEY-----");
        out.push_str(MASK);
        rest = behind.split_once(KEY_ENDS).map_or("", |(_, end)| end);
        if !rest.is_empty() {
            out.push_str(KEY_ENDS);
        }
    }
    out.push_str(rest);
    out
}

/// Whether a name denotes a secret: `token`, `password`, `api_key`.
#[must_use]
pub fn names_secret(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    let words: Vec<&str> = low.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let alone = ["token", "secret", "password", "passwd", "passphrase", "pwd", "apikey", "credential", "credentials"];
    // `PWD` alone is the shell's working directory.
    words.iter().any(|word| alone.contains(word) && (*word != "pwd" || words.len() > 1))
        || words
            .windows(2)
            .any(|pair| matches!(pair, ["api" | "access" | "private" | "auth" | "secret" | "ssh", "key"]))
}

/// Whether a value can be a secret: it is not a number, a reference to a variable, or a boolean.
fn is_secret(value: &str) -> bool {
    let plain = value.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '$');
    let switch = ["true", "false", "null", "none", "yes", "no"].iter().any(|word| plain.eq_ignore_ascii_case(word));
    !plain.is_empty() && !plain.starts_with('$') && plain.parse::<f64>().is_err() && !switch
}

fn mask_word(word: &str, secret: bool) -> String {
    if secret && !word.starts_with('-') && is_secret(word) && !word.eq_ignore_ascii_case("bearer") {
        return MASK.to_owned();
    }
    if let Some((name, value)) = word.split_once(['=', ':'])
        && names_secret(&format!("{name}="))
        && !value.starts_with("//")
        && is_secret(value)
    {
        let sign = word.get(name.len()..=name.len()).unwrap_or("=");
        return format!("{name}{sign}{MASK}");
    }
    for prefix in PREFIXES {
        if let Some(at) = word.find(prefix) {
            let rest = word.get(at + prefix.len()..).unwrap_or("");
            let run = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')).count();
            let before = word.get(..at).unwrap_or("");
            if run >= 16 && !before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
                return format!("{before}{MASK}");
            }
        }
    }
    // A URL of the form `user:password@host`.
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((credentials, host)) = rest.split_once('@')
        && credentials.contains(':')
        && !credentials.contains('/')
    {
        return format!("{scheme}://{MASK}@{host}");
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_masking_is_idempotent() {
        for (text, masked) in [
            ("hf_AbCdEfGhIjKlMnOpQr", "***"),
            ("--api-key abc --port 80", "--api-key *** --port 80"),
            ("WANDB_API_KEY=0123abcd", "WANDB_API_KEY=***"),
            ("export WANDB_API_KEY=\"0123abcd\"\nsrun x", "export WANDB_API_KEY=\"***\"\nsrun x"),
            ("PASSWORD='a b'; next", "PASSWORD='***'; next"),
            (r#"{\"token\": \"abc def\"}"#, r#"{\"token\": \"***\"}"#),
            ("https://me:pw@host/x", "https://***@host/x"),
            ("{\"api_key\": \"abcdef\", \"port\": 80}", "{\"api_key\": \"***\", \"port\": 80}"),
            ("api_key: abcdef\nmodel: x", "api_key: ***\nmodel: x"),
            ("-H 'Authorization: Bearer abc.def-ghi'", "-H 'Authorization: Bearer ***'"),
            ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=***"),
            (
                "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nbnNz\n-----END OPENSSH PRIVATE KEY-----\nz",
                "a\n-----BEGIN PRIVATE KEY-----***-----END OPENSSH PRIVATE KEY-----\nz",
            ),
        ] {
            assert_eq!(mask(text), masked, "{text}");
            assert_eq!(mask(&mask(text)), masked, "masking again changes nothing: {text}");
        }
    }

    #[test]
    fn text_without_secrets_is_not_masked() {
        for text in [
            "--max-num-tokens 8192",
            "org/base-7B",
            "$HF_TOKEN",
            "--api-key $KEY",
            "02:00:00",
            "max_tokens=100",
            "gs://bucket/a:b",
            "cd \"$PWD\" && PWD=/a/b",
            "--trust-remote-code --token 8192",
            "use_auth_token: true",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn documents_and_words_are_masked_by_key_and_by_option() {
        let document = serde_json::json!({
            "env": {"HF_TOKEN": "abc", "OMP_NUM_THREADS": "8"},
            "argv": ["serve", "--api-key", "abc", "--port", "80"],
            "max_token": 3,
        });
        let expected = serde_json::json!({
            "env": {"HF_TOKEN": "***", "OMP_NUM_THREADS": "8"},
            "argv": ["serve", "--api-key", "***", "--port", "80"],
            "max_token": 3,
        });
        assert_eq!(mask_document(&document), expected);
        let words = ["atlas", "--on-alarm", "curl -H 'token: abc'"].map(str::to_owned);
        assert_eq!(mask_words(words), ["atlas", "--on-alarm", "curl -H 'token: ***'"]);
    }
}
