//! Settings of the endpoint, from the environment or from a file that only its owner can read.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atlas_document::parse::parse;
use atlas_document::sources::{config_dir, read_text};
use atlas_document::{Diagnostics, Node};

/// Protocol of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `/v1/chat/completions`, as implemented by OpenAI, vLLM, SGLang, llama.cpp, Ollama and others.
    OpenAi,
    /// `models/NAME:streamGenerateContent` of the Gemini API.
    Gemini,
}

/// An API key, hidden in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Secret {
        Secret(key.into())
    }

    /// The key in plain text, for sending.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Settings for reaching a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The protocol.
    pub protocol: Protocol,
    /// The base URL: `https://api.openai.com/v1`, `http://127.0.0.1:8000/v1`.
    pub url: String,
    /// Name of the model.
    pub model: String,
    /// API key, if the endpoint needs one.
    pub key: Option<Secret>,
    /// Timeout for the connection, the response, and each part of it.
    pub timeout: Duration,
    /// Retries after a busy or failing endpoint.
    pub retries: u32,
    /// Delay before the first retry; it doubles with each one.
    pub backoff: Duration,
}

/// Error while loading the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No endpoint is configured.
    #[error(
        "no endpoint is configured: set ATLAS_ASSISTANT_URL and ATLAS_ASSISTANT_MODEL (and ATLAS_ASSISTANT_KEY), or write \
         url, model and key to {}, readable by you alone",
        file.as_ref().map_or_else(|| "assistant.yaml in the configuration directory".to_owned(), |file| file.display().to_string())
    )]
    Missing {
        /// Path at which the file is expected.
        file: Option<PathBuf>,
    },
    /// The file is readable by others.
    #[error("{}: others can read this file, which may hold a key (mode {mode:03o}); run `chmod 600` on it", file.display())]
    Permissions {
        /// Path of the file.
        file: PathBuf,
        /// File mode.
        mode: u32,
    },
    /// A value in the file or in a variable is invalid.
    #[error("{place}: {message}")]
    Wrong {
        /// File or variable.
        place: String,
        /// Description of the problem.
        message: String,
    },
}

const TIMEOUT: Duration = Duration::from_secs(60);
const RETRIES: u32 = 3;
const BACKOFF: Duration = Duration::from_millis(500);

/// Settings found in one source.
#[derive(Debug, Default)]
struct SourceSettings {
    protocol: Option<String>,
    url: Option<String>,
    model: Option<String>,
    key: Option<String>,
    timeout_s: Option<String>,
}

impl Settings {
    /// Loads the settings from the environment, and missing ones from `assistant.yaml` in the configuration directory.
    ///
    /// # Errors
    /// Nothing is configured, a value is invalid, or the file is readable by others.
    pub fn load() -> Result<Settings, SettingsError> {
        let file = config_dir().map(|dir| dir.join("assistant.yaml"));
        Settings::from(&|name| std::env::var(name).ok(), file.as_deref())
    }

    /// Like [`Settings::load`], with the given variables and file.
    ///
    /// # Errors
    /// The same as [`Settings::load`].
    pub fn from(variable: &dyn Fn(&str) -> Option<String>, file: Option<&Path>) -> Result<Settings, SettingsError> {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let environment = SourceSettings {
            protocol: set("ATLAS_ASSISTANT_PROTOCOL"),
            url: set("ATLAS_ASSISTANT_URL"),
            model: set("ATLAS_ASSISTANT_MODEL"),
            key: set("ATLAS_ASSISTANT_KEY"),
            timeout_s: set("ATLAS_ASSISTANT_TIMEOUT_S"),
        };
        let written = match file.filter(|file| file.exists()) {
            Some(file) => read(file)?,
            None => SourceSettings::default(),
        };
        // A key is only sent to the endpoint that is named in the same source.
        let key = if environment.url.is_some() { environment.key } else { environment.key.or(written.key) };
        let (Some(url), Some(model)) = (environment.url.or(written.url), environment.model.or(written.model)) else {
            return Err(SettingsError::Missing { file: file.map(Path::to_path_buf) });
        };
        let wrong = |place: &str, message: String| SettingsError::Wrong { place: place.to_owned(), message };
        let url = url.trim_end_matches('/').to_owned();
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(wrong("url", format!("found \"{url}\", expected http:// or https://")));
        }
        if key.is_some() && url.starts_with("http://") && !is_local(&url) {
            return Err(wrong("url", format!("a key is not sent without encryption: {url} needs https://")));
        }
        let protocol = match environment.protocol.or(written.protocol).map(|name| name.to_lowercase()).as_deref() {
            Some("openai") => Protocol::OpenAi,
            Some("gemini") => Protocol::Gemini,
            None if url.contains("generativelanguage.googleapis.com") && !url.contains("/openai") => Protocol::Gemini,
            None => Protocol::OpenAi,
            Some(other) => return Err(wrong("protocol", format!("found \"{other}\", expected openai or gemini"))),
        };
        let timeout = match environment.timeout_s.or(written.timeout_s) {
            None => TIMEOUT,
            Some(text) => match text.parse::<f64>() {
                Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Duration::from_secs_f64(seconds),
                _ => return Err(wrong("timeout_s", format!("found \"{text}\", expected seconds from 0.1 to 3600"))),
            },
        };
        let key = key.map(Secret::new);
        Ok(Settings { protocol, url, model, key, timeout, retries: RETRIES, backoff: BACKOFF })
    }
}

/// Whether a URL refers to this machine.
pub(super) fn is_local(url: &str) -> bool {
    let host = url.trim_start_matches("https://").trim_start_matches("http://");
    let host = host.split('/').next().unwrap_or(host);
    let name = if host.starts_with('[') {
        host.split(']').next().unwrap_or(host)
    } else {
        host.split(':').next().unwrap_or(host)
    };
    matches!(name, "localhost" | "[::1")
        || name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

/// Reads the file; fails if it is readable by others.
fn read(file: &Path) -> Result<SourceSettings, SettingsError> {
    let wrong = |message: String| SettingsError::Wrong { place: file.display().to_string(), message };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(SettingsError::Permissions { file: file.to_path_buf(), mode });
        }
    }
    let text = read_text(file).map_err(wrong)?;
    let mut problems = Diagnostics::new();
    let document = parse(&Arc::from(file.display().to_string()), &text, &mut problems);
    if problems.has_errors() {
        return Err(wrong(problems.messages()));
    }
    let entries = document.as_ref().and_then(Node::entries);
    let Some(entries) = entries else { return Err(wrong("expected url, model and key".to_owned())) };
    let mut settings = SourceSettings::default();
    for entry in entries {
        let (name, node): (&str, &Node) = (&entry.key, &entry.value);
        let place = match name {
            "protocol" => &mut settings.protocol,
            "url" => &mut settings.url,
            "model" => &mut settings.model,
            "key" => &mut settings.key,
            "timeout_s" => &mut settings.timeout_s,
            other => {
                return Err(wrong(format!(
                    "unknown field `{other}`; known fields: protocol, url, model, key, timeout_s"
                )));
            }
        };
        *place = Some(node.text().map_or_else(|| node.describe(), str::to_owned));
    }
    Ok(settings)
}
