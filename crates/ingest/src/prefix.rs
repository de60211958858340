//! Prefixes that launchers and log collectors add to every line: ranks (`torchrun`, `srun -l`, `mpirun`), actors (Ray),
//! containers (Compose), time stamps (Kubernetes).

/// Returns the line without prefixes. Leading blanks written by the tool itself are kept if they can be told from those
/// of the prefix.
#[must_use]
pub(crate) fn without_prefix(line: &str) -> &str {
    let mut line = line;
    // The prefix of a collector precedes that of a launcher. Three levels are more than has been seen.
    for _ in 0..3 {
        match prefix(line.as_bytes()).and_then(|length| line.get(length..)) {
            Some(rest) => line = rest,
            None => break,
        }
    }
    line
}

/// The length of one prefix.
fn prefix(line: &[u8]) -> Option<usize> {
    let length = match line.first()? {
        b'[' => bracketed(line)?,
        b'(' => actor(line)?,
        b'0'..=b'9' => stamp(line).or_else(|| rank(line))?,
        b' ' => rank(line)?,
        byte if byte.is_ascii_alphabetic() => container(line)?,
        _ => return None,
    };
    Some(length + usize::from(line.get(length) == Some(&b' ')))
}

/// Counts the leading bytes for which `kind` is true.
fn run(bytes: &[u8], kind: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| kind(byte)).count()
}

/// Matches `[rank0]:`, `[default12]:`, `[3]:`, and the prefixes of `mpirun --tag-output`: `[1,0]<stdout>:`,
/// `[prterun-n1@1,0]<stderr>:`.
fn bracketed(line: &[u8]) -> Option<usize> {
    let end = run(line.get(..line.len().min(96))?, |byte| *byte != b']' && *byte != b' ');
    let rest = line.get(end..)?;
    if let Some(tag) = ["]<stdout>:", "]<stderr>:"].iter().find(|tag| rest.starts_with(tag.as_bytes())) {
        return Some(end + tag.len());
    }
    let inside = line.get(1..end)?;
    let name = ["rank", "default", ""].iter().find(|name| inside.starts_with(name.as_bytes()))?.len();
    let digits = inside.get(name..)?;
    let numbered = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    (numbered && rest.starts_with(b"]:")).then_some(end + 2)
}

/// Matches `(RayTrainWorker pid=1234, ip=10.0.0.1) `, `(EngineCore_0 pid=7) `.
fn actor(line: &[u8]) -> Option<usize> {
    let end = run(line.get(..line.len().min(96))?, |byte| *byte != b')');
    let inside = line.get(1..end)?;
    inside.windows(5).any(|window| window == b" pid=").then_some(())?;
    (line.get(end..end + 2) == Some(b") ")).then_some(end + 1)
}

/// Matches ` 12: ` of `srun -l`.
fn rank(line: &[u8]) -> Option<usize> {
    let blanks = run(line, |byte| *byte == b' ');
    let digits = run(line.get(blanks..)?, u8::is_ascii_digit);
    let at = blanks + digits;
    ((1..=6).contains(&digits) && blanks < 6 && line.get(at..at + 2) == Some(b": ")).then_some(at + 1)
}

/// Matches `2025-01-01T00:00:00.123456789Z `, including `stdout F ` added by the container runtime.
fn stamp(line: &[u8]) -> Option<usize> {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = |(byte, shape): (&u8, &u8)| if *shape == b'd' { byte.is_ascii_digit() } else { byte == shape };
    if !line.get(..shape.len())?.iter().zip(shape).all(fits) {
        return None;
    }
    let mut at = shape.len();
    if line.get(at) == Some(&b'.') {
        at += 1 + run(line.get(at + 1..)?, u8::is_ascii_digit);
    }
    // Time stamps written by the tool itself have no time zone.
    at += match line.get(at)? {
        b'Z' => 1,
        b'+' | b'-' if line.get(at + 3) == Some(&b':') => 6,
        _ => return None,
    };
    let rest = line.get(at..)?;
    let behind =
        [" stdout F", " stderr F", " stdout P", " stderr P", ""].iter().find(|s| rest.starts_with(s.as_bytes()));
    at += behind.map_or(0, |behind| behind.len());
    (line.get(at) == Some(&b' ')).then_some(at)
}

/// Matches `trainer-1  | `.
fn container(line: &[u8]) -> Option<usize> {
    let name = run(line.get(..line.len().min(64))?, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    let numbered = line.get(..name)?.iter().rposition(|byte| !byte.is_ascii_digit())?;
    if numbered + 1 == name || !matches!(line.get(numbered), Some(b'-' | b'_')) {
        return None;
    }
    let blanks = run(line.get(name..)?, |byte| *byte == b' ');
    let bar = name + blanks;
    (blanks > 0 && line.get(bar..bar + 2) == Some(b"| ")).then_some(bar + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_of_other_tools_is_stripped_from_lines() {
        for front in [
            "[rank0]: ",
            "[default12]:",
            "[3]: ",
            "[1,0]<stdout>:",
            "[prterun-n1@1,0]<stderr>: ",
            "0: ",
            " 12: ",
            "(RayTrainWorker pid=1234, ip=10.0.0.1) ",
            "2025-01-01T00:00:00.123456789Z ",
            "2025-01-01T00:00:00+01:00 stdout F ",
            "trainer-1  | ",
            "2025-01-01T00:00:00Z stderr F [rank0]: 7: ",
        ] {
            for line in ["# gpu  pwr", "{\"a\": 1}", ""] {
                assert_eq!(without_prefix(&format!("{front}{line}")), line, "{front}");
            }
        }
        assert_eq!(without_prefix("0:    8   2  float"), "   8   2  float");
        for line in [
            "[titan] 2025-06-04 08:51:48,074 - root - INFO - step:  1",
            "[2025-01-01 00:00:00] iteration 1/ 10 |",
            "2023-07-07T12:26:58.293 INFO step=1",
            "12:34:56 step",
            "Epoch 1 | iter 1",
            "llama-7b | 3",
            "(1, 2) pid=3",
            "0, 70.10 W",
            "    8   2  float",
        ] {
            assert_eq!(without_prefix(line), line);
        }
    }
}
