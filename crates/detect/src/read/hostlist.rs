//! Slurm's host lists, such as `gpu[01-04,07],login1`.

/// Names in a host list, at most `most` of them.
#[must_use]
pub fn expand(list: &str, most: usize) -> Vec<String> {
    let mut names = Vec::new();
    for part in split_outside(list, '[', ']') {
        if names.len() >= most {
            break;
        }
        expand_part(part.trim(), most, &mut names);
    }
    names
}

/// Whether a host list has a name; the name may be shorter by its domain.
#[must_use]
pub fn contains(list: &str, host: &str) -> bool {
    let short = host.split('.').next().unwrap_or(host);
    expand(list, 200_000).iter().any(|name| name == host || name == short)
}

fn expand_part(part: &str, most: usize, names: &mut Vec<String>) {
    if part.is_empty() {
        return;
    }
    let Some((before, rest)) = part.split_once('[') else {
        names.push(part.to_owned());
        return;
    };
    let Some((inside, after)) = rest.split_once(']') else { return };
    let mut tails = Vec::new();
    // What follows may have brackets of its own.
    if after.is_empty() {
        tails.push(String::new());
    } else {
        expand_part(after, most, &mut tails);
    }
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(from), Ok(to)) = (first.parse::<u64>(), last.parse::<u64>()) else { continue };
        let width = first.len().min(20);
        for number in from..=to {
            for tail in &tails {
                if names.len() >= most {
                    return;
                }
                names.push(format!("{before}{number:0width$}{tail}"));
            }
        }
    }
}

/// Parts between commas that are not inside brackets.
pub(super) fn split_outside(text: &str, open: char, close: char) -> impl Iterator<Item = &str> {
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
    fn broken_lists_give_what_is_readable() {
        assert!(expand("n[1-", 10).is_empty());
        assert!(expand("n[x-y]", 10).is_empty());
        assert_eq!(expand(",,a,", 10), ["a"]);
    }

    #[test]
    fn a_host_is_found_by_its_short_name() {
        assert!(contains("gpu[01-04]", "gpu03.cluster.example"));
        assert!(!contains("gpu[01-04]", "gpu3"));
    }
}
