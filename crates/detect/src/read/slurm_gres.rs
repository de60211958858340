//! Generic resources of Slurm: `gpu:h100:8(S:0-1),nvme:1`, and their form in `CfgTRES`.

use super::hostlist::split_outside_brackets;
use crate::text::{clean, present};

/// One generic resource of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gres {
    /// Name, such as `gpu`.
    pub name: String,
    /// Type, such as `h100`. Sites may omit it.
    pub kind: Option<String>,
    /// Number of units per node.
    pub count: u64,
}

impl Gres {
    /// Whether it is an accelerator that is allocated to jobs as a whole.
    #[must_use]
    pub fn is_accelerator(&self) -> bool {
        ["gpu", "hpu", "npu", "xpu", "tpu", "dcu", "neuron", "gaudi", "accel"].contains(&self.name.as_str())
    }
}

/// Parses a `Gres=` value or the `%G` column of `sinfo`.
#[must_use]
pub fn parse(text: &str) -> Vec<Gres> {
    let Some(text) = present(text) else { return Vec::new() };
    split_outside_brackets(text, '(', ')').take(64).filter_map(parse_part).collect()
}

fn parse_part(part: &str) -> Option<Gres> {
    // `(S:0-1)` lists sockets, `(IDX:0-3)` devices.
    let part = part.split('(').next()?.trim();
    let part = part.strip_prefix("gres:").or_else(|| part.strip_prefix("gres/")).unwrap_or(part);
    let mut fields = part.split(':').map(str::trim).filter(|field| *field != "no_consume");
    let name = clean(fields.next()?).to_ascii_lowercase();
    let rest: Vec<&str> = fields.collect();
    let (kind, count) = match rest.as_slice() {
        [] => (None, 1),
        [only] => count(only).map_or((Some(*only), 1), |count| (None, count)),
        [kind, number, ..] => (Some(*kind), count(number)?),
    };
    (!name.is_empty()).then(|| Gres { name, kind: kind.map(clean).filter(|kind| !kind.is_empty()), count })
}

/// Parses a count such as `8` or `2K`. Suffixes are powers of 1024.
fn count(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let factor = match text.strip_prefix(digits)?.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" | "kib" | "kb" => 1 << 10,
        "m" | "mib" | "mb" => 1 << 20,
        "g" | "gib" | "gb" => 1 << 30,
        "t" | "tib" | "tb" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Parses the generic resources of a TRES value such as `cpu=128,mem=2000G,gres/gpu=8,gres/gpu:h100=8`. If types are
/// listed, the total without a type is left out.
#[must_use]
pub fn parse_tres(text: &str) -> Vec<Gres> {
    let all: Vec<Gres> = text
        .split(',')
        .take(256)
        .filter_map(|part| {
            let (name, number) = part.trim().strip_prefix("gres/")?.split_once('=')?;
            let (name, kind) = name.split_once(':').map_or((name, None), |(name, kind)| (name, Some(kind)));
            Some(Gres { name: clean(name).to_ascii_lowercase(), kind: kind.map(clean), count: count(number)? })
        })
        .collect();
    let typed = |name: &str| all.iter().any(|gres| gres.name == name && gres.kind.is_some());
    all.iter().filter(|gres| gres.kind.is_some() || !typed(&gres.name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gres(name: &str, kind: Option<&str>, count: u64) -> Gres {
        Gres { name: name.to_owned(), kind: kind.map(str::to_owned), count }
    }

    #[test]
    fn gres_types_counts_and_sockets_are_parsed() {
        assert_eq!(parse("gpu:h100:8(S:0-1)"), [gres("gpu", Some("h100"), 8)]);
        assert_eq!(
            parse("gpu:a100:4(S:0,1),nvme:no_consume:1,gpu:a100_1g.5gb:14(S:0-1)"),
            [gres("gpu", Some("a100"), 4), gres("nvme", None, 1), gres("gpu", Some("a100_1g.5gb"), 14)]
        );
        assert_eq!(parse("gpu:4"), [gres("gpu", None, 4)]);
        assert_eq!(parse("gpu"), [gres("gpu", None, 1)]);
        assert_eq!(parse("gpu:v100"), [gres("gpu", Some("v100"), 1)]);
        assert_eq!(
            parse("gres:gpu:v100:2,lscratch:2T"),
            [gres("gpu", Some("v100"), 2), gres("lscratch", None, 2 << 40)]
        );
        for text in ["", "(null)", "N/A", "gpu:a100:lots"] {
            assert_eq!(parse(text), [], "{text}");
        }
    }

    #[test]
    fn untyped_tres_total_is_dropped_when_types_are_listed() {
        assert_eq!(
            parse_tres("cpu=64,mem=2000G,billing=64,gres/gpu=8,gres/gpu:h100=8,gres/shard=32"),
            [gres("gpu", Some("h100"), 8), gres("shard", None, 32)]
        );
        assert_eq!(parse_tres("cpu=4,gres/gpu=2"), [gres("gpu", None, 2)]);
    }

    #[test]
    fn overflowing_gres_count_is_not_parsed_as_a_count() {
        assert_eq!(parse("gpu:99999999999999999999"), [gres("gpu", Some("99999999999999999999"), 1)]);
        assert_eq!(parse("gpu:x:18446744073709551615T"), []);
    }
}
