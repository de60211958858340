//! File arguments: a path, optionally followed by settings that the file itself does not state.

use std::path::{Path, PathBuf};

use super::config;
use super::reading::{Config, Origin, SETTINGS};

/// A file or directory with settings given by the user: `train.log:num_gpus=64,seq_len=4096`.
#[derive(Debug, Clone, Default)]
pub struct NamedFile {
    /// The path.
    pub path: PathBuf,
    /// Settings that override those of the file.
    pub settings: Config,
}

impl NamedFile {
    /// Parses an argument. If a file with the whole argument as its name exists, the argument is a path only.
    ///
    /// # Errors
    /// If a setting after the path is invalid.
    pub fn parse(argument: &str) -> Result<NamedFile, String> {
        let whole = Path::new(argument);
        let parts = argument.rsplit_once(':').filter(|(_, rest)| rest.contains('=') && !whole.exists());
        let Some((path, rest)) = parts else {
            return Ok(NamedFile { path: whole.to_owned(), settings: Config::default() });
        };
        let mut settings = Config::default();
        for assignment in rest.split(',') {
            assign(&mut settings, assignment).map_err(|problem| format!("{argument}: {problem}"))?;
        }
        Ok(NamedFile { path: PathBuf::from(path), settings })
    }

    /// Parses an argument that may not be UTF-8, in which case it is a path only.
    ///
    /// # Errors
    /// If a setting after the path is invalid.
    pub fn of(argument: &Path) -> Result<NamedFile, String> {
        match argument.to_str() {
            Some(text) => NamedFile::parse(text),
            None => Ok(NamedFile { path: argument.to_owned(), settings: Config::default() }),
        }
    }

    /// Merges the settings of this file with those for all files, which have lower precedence.
    #[must_use]
    pub fn merged_with(&self, all: &Config) -> Config {
        let mut settings = self.settings.clone();
        settings.merge(all);
        settings
    }
}

/// Adds `NAME=VALUE` as a setting of the user.
///
/// # Errors
/// If `assignment` has no `=`, or if there is no setting of that name; the message then suggests the most similar name.
pub fn assign(settings: &mut Config, assignment: &str) -> Result<(), String> {
    let Some((name, value)) = assignment.split_once('=') else {
        return Err(format!("\"{assignment}\": expected NAME=VALUE"));
    };
    let (name, value) = (name.trim(), value.trim());
    let Some(known) = config::find(name).map(|setting| setting.name) else {
        let names = SETTINGS.iter().map(|setting| setting.name);
        let near = names.max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
        let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        return Err(format!("no setting \"{name}\"{near}"));
    };
    // Version numbers such as 12.8 are kept as text.
    match value.parse::<f64>().ok().filter(|_| !known.ends_with("_version")) {
        Some(number) => settings.number(known, Some(number), Origin::User),
        None => settings.note(known, value, Origin::User),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn file_specific_settings_override_common_settings() {
        let named = NamedFile::parse("run:2.json:global_batch_size=32,seq_len=2048,software_version=12.8").unwrap();
        assert_eq!(named.path, Path::new("run:2.json"));
        let mut all = Config::default();
        assign(&mut all, "seq_len=4096").unwrap();
        assign(&mut all, "num_gpus = 8").unwrap();
        let settings = named.merged_with(&all);
        assert_eq!(settings.get("seq_len"), Some(2048.0));
        assert_eq!(settings.get("num_gpus"), Some(8.0));
        assert_eq!(settings.text("software_version"), Some("12.8"));
        assert_eq!(NamedFile::parse("a:b.log").unwrap().path, Path::new("a:b.log"));
    }

    #[test]
    fn settings_have_all_names_of_their_knob() {
        for name in ["tensor_parallel", "tp", "tensor_parallel_size", "tp_size"] {
            let mut settings = Config::default();
            assign(&mut settings, &format!("{name}=2")).unwrap();
            assert_eq!(settings.get("tensor_parallel"), Some(2.0), "{name}");
        }
    }

    #[test]
    fn unknown_setting_error_suggests_the_nearest_name() {
        let problem = NamedFile::parse("a.log:seqlen=1").unwrap_err();
        assert!(problem.contains("seq_len"), "{problem}");
        assert!(NamedFile::parse("a.log:num_gpus=8,x").unwrap_err().contains("NAME=VALUE"));
    }
}
