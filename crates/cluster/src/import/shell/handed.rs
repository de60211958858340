//! What a script passes to other programs: jobs to a batch system, manifests to a cluster, and templates to `envsubst`.

use super::text::Text;
use super::{Shell, Var, join, unknown};
use crate::import::place::Place;

/// Maximum number of jobs and of manifests that are kept per script.
const MAX_KEPT: usize = 32;

/// A job that the script submits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Submission {
    /// Script of the job. A here-document is expanded unless its delimiter is quoted.
    pub(crate) script: Text,
    /// Options of the submitting command.
    pub(crate) options: Vec<Text>,
    /// Arguments of the job's script.
    pub(crate) args: Vec<Text>,
    /// Variables that the job inherits.
    pub(crate) inherited: Vec<(String, String, Place)>,
}

impl Shell<'_> {
    /// Records a job or manifest that a command passes on. Returns whether the command needs no further handling.
    pub(super) fn record_submission(&mut self, words: &[Text], env: &[(String, Text)]) -> bool {
        let name = words.first().map_or("", |w| w.as_str().rsplit('/').next().unwrap_or(""));
        match name {
            "sbatch" | "qsub" | "bsub" => self.submit(words, env),
            "kubectl" | "oc" => self.apply(words),
            _ => false,
        }
    }

    /// Records `sbatch [options] [script [arguments]]`, or the script on standard input.
    fn submit(&mut self, words: &[Text], env: &[(String, Text)]) -> bool {
        let file = words.iter().enumerate().skip(1).find_map(|(i, w)| Some((i, self.script_file(w.as_str())?)));
        let (at, script) = match (file, self.stdin.clone()) {
            (Some(found), _) => found,
            (None, Some(text)) if text.as_str().trim_start().starts_with('#') => (words.len(), text),
            _ => return false,
        };
        let options = words.get(1..at).unwrap_or(&[]).to_vec();
        let mut inherited: Vec<(String, String, Place)> = Vec::new();
        for name in &self.exported {
            if let Some(value) = self.vars.get(name).map(join) {
                inherited.push((name.clone(), value.as_str().to_owned(), value.line()));
            }
        }
        inherited.extend(env.iter().map(|(k, v)| (k.clone(), v.as_str().to_owned(), v.line())));
        for o in options.iter().filter_map(|o| o.as_str().strip_prefix("--export=").map(|list| (list, o.line()))) {
            let stated = o.0.split(',').filter_map(|p| p.split_once('='));
            inherited.extend(stated.map(|(k, v)| (k.to_owned(), v.to_owned(), o.1)));
        }
        inherited.retain(|(_, v, _)| !unknown::is_in(v));
        let args = words.get(at + 1..).unwrap_or(&[]).to_vec();
        if self.out.jobs.len() < MAX_KEPT && self.consume_budget(script.len()) {
            self.out.jobs.push(Submission { script, options, args, inherited });
        }
        true
    }

    /// Records the manifest on the standard input of `kubectl apply -f -`. Files that the script writes are read in any
    /// case.
    fn apply(&mut self, words: &[Text]) -> bool {
        let has = |names: &[&str]| words.iter().any(|w| names.contains(&w.as_str()));
        let reads = has(&["apply", "create", "replace"]) && (has(&["-"]) || has(&["-f-"]));
        if let Some(text) = self.stdin.clone().filter(|t| reads && !t.is_empty())
            && self.out.manifests.len() < MAX_KEPT
            && self.consume_budget(text.len())
        {
            self.out.manifests.push(text);
        }
        true
    }

    /// Output of `envsubst`: replaces `$NAME` and `${NAME}` in `input`. References to unset variables are kept.
    pub(super) fn envsubst(&self, input: &Text) -> Text {
        let s = input.as_str();
        let mut out = Text::new("", input.line());
        let mut done = 0;
        for (at, _) in s.match_indices('$') {
            if at < done {
                continue;
            }
            let rest = s.get(at + 1..).unwrap_or("");
            let braced = rest.starts_with('{');
            let body = rest.get(usize::from(braced)..).unwrap_or("");
            let len = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(body.len());
            let name = body.get(..len).unwrap_or("");
            if name.is_empty() || (braced && !body.get(len..).is_some_and(|t| t.starts_with('}'))) {
                continue;
            }
            let Some(value) = self.vars.get(name).map(join) else { continue };
            out.append(&input.slice(done, at));
            out.push(value.as_str(), value.line());
            done = at + 1 + len + 2 * usize::from(braced);
        }
        out.append(&input.slice(done, s.len()));
        out
    }

    /// The variable to which a name refers after `local -n name=other`.
    pub(super) fn resolve_nameref(&self, name: &str) -> String {
        self.references.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Marks a variable as inherited by commands.
    pub(super) fn export(&mut self, name: &str) {
        if self.exported.len() < 10_000 {
            self.exported.insert(name.to_owned());
        }
    }

    /// Sets an array variable to the lines of a text, as `mapfile -t` does.
    pub(super) fn set_lines(&mut self, name: &str, text: &Text) {
        self.vars.insert(name.to_owned(), Var::Array(text.split(|c| c == '\n')));
    }
}
