//! Parsing of device names.

use super::slice::Slice;
use crate::catalog::CatalogEntry;

/// Form factor of a device, where it distinguishes variants of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Sxm,
    Pcie,
    Nvl,
    Superchip,
    Other,
}

impl Form {
    /// The form factor of an entry. NVL cards have a PCIe form factor and are recognized by their name.
    pub(super) fn of(entry: &CatalogEntry) -> Option<Form> {
        let named = std::iter::once(&entry.key).chain(&entry.names);
        if named.clone().any(|name| words(name).iter().any(|word| word == "nvl")) {
            return Some(Form::Nvl);
        }
        let form = entry.form_factor.as_deref()?.to_ascii_lowercase();
        Some(if form.starts_with("sxm") {
            Form::Sxm
        } else if form.starts_with("pcie") {
            Form::Pcie
        } else if form == "superchip" {
            Form::Superchip
        } else {
            Form::Other
        })
    }

    pub(super) fn from_word(word: &str) -> Option<Form> {
        match word {
            "sxm" | "sxm2" | "sxm3" | "sxm4" | "sxm5" | "sxm6" | "hgx" => Some(Form::Sxm),
            "pcie" | "pci" => Some(Form::Pcie),
            "nvl" => Some(Form::Nvl),
            _ => None,
        }
    }

    /// Whether an entry of this form matches a name that states the form `stated`.
    pub(super) fn agrees(self, stated: Form) -> bool {
        self == stated || (matches!(self, Form::Other | Form::Superchip) && stated != Form::Pcie)
    }
}

/// Words that do not identify the model.
const IGNORED_WORDS: [&str; 55] = [
    "nvidia",
    "amd",
    "ati",
    "intel",
    "google",
    "aws",
    "amazon",
    "huawei",
    "apple",
    "habana",
    "labs",
    "tesla",
    "instinct",
    "geforce",
    "quadro",
    "gpu",
    "gpus",
    "corporation",
    "corp",
    "inc",
    "r",
    "tm",
    "generation",
    "graphics",
    "device",
    "data",
    "center",
    "edition",
    "grace",
    "hopper",
    "apu",
    "oam",
    "mcm",
    "ac",
    "mba",
    "podslice",
    "slice",
    "mega",
    "shared",
    "accelerator",
    "processor",
    "card",
    "trillium",
    "ironwood",
    "hpu",
    "npu",
    "groq",
    "sambanova",
    "cerebras",
    "tenstorrent",
    "moore",
    "threads",
    "moorethreads",
    "vf",
    "nvlink",
];

/// A parsed name: model, form factor, memory and the rest.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Name {
    /// Words of the model, concatenated.
    pub(super) model: String,
    /// Words of the model.
    pub(super) words: Vec<String>,
    pub(super) form: Option<Form>,
    pub(super) memory_gb: Option<f64>,
    pub(super) memory_type: Option<String>,
    pub(super) cores: Option<u32>,
    pub(super) slice: Option<Slice>,
}

impl Name {
    pub(super) fn parse(text: &str) -> Name {
        let (rest, slice) = split_slice(&text.to_ascii_lowercase());
        let mut name = Name { slice, ..Name::default() };
        // Text in parentheses is explanatory; only the number of cores is read from it.
        name.take_all(&without_parentheses(&rest));
        if name.words.is_empty() || name.cores.is_none() {
            let mut whole = Name::default();
            whole.take_all(&rest);
            name.cores = whole.cores;
            if name.words.is_empty() {
                name = Name { slice: name.slice, ..whole };
            }
        }
        name.words = canonical(name.words);
        name.model = name.words.concat();
        name
    }

    fn take_all(&mut self, text: &str) {
        let mut all = words(text);
        all.truncate(24);
        let mut before = None;
        for word in &all {
            self.take(word, before);
            before = Some(word);
        }
    }

    fn take(&mut self, word: &str, before: Option<&String>) {
        if let Some(form) = Form::from_word(word) {
            self.form = Some(form);
        } else if is_memory_type(word) {
            self.memory_type = Some(word.to_owned());
        } else if let Some(cores) = word.strip_suffix("core").and_then(|number| number.parse().ok()) {
            self.cores = Some(cores);
        } else if let Some(gb) = memory(word) {
            self.memory_gb = Some(gb);
        } else if word == "gb" || word == "core" {
            // The number is the word before: `80 GB`, `64-core`.
            let number = before.and_then(|number| number.parse::<u32>().ok());
            if let (Some(number), Some(last)) = (number, self.words.last())
                && last.parse() == Ok(number)
            {
                self.words.pop();
                if word == "gb" {
                    self.memory_gb = Some(f64::from(number));
                } else {
                    self.cores = Some(number);
                }
            }
        } else if IGNORED_WORDS.contains(&word) || word == "mig" || is_rack(word) {
            // Not part of the model.
        } else if let Some((model, form)) = split_form(word) {
            self.form = Some(form);
            self.words.push(model.to_owned());
        } else {
            self.words.push(word.to_owned());
        }
    }

    /// Reinterprets a bare number at the end of the name as memory: `a100_80` is an A100 with 80 GB.
    pub(super) fn with_last_number_as_memory(&self) -> Option<Name> {
        let (last, rest) = self.words.split_last()?;
        let number: u32 = last.parse().ok()?;
        (!rest.is_empty()).then(|| Name {
            model: rest.concat(),
            words: rest.to_vec(),
            memory_gb: Some(f64::from(number)),
            ..self.clone()
        })
    }
}

/// Splits text into lower-case words of letters, digits and `+`.
pub(super) fn words(text: &str) -> Vec<String> {
    text.to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '+')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Normalizes other spellings of a model.
fn canonical(words: Vec<String>) -> Vec<String> {
    let joined = words.join(" ");
    let renamed = match joined.as_str() {
        "tpu v5 lite" | "tpu v5lite" | "tpu v5litepod" | "v5 lite" | "v5litepod" | "tpu v5 litepod" => "tpu v5e",
        "tpu v6 lite" | "tpu v6lite" => "tpu v6e",
        "tpu v7" | "tpu v7x" | "tpu7" => "tpu7x",
        "tpu v5" => "tpu v5p",
        "hl 200" | "hl 205" => "gaudi1",
        "hl 225" | "hl 225b" | "hl 225c" | "hl 225d" | "hl 225h" | "hl 288" => "gaudi2",
        "hl 325" | "hl 325l" | "hl 328" | "hl 335" | "hl 338" => "gaudi3",
        "trainium1" => "trainium",
        _ => return words,
    };
    renamed.split(' ').map(str::to_owned).collect()
}

/// Whether `word` is a rack size such as `nvl72`: it states how many accelerators are connected, not which.
fn is_rack(word: &str) -> bool {
    word.strip_prefix("nvl").is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
}

fn is_memory_type(word: &str) -> bool {
    let rest = word.strip_prefix("hbm").or_else(|| word.strip_prefix("gddr")).or_else(|| word.strip_prefix("lpddr"));
    rest.is_some_and(|rest| rest.len() <= 2 && rest.chars().all(|c| c.is_ascii_digit() || c == 'e' || c == 'x'))
}

/// Parses a memory size in GB such as `80gb`, `80g`, `80gib` or `192gb`.
pub(super) fn memory(word: &str) -> Option<f64> {
    let number = ["gib", "gb", "g"].iter().find_map(|unit| word.strip_suffix(unit))?;
    let value: f64 = number.parse().ok()?;
    (number.chars().all(|c| c.is_ascii_digit()) && value > 0.0 && value < 1e5).then_some(value)
}

/// Splits a form factor from a model: `h100sxm5` is an H100 of form SXM.
fn split_form(word: &str) -> Option<(&str, Form)> {
    let stem = word.strip_suffix(|c: char| c.is_ascii_digit()).filter(|stem| stem.ends_with("sxm")).unwrap_or(word);
    for (suffix, form) in [("sxm", Form::Sxm), ("pcie", Form::Pcie), ("nvl", Form::Nvl)] {
        if let Some(model) = stem.strip_suffix(suffix).filter(|model| model.ends_with(|c: char| c.is_ascii_digit())) {
            return Some((model, form));
        }
    }
    None
}

/// Splits a MIG profile such as `1g.10gb`, `3g.20gb+me` or `1c.2g.20gb` from a name.
pub(super) fn split_slice(text: &str) -> (String, Option<Slice>) {
    for piece in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '+')) {
        if let Some(slice) = slice(piece) {
            return (text.replacen(piece, " ", 1), Some(slice));
        }
    }
    (text.to_owned(), None)
}

fn slice(piece: &str) -> Option<Slice> {
    let profile = piece.split('+').next()?;
    let mut parts = profile.rsplit('.');
    let memory_gb = memory(parts.next()?)?;
    let compute: u32 = parts.next()?.strip_suffix('g')?.parse().ok()?;
    let whole = parts.next().is_none_or(|part| part.ends_with('c'));
    (whole && (1..=7).contains(&compute)).then(|| Slice { profile: piece.to_owned(), compute, memory_gb })
}

/// Number of GPU cores that an entry's name states: `M1 Ultra (64-core GPU)`.
pub(super) fn cores_of(entry: &CatalogEntry) -> Option<u32> {
    entry.names.iter().find_map(|name| Name::parse(name).cores)
}

/// One spelling of an entry.
#[derive(Debug, Clone)]
pub(super) struct Spelling {
    model: String,
    words: Vec<String>,
    /// Whether it is a full name instead of a key.
    pub(super) full: bool,
}

impl Spelling {
    pub(super) fn all(entry: &CatalogEntry) -> Vec<Spelling> {
        let key = std::iter::once((&entry.key, false));
        key.chain(entry.names.iter().map(|name| (name, name.contains(' ') || !name.contains('-'))))
            .map(|(text, full)| {
                let name = Name::parse(text);
                Spelling { model: bare(&name.words), words: name.words, full }
            })
            .filter(|spelling| !spelling.model.is_empty())
            .collect()
    }

    /// Whether the name has the same model.
    pub(super) fn is(&self, name: &Name) -> bool {
        self.model == bare(&name.words)
    }

    /// Whether the name is less specific: the spelling begins with its words and has further ones.
    pub(super) fn begins_with(&self, name: &Name) -> bool {
        let own: Vec<&String> = name.words.iter().filter(|word| !is_series(word)).collect();
        let mine: Vec<&String> = self.words.iter().filter(|word| !is_series(word)).collect();
        !own.is_empty() && mine.len() > own.len() && mine.iter().zip(&own).all(|(mine, own)| mine == own)
    }

    /// Whether the spelling is the name plus one character: `gaudi` may be a `gaudi3`, `mi300` an `mi300x`.
    pub(super) fn extends_by_one_character(&self, name: &Name) -> bool {
        let own = bare(&name.words);
        own.len() >= 4 && self.model.strip_prefix(own.as_str()).is_some_and(|rest| rest.chars().count() == 1)
    }

    /// Whether the spelling is similar enough to be suggested if nothing matches.
    pub(super) fn is_similar(&self, name: &Name) -> bool {
        let own = bare(&name.words);
        let shared = self.model.chars().zip(own.chars()).take_while(|(a, b)| a == b).count();
        shared >= 4 && (shared == self.model.len() || shared == own.len())
    }
}

fn is_series(word: &str) -> bool {
    matches!(word, "rtx" | "gtx" | "radeon")
}

fn bare(words: &[String]) -> String {
    words.iter().filter(|word| !is_series(word)).map(|word| bare_text(word)).collect()
}

fn bare_text(text: &str) -> String {
    ["rtx", "gtx"].iter().find_map(|series| text.strip_prefix(series)).unwrap_or(text).to_owned()
}

fn without_parentheses(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}
