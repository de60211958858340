//! systemd units, and Podman's Quadlet files, which use the same format.

/// Converts a unit to a shell script with the same number of lines: the environment becomes exports, and the command a
/// command. Returns `None` if the text is not a unit.
pub(crate) fn script(text: &str) -> Option<String> {
    let sections = || text.lines().map(str::trim).filter(|l| l.starts_with('[') && l.ends_with(']'));
    let container = sections().any(|l| l == "[Container]");
    if !container && !sections().any(|l| l == "[Service]") {
        return None;
    }
    let image = text.lines().find_map(|l| l.strip_prefix("Image=")).unwrap_or_default();
    let mut out = String::new();
    // A line that ends with a backslash continues, and the next line is treated like the first.
    let mut kept = None;
    for line in text.lines() {
        let goes_on = line.trim_end().ends_with('\\');
        match kept {
            Some(true) => out += line,
            Some(false) => {}
            None => {
                let read = setting(line.trim_start(), container.then_some(image));
                kept = Some(read.is_some());
                out += &read.unwrap_or_default();
            }
        }
        kept = kept.filter(|_| goes_on);
        out.push('\n');
    }
    Some(out)
}

/// Converts one setting to a line of the script.
fn setting(line: &str, image: Option<&str>) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let value = value.trim();
    match (key.trim(), image) {
        ("Environment", _) => Some(format!("export {}", exported(value))),
        // Prefixes of a command: ignore failure, no expansion, full privileges and others.
        ("ExecStart", None) => Some(value.trim_start_matches(['-', '@', ':', '+', '!']).to_owned()),
        ("Exec", Some(image)) => Some(format!("podman run {image} {value}")),
        _ => None,
    }
}

/// Rewrites `"NAME=value with blanks"` as `NAME="value with blanks"`. Other values are not changed.
fn exported(value: &str) -> String {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote));
    match inner('"').or_else(|| inner('\'')).filter(|v| !v.contains(['"', '\''])).and_then(|v| v.split_once('=')) {
        Some((name, value)) => format!("{name}=\"{value}\""),
        None => value.to_owned(),
    }
}
