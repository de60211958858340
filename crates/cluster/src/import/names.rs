//! Names of precisions, accelerators and models in their various spellings.

/// Normalizes the name of a compute precision. Returns `None` for `auto` and unknown names.
pub(crate) fn precision(s: &str) -> Option<&'static str> {
    let t = s.trim().to_ascii_lowercase().replace("torch.", "");
    Some(match t.as_str() {
        "bf16" | "bfloat16" | "bf16-mixed" | "bf16-true" | "amp_bf16" | "bf16_mixed" | "bf16sr" => "bf16",
        "fp16" | "float16" | "half" | "16" | "16-mixed" | "16-true" | "amp_fp16" | "fp16-mixed" => "fp16",
        "fp32" | "float32" | "float" | "32" | "32-true" | "tf32" => "fp32",
        "mxfp8" => "mxfp8",
        "nvfp4" | "fp4" | "mxfp4" => "fp4",
        "mixed_precision" | "mixed_precisionsr" => "mixed",
        _ if t.starts_with("fp8") || t.starts_with("float8") || t == "amp_fp8" || t == "nanoo_fp8" => "fp8",
        _ => return None,
    })
}

/// Normalizes the name of a KV cache precision.
pub(crate) fn kv_precision(s: &str) -> Option<String> {
    let t = s.trim().to_ascii_lowercase();
    match t.as_str() {
        "" | "auto" | "none" | "null" => None,
        _ if t.starts_with("fp8") || t.starts_with("float8") => Some("fp8".to_owned()),
        "bfloat16" | "bf16" => Some("bf16".to_owned()),
        "float16" | "half" | "fp16" | "f16" => Some("fp16".to_owned()),
        "nvfp4" | "fp4" | "fp4_e2m1" => Some("fp4".to_owned()),
        _ => Some(t),
    }
}

/// Weight precision in the name of a quantization scheme or a model.
pub(crate) fn weights(s: &str) -> Option<String> {
    let t = s.to_ascii_lowercase();
    if let Some(g) = gguf(&t) {
        return Some(g);
    }
    let has = |w: &str| words(&t).any(|x| x == w);
    let table: &[(&[&str], &str)] = &[
        (&["nvfp4", "mxfp4", "fp4", "w4a4"], "fp4"),
        (&["fp8", "w8a8fp8", "fbgemm", "fp8dynamic"], "fp8"),
        (&["awq", "gptq", "int4", "w4a16", "4bit", "bnb4", "q4f16", "nf4"], "int4"),
        (&["int8", "w8a8", "w8a16", "8bit", "smoothquant", "eetq"], "int8"),
    ];
    table.iter().find(|(names, _)| names.iter().any(|n| has(n))).map(|(_, p)| (*p).to_owned())
}

/// Quantization in the name of a GGUF file or an ollama tag: `q4_k_m`, `q8_0`.
pub(crate) fn gguf(s: &str) -> Option<String> {
    let low = s.to_ascii_lowercase();
    let parts: Vec<&str> = low.split(['-', '.', ':', '/', ' ']).collect();
    for p in parts.iter().rev() {
        let p = p.trim_end_matches("_gguf");
        // Short names spell it `q5km`.
        if let Some(rest) = p.strip_prefix('q').filter(|r| r.len() == 3 && r.ends_with(['m', 's', 'l'])) {
            let mut c = rest.chars();
            if let (Some(d), Some('k'), Some(m)) = (c.next(), c.next(), c.next())
                && d.is_ascii_digit()
            {
                return Some(format!("q{d}_k_{m}"));
            }
        }
        let cut = p.rfind("_q").or(p.rfind("_iq")).map_or(p, |i| p.get(i + 1..).unwrap_or(p));
        let body = cut.strip_prefix("iq").or(cut.strip_prefix('q'));
        if let Some(body) = body {
            let mut pieces = body.split('_');
            let bits = pieces.next().is_some_and(|b| b.len() == 1 && b.starts_with(|c: char| c.is_ascii_digit()));
            let kind = pieces.next().is_some_and(|k| matches!(k, "0" | "1" | "k" | "xs" | "xxs" | "s" | "m" | "nl"));
            if bits && kind {
                return Some(cut.to_owned());
            }
        }
    }
    None
}

/// Alphanumeric words of a text.
fn words(s: &str) -> impl Iterator<Item = &str> {
    s.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty())
}

/// Words that denote accelerators, and the normalized names.
const ACCELERATORS: &[(&str, &str)] = &[
    ("gb300", "GB300"),
    ("gb200", "GB200"),
    ("b300", "B300"),
    ("b200", "B200"),
    ("b100", "B100"),
    ("gh200", "GH200"),
    ("h200", "H200"),
    ("h100", "H100"),
    ("h800", "H800"),
    ("h20", "H20"),
    ("a100", "A100"),
    ("a800", "A800"),
    ("a40", "A40"),
    ("a30", "A30"),
    ("a10g", "A10G"),
    ("a10", "A10"),
    ("a6000", "A6000"),
    ("l40s", "L40S"),
    ("l40", "L40"),
    ("l4", "L4"),
    ("v100", "V100"),
    ("t4", "T4"),
    ("rtx4090", "RTX 4090"),
    ("4090", "RTX 4090"),
    ("3090", "RTX 3090"),
    ("5090", "RTX 5090"),
    ("mi250x", "MI250X"),
    ("mi250", "MI250"),
    ("mi210", "MI210"),
    ("mi300x", "MI300X"),
    ("mi300a", "MI300A"),
    ("mi300", "MI300X"),
    ("mi308x", "MI308X"),
    ("mi325x", "MI325X"),
    ("mi350x", "MI350X"),
    ("mi355x", "MI355X"),
    ("mi430x", "MI430X"),
    ("gaudi3", "Gaudi 3"),
    ("gaudi2", "Gaudi 2"),
    ("gaudi", "Gaudi"),
    ("habana", "Gaudi"),
    ("hpu", "Gaudi"),
    ("trn1", "trn1"),
    ("trn1n", "trn1n"),
    ("trn2", "trn2"),
    ("trn3", "trn3"),
    ("inf2", "inf2"),
    ("v4", "TPU v4"),
    ("v5e", "TPU v5e"),
    ("v5p", "TPU v5p"),
    ("v6e", "TPU v6e"),
    ("tpu7x", "TPU7x"),
    ("trillium", "TPU v6e"),
    ("hopper", "Hopper"),
    ("blackwell", "Blackwell"),
    ("pvc", "Max 1550"),
];

/// The accelerator that a word denotes. A count after it (`GB300x4`, `h100:8`) is ignored.
pub(crate) fn accelerator_word(word: &str) -> Option<&'static str> {
    let low = word.to_ascii_lowercase();
    // Vendors' systems are named after their accelerators: `DGXH100`.
    let w = low.strip_prefix("dgx").or(low.strip_prefix("hgx")).filter(|w| w.len() > 1).unwrap_or(&low);
    let hit = |w: &str| ACCELERATORS.iter().find(|(k, _)| *k == w).map(|(_, n)| *n);
    if let Some(n) = hit(w) {
        return Some(n);
    }
    let (head, tail) = w.rsplit_once('x')?;
    (!tail.is_empty() && tail.chars().all(|c| c.is_ascii_digit())).then(|| hit(head))?
}

/// The accelerator named in a path or an identifier. Words that begin with a digit are ignored, and so is `v4`, which
/// may be a version.
pub(crate) fn accelerator_in(s: &str) -> Option<&'static str> {
    let low = s.to_ascii_lowercase();
    words(&low)
        .filter_map(|w| accelerator_word(w).map(|n| (w, n)))
        .find(|(w, _)| !matches!(*w, "v4") && !w.starts_with(|c: char| c.is_ascii_digit()))
        .map(|(_, n)| n)
}

/// Accelerators that are sold with different memory sizes.
const MEMORY_SIZES: &[&str] = &["V100", "A100", "A800", "H100", "H800", "GH200", "H20"];

/// The accelerator in a scheduler feature, a node label or an option, with the memory size if it is stated.
pub(crate) fn accelerator_label(s: &str) -> Option<String> {
    let name = accelerator_in(s)?;
    let low = s.to_ascii_lowercase();
    let memory = words(&low).filter(|_| MEMORY_SIZES.contains(&name)).find_map(|w| {
        let n = w.strip_suffix("gb").or(w.strip_suffix('g')).unwrap_or("");
        n.parse::<u32>().ok().filter(|n| (8..=300).contains(n))
    });
    Some(match memory {
        Some(gb) => format!("{name} {gb}GB"),
        None => name.to_owned(),
    })
}

/// Prefixes of words that denote a model family.
const FAMILIES: &[&str] = &[
    "llama",
    "gpt",
    "mixtral",
    "mistral",
    "qwen",
    "deepseek",
    "bloom",
    "falcon",
    "gemma",
    "opt",
    "phi",
    "t5",
    "bert",
    "nemotron",
    "grok",
    "glm",
    "kimi",
    "olmo",
    "pythia",
    "mpt",
    "palm",
    "stories",
    "minimax",
    "yi",
    "baichuan",
    "internlm",
    "ernie",
    "granite",
    "dbrx",
    "jamba",
    "starcoder",
    "codellama",
    "vicuna",
    "zephyr",
    "hunyuan",
    "exaone",
    "apertus",
    "mathstral",
    "ministral",
    "codestral",
    "smollm",
];

/// Whether a name denotes a model: it begins with a family, or contains a size.
pub(crate) fn is_model(name: &str) -> bool {
    let low = name.to_ascii_lowercase();
    FAMILIES.iter().any(|family| low.starts_with(family)) || words(&low).any(is_size)
}

/// Whether a word is a model size such as `70b`, `8x7B`, `1.5b`, `345m`.
pub(crate) fn is_size(w: &str) -> bool {
    let low = w.to_ascii_lowercase();
    let Some(n) = low.strip_suffix(['b', 'm', 't']) else { return false };
    !n.is_empty()
        && n.starts_with(|c: char| c.is_ascii_digit())
        && n.split('x').all(|p| !p.is_empty() && p.parse::<f64>().is_ok_and(|v| v < 2000.0))
}

/// The part of a file or job name that denotes a model: from a family to its size.
pub(crate) fn model_in(name: &str) -> Option<String> {
    let stem = name.rsplit('/').next()?;
    let cuts: Vec<usize> = std::iter::once(0)
        .chain(stem.char_indices().filter(|(_, c)| matches!(c, '-' | '_' | ' ')).map(|(i, _)| i + 1))
        .collect();
    for &start in &cuts {
        let rest = stem.get(start..)?;
        let low = rest.to_ascii_lowercase();
        if !FAMILIES.iter().any(|f| low.starts_with(f)) {
            continue;
        }
        let mut end = 0;
        for piece in rest.split_inclusive(['-', '_', ' ']) {
            let word = piece.trim_end_matches(['-', '_', ' ']);
            end += piece.len();
            // An extension such as `.yaml` ends the name.
            let word = word.split(".y").next().unwrap_or(word).split(".sh").next().unwrap_or(word);
            let glued = low.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            if is_size(word) || (end == piece.len() && is_size(glued.split(['-', '_', ' ', '.']).next().unwrap_or("")))
            {
                let cut = start + end - (piece.len() - word.len());
                let model = stem.get(start..cut)?;
                return (model.len() < 60).then(|| model.to_owned());
            }
            if end > 40 {
                break;
            }
        }
    }
    None
}

/// Strips the framework and the kind of run from a job name.
pub(crate) fn without_framework(name: &str) -> &str {
    const FRAMEWORK_WORDS: &[&str] = &[
        "megatron",
        "lm",
        "nemo",
        "fsdp",
        "deepspeed",
        "ds",
        "train",
        "training",
        "pretrain",
        "pretraining",
        "finetune",
        "sft",
        "ft",
        "run",
        "job",
        "slurm",
    ];
    let is_around = |word: &str| FRAMEWORK_WORDS.iter().any(|w| word.eq_ignore_ascii_case(w));
    // Some clusters require job names of the form `account-project:name`.
    let mut rest = name.rsplit(':').next().unwrap_or(name);
    while let Some((_, tail)) = rest.split_once(['-', '_']).filter(|(head, _)| is_around(head)) {
        rest = tail;
    }
    while let Some((head, _)) = rest.rsplit_once(['-', '_']).filter(|(_, tail)| is_around(tail)) {
        rest = head;
    }
    rest
}

/// Identity of a model: a Hub id unchanged, or the last component of a path. A path is kept whole if its last component
/// is generic, such as `weights`. Also returns the path, if it is one.
pub(crate) fn model_id(s: &str) -> (String, Option<String>) {
    let t = s.trim().trim_end_matches('/');
    let t = t.strip_prefix("hf://").unwrap_or(t);
    let path = t.starts_with('/')
        || t.starts_with("./")
        || t.starts_with("../")
        || t.starts_with("${")
        || t.contains("://")
        || t.starts_with('~')
        || t.matches('/').count() > 1;
    if !path {
        return (t.to_owned(), None);
    }
    let base = t.rsplit('/').next().unwrap_or(t);
    // The path below a checkpoint directory is organization and model.
    if let Some(rest) = t.trim_start_matches("./").strip_prefix("checkpoints/")
        && rest.matches('/').count() == 1
    {
        return (rest.to_owned(), Some(t.to_owned()));
    }
    let low = base.to_ascii_lowercase();
    let dull = [
        "fp4",
        "fp8",
        "int4",
        "int8",
        "awq",
        "gptq",
        "bf16",
        "fp16",
        "quantized",
        "snapshots",
        "checkpoint",
        "weights",
        "model",
    ];
    if dull.iter().any(|d| low.starts_with(d)) || low.is_empty() {
        return (t.to_owned(), Some(t.to_owned()));
    }
    (base.to_owned(), Some(t.to_owned()))
}

/// Whether a value is a placeholder that the user must replace.
pub(crate) fn is_placeholder(s: &str) -> bool {
    let low = s.trim().to_ascii_lowercase();
    low.starts_with('<')
        || low.starts_with("your")
        || ["default_model", "/path/to", "path/to", "/your", "placeholder", "changeme", "fill_me", "todo", "xxx"]
            .iter()
            .any(|w| low.contains(w))
            && !low.ends_with(".gguf")
}

/// Normalizes the name of an optimizer.
pub(crate) fn optimizer(s: &str) -> String {
    let base = s.rsplit(['.', ':']).next().unwrap_or(s);
    base.to_ascii_lowercase()
}

/// Converts a flag or key to snake case: `--max-model-len`, `maxModelLen` and `MAX_MODEL_LEN` become equal.
pub(crate) fn snake(key: &str) -> String {
    let t = key.trim_start_matches('-');
    let all_upper = !t.chars().any(|c| c.is_ascii_lowercase());
    let mut out = String::with_capacity(t.len() + 4);
    let mut before_lower = false;
    for c in t.chars() {
        if c == '-' {
            out.push('_');
            before_lower = false;
        } else if c.is_ascii_uppercase() {
            if before_lower && !all_upper {
                out.push('_');
            }
            out.push(c.to_ascii_lowercase());
            before_lower = false;
        } else {
            before_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_spellings_are_normalized_to_snake_case() {
        for k in ["--max-model-len", "maxModelLen", "MAX_MODEL_LEN", "max_model_len"] {
            assert_eq!(snake(k), "max_model_len");
        }
        assert_eq!(snake("gpuMemoryUtilization"), "gpu_memory_utilization");
    }

    #[test]
    fn quantizations_are_found_in_file_names() {
        for (name, q) in [
            ("a-7b-chat.ggmlv3.q5_K_M.bin", Some("q5_k_m")),
            ("Base-32B-Q4_K_M.gguf", Some("q4_k_m")),
            ("base:8b-instruct-q6_K", Some("q6_k")),
            ("org/Base-GGUF:Q4_K_XL", Some("q4_k_xl")),
            ("base-8b-q5km", Some("q5_k_m")),
            ("Qwen2.5-7B", None),
        ] {
            assert_eq!(gguf(name).as_deref(), q, "{name}");
        }
        assert_eq!(weights("org/Base-70B-FP8-dynamic").as_deref(), Some("fp8"));
        assert_eq!(weights("org/Base-70B-AWQ").as_deref(), Some("int4"));
        assert_eq!(weights("org/Base-70B"), None);
    }

    #[test]
    fn model_and_accelerator_are_extracted_from_file_names() {
        assert_eq!(model_in("train_llama3_8b_h100.sh").as_deref(), Some("llama3_8b"));
        assert_eq!(model_in("submit-llama3-70b.sh").as_deref(), Some("llama3-70b"));
        assert_eq!(model_in("run_gpt2_base.sh"), None);
        assert_eq!(accelerator_in("config_GB300x4_x.yml"), Some("GB300"));
        assert_eq!(accelerator_label("nvidia-h100-80gb").as_deref(), Some("H100 80GB"));
        assert_eq!(accelerator_in("submit_all.sh"), None);
    }

    #[test]
    fn model_id_drops_leading_path_components() {
        assert_eq!(model_id("org/base-7B").0, "org/base-7B");
        assert_eq!(model_id("/srv/models/base-7B/").0, "base-7B");
        assert_eq!(model_id("checkpoints/org/base-7B").0, "org/base-7B");
        assert_eq!(model_id("hf://org/base-7B").0, "org/base-7B");
    }
}
