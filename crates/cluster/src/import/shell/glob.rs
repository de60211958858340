//! Shell patterns: `*`, `?`, `[…]` and the extended pattern `@(…)`.

/// Whether the pattern matches the whole text. The work is bounded by the product of the lengths.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    if let Some((head, inner, tail)) = alternatives(pattern) {
        return inner.split('|').take(32).any(|alt| matches(&format!("{head}{alt}{tail}"), text));
    }
    let p: Vec<char> = pattern.chars().take(4096).collect();
    let t: Vec<char> = text.chars().take(4096).collect();
    let (mut i, mut j) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while j < t.len() {
        match step(&p, i, t.get(j).copied()) {
            Some(next) => {
                i = next;
                j += 1;
            }
            None if p.get(i) == Some(&'*') => {
                back = Some((i + 1, j));
                i += 1;
            }
            None => match back {
                Some((bi, bj)) => {
                    back = Some((bi, bj + 1));
                    i = bi;
                    j = bj + 1;
                }
                None => return false,
            },
        }
    }
    p.iter().skip(i).all(|c| *c == '*')
}

/// Splits a pattern with `@(a|b)` into head, alternatives and tail.
fn alternatives(pattern: &str) -> Option<(&str, &str, &str)> {
    let open = pattern.find("@(")?;
    let close = pattern.get(open..)?.find(')')? + open;
    Some((pattern.get(..open)?, pattern.get(open + 2..close)?, pattern.get(close + 1..)?))
}

/// Index in the pattern after one matching character, or `None` if it does not match.
fn step(p: &[char], i: usize, c: Option<char>) -> Option<usize> {
    let c = c?;
    match p.get(i)? {
        '*' => None,
        '?' => Some(i + 1),
        '[' => {
            let close = p.iter().skip(i + 2).position(|c| *c == ']')? + i + 2;
            let set = p.get(i + 1..close)?;
            let (negated, set) = match set.split_first() {
                Some(('!' | '^', rest)) => (true, rest),
                _ => (false, set),
            };
            let mut hit = false;
            let mut k = 0;
            while let Some(&lo) = set.get(k) {
                match (set.get(k + 1), set.get(k + 2)) {
                    (Some('-'), Some(&hi)) => {
                        hit |= lo <= c && c <= hi;
                        k += 3;
                    }
                    _ => {
                        hit |= lo == c;
                        k += 1;
                    }
                }
            }
            (hit != negated).then_some(close + 1)
        }
        '\\' => (p.get(i + 1) == Some(&c)).then_some(i + 2),
        x => (*x == c).then_some(i + 1),
    }
}
