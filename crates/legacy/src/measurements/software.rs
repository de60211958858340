//! Resolution of software names, versions and dates to `family@release`.

use atlas_catalog::software::{Caveat, Day, Software, SoftwareKind};

use super::record::Record;

/// Use of the software.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SoftwareUse {
    /// A training framework.
    Training,
    /// A serving engine.
    Serving,
}

impl SoftwareUse {
    fn kind(self) -> SoftwareKind {
        if self == SoftwareUse::Training { SoftwareKind::Training } else { SoftwareKind::Serving }
    }

    fn generic(self) -> &'static str {
        if self == SoftwareUse::Training { "generic-training" } else { "generic-serving" }
    }
}

/// Finds the software for a name. Some names denote both a training framework and an engine; `side` selects one.
fn named(side: SoftwareUse, name: &str) -> Option<Software> {
    // Options may follow the name, as in `vLLM + FlashInfer`.
    let first = name.split(['+', ',', ';']).next().unwrap_or(name);
    [name, first].into_iter().find_map(|text| Software::parse_for(text, side.kind()).ok())
}

/// Finds a release number in a text: the first word of digits and dots, such as `0.6.0` in `v0.6.0-cu130`.
fn release_in(text: &str) -> Option<String> {
    let separators = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '@' | '/' | ':' | '+' | '=' | '-');
    text.split(separators).find_map(|word| {
        let word = word.strip_prefix(['v', 'V']).unwrap_or(word);
        let mut parts = Vec::new();
        for part in word.split('.') {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            if digits.is_empty() {
                break;
            }
            let whole = digits.len() == part.len();
            parts.push(digits);
            if !whole {
                break;
            }
        }
        (parts.len() >= 2).then(|| parts.join("."))
    })
}

/// Fills `software` from the name, the version and the date of a row, and returns the family's id.
pub(super) fn fill(record: &mut Record, side: SoftwareUse, name: &str, version: &str, date: &str) -> String {
    let Some(found) = named(side, name) else {
        record.assume("software", side.generic(), format!("\"{name}\" is not a known software"));
        record.problem("software", name, "the name of a known framework or engine");
        return side.generic().to_owned();
    };
    let id = found.family.id.clone();
    if id == side.generic() {
        record.assume("software", id.as_str(), format!("\"{name}\" has no profile"));
        return id;
    }
    // The release of the version column takes precedence over one in the name.
    let build = version.strip_prefix("build ").and_then(|rest| rest.split(' ').next()).map(|n| format!("b{n}"));
    let requested = build.or_else(|| release_in(version));
    let stated = requested.as_ref().and_then(|requested| Software::parse(&format!("{id}@{requested}")).ok());
    if let (Some(stated), Some(requested)) = (&stated, &requested) {
        record.convert("software", spelled(stated, requested), format!("\"{name}\", version \"{version}\""));
        return id;
    }
    match &found.caveat {
        None if found.release.is_some() => record.convert("software", found.spec(), format!("\"{name}\"")),
        Some(Caveat::Earlier { requested, .. }) => {
            record.convert("software", format!("{id}@{requested}"), format!("\"{name}\""));
        }
        Some(Caveat::OfDate(month)) => {
            record.assume("software", found.spec(), format!("\"{name}\", newest release of {month}"));
        }
        _ => return by_name(record, &found, name, version, date),
    }
    id
}

/// Fills `software` with the release number in the name, by default with the newest release at the row's date.
fn by_name(record: &mut Record, found: &Software, name: &str, version: &str, date: &str) -> String {
    let id = &found.family.id;
    // The name may contain the version of a library instead, as in `Megatron-LM (TE 2.11)`.
    let library = ["(TE ", "(PyTorch ", "(ROCm ", "(CUDA "].iter().any(|library| name.contains(library));
    let requested = release_in(name).filter(|_| !library);
    let stated = requested.as_ref().and_then(|requested| Software::parse(&format!("{id}@{requested}")).ok());
    match (stated, requested) {
        (Some(stated), Some(requested)) => {
            record.convert("software", spelled(&stated, &requested), format!("\"{name}\""));
            id.clone()
        }
        _ => dated(record, found, name, version, date),
    }
}

/// Returns `family@release` in the catalog's spelling if the catalog has the release, otherwise as stated.
fn spelled(found: &Software, requested: &str) -> String {
    match found.caveat {
        None => found.spec(),
        _ => format!("{}@{requested}", found.family.id),
    }
}

/// Fills `software` with the newest release at the row's date.
fn dated(record: &mut Record, found: &Software, name: &str, version: &str, date: &str) -> String {
    let id = found.family.id.clone();
    let Some(day) = Day::parse(date) else {
        // The family alone stands for its newest release.
        record.convert("software", id.as_str(), format!("\"{name}\""));
        return id;
    };
    let Some(at) = Software::released_by(&id, day) else { return id };
    let what =
        if version.is_empty() { "release not stated".to_owned() } else { format!("unknown release \"{version}\"") };
    match at.release().and_then(|release| release.date) {
        Some(released) if released.may_precede_or_equal(day) => {
            record.assume("software", at.spec(), format!("{what}, newest release at {date}"));
        }
        Some(_) => record.assume("software", at.spec(), format!("{what}, oldest release, row of {date}")),
        None => record.convert("software", at.spec(), format!("\"{name}\"")),
    }
    at.family.id.clone()
}

/// Whether a family uses static batching: it finishes a batch before it admits further requests.
pub(super) fn batches_statically(family: &str) -> bool {
    !matches!(
        family,
        "vllm"
            | "vllm-ascend"
            | "vllm-neuron"
            | "vllm-tpu"
            | "vllm-gaudi"
            | "sglang"
            | "tgi"
            | "lmdeploy"
            | "mlc-llm"
            | "deepspeed-mii"
            | "lightllm"
            | "nim"
            | "atom"
            | "qserve"
            | "generic-serving"
    )
}

/// Whether a family assigns whole layers to devices, which then compute in sequence, instead of sharding the layers.
pub(super) fn splits_layers(family: &str) -> bool {
    matches!(
        family,
        "llama.cpp"
            | "ollama"
            | "exllamav2"
            | "exllamav3"
            | "mlx"
            | "ctranslate2"
            | "autoawq"
            | "transformers"
            | "onnx-runtime"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements;

    fn software(side: SoftwareUse, name: &str, version: &str, date: &str) -> (String, [usize; 3]) {
        let kind = if side == SoftwareUse::Training {
            measurements::TableKind::Training
        } else {
            measurements::TableKind::Inference
        };
        let mut record = Record::new(kind);
        fill(&mut record, side, name, version, date);
        (record.text("software").to_owned(), record.counts())
    }

    #[test]
    fn stated_release_is_converted_and_release_by_date_is_assumed() {
        let serving = |n, v, d| software(SoftwareUse::Serving, n, v, d);
        assert_eq!(serving("vLLM", "0.7.3", "2026-04"), ("vllm@0.7.3".into(), [1, 0, 0]));
        assert_eq!(serving("vLLM", "0.19.1rc1.dev339+gedc364896", "2026-04").0, "vllm@0.19.1");
        assert_eq!(serving("vLLM", "nightly", "2025-07-10"), ("vllm@0.9.2".into(), [0, 1, 0]));
        assert_eq!(serving("vLLM", "", ""), ("vllm".into(), [1, 0, 0]));
        assert_eq!(serving("TensorRT-LLM", "main, between 1.1 and 1.2", "2025-11").0, "tensorrt-llm@1.1.0");
        assert_eq!(serving("llama.cpp", "build 6918 (2f68ce7cf)", "").0, "llama.cpp@b6918");
        assert_eq!(serving("Dynamo + SGLang", "", "2025-05-01").0, "sglang@0.4.6");
        assert_eq!(serving("abacus", "1.0", "").0, "generic-serving");
        assert_eq!(serving("", "1.0", "").0, "generic-serving");
    }

    #[test]
    fn nonexistent_version_falls_back_to_the_release_by_date() {
        let (found, counts) = software(SoftwareUse::Serving, "vLLM", "7.0.0", "2025-07-10");
        assert_eq!((found.as_str(), counts), ("vllm@0.9.2", [0, 1, 0]));
    }

    #[test]
    fn container_versions_resolve_to_software_releases() {
        let training = |n, d| software(SoftwareUse::Training, n, "", d).0;
        assert_eq!(training("Megatron-Bridge 26.04.01", "2026-06-01"), "megatron-bridge@0.4.0");
        assert_eq!(training("Megatron-core 0.6.0", ""), "megatron-core@0.6.0");
        assert_eq!(training("NeuronX Distributed (SDK 2.21.0)", ""), "neuronx-distributed@2.21.0");
        assert!(training("Megatron-LM (TE 2.11)", "2026-05-01").starts_with("megatron-core@0.17"));
        assert!(training("NeMo 24.07 (Megatron-Core)", "").starts_with("nemo@"));
    }

    #[test]
    fn software_name_resolves_differently_for_serving_and_training() {
        assert_ne!(
            software(SoftwareUse::Serving, "Megatron-LM", "", "").0,
            software(SoftwareUse::Training, "Megatron-LM", "", "").0
        );
        assert_eq!(software(SoftwareUse::Serving, "DeepSpeed", "", "").0, "deepspeed-inference");
    }
}
