//! The table in docs/mission.md: the real binary runs every command and shows what its row states, and every named test
//! exists.

use std::path::Path;

use crate::common::program::{ROOT, atlas};

/// A row of the table.
struct Row<'a> {
    name: &'a str,
    state: &'a str,
    commands: Vec<&'a str>,
    /// Named tests: file and function.
    tests: Vec<(&'a str, &'a str)>,
    /// Text that the commands print, or files that they write.
    shows: Vec<&'a str>,
}

fn document() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("docs/mission.md")).unwrap()
}

/// Texts between backquotes in a cell.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn rows(document: &str) -> Vec<Row<'_>> {
    let cells = |line| -> Option<Vec<&str>> {
        let inner = str::strip_prefix(line, '|')?.strip_suffix('|')?;
        Some(inner.split('|').map(str::trim).collect())
    };
    let rows = document.lines().filter_map(cells).filter(|cells| cells.len() == 6);
    let rows = rows.filter(|cells| cells[0].len() > 1 && cells[0][1..].bytes().all(|byte| byte.is_ascii_digit()));
    rows.map(|cells| {
        let (tests, commands) = quoted(cells[3]).into_iter().partition(|text: &&str| text.contains(".rs: "));
        let tests: Vec<&str> = tests;
        let tests = tests.into_iter().filter_map(|text| text.split_once(": ")).collect();
        Row { name: cells[0], state: cells[2], commands, tests, shows: quoted(cells[4]) }
    })
    .collect()
}

/// Words of a command line, separated by spaces outside double quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

/// Checks that the content of a file matches its extension.
fn is_sound(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let text = || String::from_utf8(bytes.clone()).unwrap();
    let shown = path.display();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => drop(serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()),
        Some("png") => assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.len() > 1000, "{shown}"),
        Some("pdf") => assert!(bytes.starts_with(b"%PDF-") && bytes.trim_ascii_end().ends_with(b"%%EOF"), "{shown}"),
        Some("html") => assert!(
            (text().contains("<svg") || text().contains("<table")) && text().trim_end().ends_with("</html>"),
            "{shown}"
        ),
        Some("md") => assert!(text().lines().any(|line| line.starts_with('#')), "{shown}"),
        _ => assert!(!bytes.is_empty(), "{shown}"),
    }
}

/// Runs the commands of the rows whose names begin with `section`, one after the other in one directory.
fn run(section: char) {
    let document = document();
    let dir = tempfile::tempdir().unwrap();
    for data in ["examples", "tests/data/predecessor", "tests/data/mission", "tests/data/logs"] {
        copy(&Path::new(ROOT).join(data), &dir.path().join(data));
    }
    let mut failures = Vec::new();
    for row in rows(&document).iter().filter(|row| row.name.starts_with(section)) {
        let (mut printed, mut codes) = (String::new(), Vec::new());
        for command in &row.commands {
            let all = words(command);
            let variables = all.iter().take_while(|word| *word != "atlas").count();
            let arguments: Vec<&str> = all[variables + 1..].iter().map(String::as_str).collect();
            let mut program = atlas(dir.path(), &arguments);
            program.env("ATLAS_STATE_DIR", dir.path().join("state")).env_remove("ATLAS_HISTORY");
            for (name, value) in all[..variables].iter().filter_map(|word| word.split_once('=')) {
                program.env(name, value);
            }
            let output = program.output().unwrap();
            printed += &String::from_utf8_lossy(&output.stdout);
            printed += &String::from_utf8_lossy(&output.stderr);
            codes.push(output.status.code());
        }
        // Output is wrapped.
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (flat, fails) = (plain(&printed), row.shows.contains(&"exit 1"));
        if codes.iter().any(|code| *code != Some(i32::from(fails))) {
            failures.push(format!("{}: exits with {codes:?}\n{printed}", row.name));
        }
        for shown in row.shows.iter().filter(|shown| **shown != "exit 1") {
            let path = dir.path().join(shown);
            if path.is_file() {
                is_sound(&path);
            } else if !flat.contains(&plain(shown)) {
                failures.push(format!("{}: no \"{shown}\" in\n{printed}", row.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn planner_commands_match_the_mission_document() {
    run('A');
}

#[test]
fn calibration_commands_match_the_mission_document() {
    run('B');
}

#[test]
fn simulator_commands_match_the_mission_document() {
    run('C');
}

#[test]
fn dashboard_commands_match_the_mission_document() {
    run('D');
}

#[test]
fn benchmark_toolkit_commands_match_the_mission_document() {
    run('E');
}

#[test]
fn every_working_mission_row_has_a_command_or_an_existing_test() {
    let document = document();
    let rows = rows(&document);
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let expected: Vec<String> = [('A', 21), ('B', 22), ('C', 30), ('D', 28), ('E', 31), ('F', 15)]
        .into_iter()
        .flat_map(|(section, count)| (1..=count).map(move |number| format!("{section}{number}")))
        .collect();
    assert_eq!(names, expected);
    for row in &rows {
        let shown = !row.tests.is_empty() || (!row.commands.is_empty() && !row.shows.is_empty());
        assert!(row.state != "works" || shown, "{}: no command with what it shows, and no test", row.name);
        for (file, name) in &row.tests {
            let source = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_default();
            let at = source.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("{}: no {name} in {file}", row.name));
            let above = source[..at].lines().rev().take(6).any(|line| line.trim() == "#[test]");
            assert!(above, "{}: {name} in {file} is no test", row.name);
        }
    }
    let count = |state: &str| rows.iter().filter(|row| row.state == state).count();
    let table = format!(
        "| {} | {} | {} | {} | {} |",
        count("works"),
        count("partial"),
        count("differs"),
        count("missing"),
        rows.len()
    );
    assert!(document.contains(&table), "expected {table}");
}
