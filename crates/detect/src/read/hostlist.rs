//! Slurm host lists, such as `gpu[01-04,07],login1`.

/// Maximum length of a host name in bytes (RFC 1035). Longer names are invalid and left out.
const MAX_HOST_NAME_BYTES: usize = 255;

/// Expands a host list to at most `most` names.
#[must_use]
pub fn expand(list: &str, most: usize) -> Vec<String> {
    let mut names = Vec::new();
    for part in split_outside_brackets(list, '[', ']') {
        if names.len() >= most {
            break;
        }
        names.extend(expand_part(part.trim(), most - names.len()));
    }
    names
}

/// Whether a host list contains `host`, with or without its domain.
#[must_use]
pub fn contains(list: &str, host: &str) -> bool {
    let short = host.split('.').next().unwrap_or(host);
    expand(list, 200_000).iter().any(|name| name == host || name == short)
}

/// Expands one part from its end to its beginning. `names` holds the expansions of the text after the current brackets.
fn expand_part(part: &str, most: usize) -> Vec<String> {
    let (mut names, mut rest) = (vec![String::new()], part);
    while let Some((before, brackets)) = rest.rsplit_once('[') {
        let Some((ranges, after)) = brackets.split_once(']') else { return Vec::new() };
        names = prefixed(ranges, after, &names, most);
        // This check also avoids iterating over a range of billions.
        if names.is_empty() {
            return names;
        }
        rest = before;
    }
    names.retain_mut(|name| {
        name.insert_str(0, rest);
        !name.is_empty() && name.len() <= MAX_HOST_NAME_BYTES
    });
    names
}

/// Prepends every number of `ranges`, followed by `between`, to every name.
fn prefixed(ranges: &str, between: &str, names: &[String], most: usize) -> Vec<String> {
    let tails: Vec<&String> = names.iter().filter(|name| between.len() + name.len() < MAX_HOST_NAME_BYTES).collect();
    let numbers = ranges.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse::<u64>().ok()?..=last.parse::<u64>().ok()?, first.len().min(20)))
    });
    let mut found = Vec::new();
    for (range, width) in numbers {
        // Without tails there are no names, so that the range need not be iterated over.
        let pairs = range.flat_map(|number| tails.iter().map(move |tail| (number, tail)));
        for (number, tail) in pairs.take(if tails.is_empty() { 0 } else { most - found.len() }) {
            found.push(format!("{number:0width$}{between}{tail}"));
        }
    }
    found
}

/// Splits at commas that are not inside brackets.
pub(super) fn split_outside_brackets(text: &str, open: char, close: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c: char| {
        if c == open {
            depth = depth.saturating_add(1);
        } else if c == close {
            depth = depth.saturating_sub(1);
        }
        c == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_keep_their_leading_zeros_and_suffixes() {
        assert_eq!(expand("gpu[08-10,12],login1", 99), ["gpu08", "gpu09", "gpu10", "gpu12", "login1"]);
        assert_eq!(expand("r[1-2]n[1-2]", 99), ["r1n1", "r1n2", "r2n1", "r2n2"]);
        assert_eq!(expand("a[1-2]-ib", 99), ["a1-ib", "a2-ib"]);
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        assert_eq!(expand("n[0-18446744073709551615]", 10).len(), 10);
        assert_eq!(expand("n[1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9]", 50).len(), 50);
    }

    #[test]
    fn malformed_host_lists_yield_only_valid_names() {
        assert!(expand("n[1-", 10).is_empty());
        assert!(expand("n[x-y]", 10).is_empty());
        assert_eq!(expand(",,a,", 10), ["a"]);
    }

    #[test]
    fn host_ranges_without_a_valid_name_are_not_enumerated() {
        assert!(expand("n[1-9999999999]a[x]", 10).is_empty());
        assert!(expand(&format!("n[1-9999999999]{}", "a".repeat(300)), 10).is_empty());
        assert!(expand(&"a[1]".repeat(200_000), 10).is_empty(), "no name is that long, and no stack that deep");
    }

    #[test]
    fn a_host_is_found_by_its_short_name() {
        assert!(contains("gpu[01-04]", "gpu03.cluster.example"));
        assert!(!contains("gpu[01-04]", "gpu3"));
    }
}
