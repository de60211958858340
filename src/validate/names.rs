//! Model names as measurement files spell them, resolved to catalog ids.

/// Catalog id that a measurement's model name most likely means; `None` where no rule applies.
pub fn catalog_id(name: &str) -> String {
    let mut n = name.trim().to_ascii_lowercase();
    // Reduced-depth proxies keep their family's shape; the row's own layer count overrides it.
    if let Some(at) = n.find("-proxy-") {
        n.truncate(at);
    }
    if let Some((head, tail)) = n.rsplit_once('-') {
        let depth = tail.strip_suffix('l').is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
        if depth {
            n = head.to_string();
        }
    }
    for (from, to) in [
        ("llama2-", "llama-2-"),
        ("llama3.1-", "llama-3.1-"),
        ("llama3.2-", "llama-3.2-"),
        ("llama3.3-", "llama-3.3-"),
        ("llama3-3b", "llama-3.2-3b"),
        ("llama3-405b", "llama-3.1-405b"),
        ("llama3-", "llama-3-"),
        ("llama4-", "llama-4-"),
        ("llama-7b", "llama-2-7b"),
        ("llama-13b", "llama-2-13b"),
        ("llama-like-7b", "llama-2-7b"),
        ("llama-like-70b", "llama-2-70b"),
        ("gemma2-", "gemma-2-"),
        ("gemma3-", "gemma-3-"),
        ("deepseekv2", "deepseek-v2"),
        ("deepseekv3", "deepseek-v3"),
        ("deepseek-v2-60b-cut", "deepseek-v2"),
        ("nemotron4-", "nemotron-4-"),
        ("smollm3-3b", "smollm3-3b"),
    ] {
        if let Some(rest) = n.strip_prefix(from) {
            return format!("{to}{rest}");
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::catalog_id;

    #[test]
    fn spellings_find_their_family() {
        assert_eq!(catalog_id("llama3.1-405b-proxy-21L"), "llama-3.1-405b");
        assert_eq!(catalog_id("deepseek-v3-32L"), "deepseek-v3");
        assert_eq!(catalog_id("llama2-70b"), "llama-2-70b");
        assert_eq!(catalog_id("qwen3-30b-a3b"), "qwen3-30b-a3b");
    }
}
