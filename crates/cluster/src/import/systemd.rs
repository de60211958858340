//! Units of systemd, and the containers of Podman that are written like them (Quadlet).

/// The unit as a shell script of as many lines: its environment as exports, its command as a command.
/// `None` if the text is no unit.
pub(crate) fn script(text: &str) -> Option<String> {
    let sections = || text.lines().map(str::trim).filter(|l| l.starts_with('[') && l.ends_with(']'));
    let container = sections().any(|l| l == "[Container]");
    if !container && !sections().any(|l| l == "[Service]") {
        return None;
    }
    let image = text.lines().find_map(|l| l.strip_prefix("Image=")).unwrap_or_default();
    let mut out = String::new();
    // A line that ends in a backslash goes on, and keeps the meaning of the first one.
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

/// One setting as a line of a script.
fn setting(line: &str, image: Option<&str>) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let value = value.trim();
    match (key.trim(), image) {
        ("Environment", _) => Some(format!("export {}", exported(value))),
        // A unit may mark its command with these: failure is fine, no expansion, full privileges.
        ("ExecStart", None) => Some(value.trim_start_matches(['-', '@', ':', '+', '!']).to_owned()),
        ("Exec", Some(image)) => Some(format!("podman run {image} {value}")),
        _ => None,
    }
}

/// `"NAME=value with blanks"` as `NAME="value with blanks"`; without quotes around the pair as it is.
fn exported(value: &str) -> String {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote));
    match inner('"').or_else(|| inner('\'')).filter(|v| !v.contains(['"', '\''])).and_then(|v| v.split_once('=')) {
        Some((name, value)) => format!("{name}=\"{value}\""),
        None => value.to_owned(),
    }
}
