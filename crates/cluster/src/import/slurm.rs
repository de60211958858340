//! `#SBATCH` directives, and options of `srun`.

use super::fields::ReadFields;
use super::names;
use super::value::parse_int;
use crate::import::field::{Field, Type};
use crate::import::place::Place;

/// Directives with their lines.
#[derive(Debug, Default, Clone)]
pub(crate) struct Directives {
    pub(crate) list: Vec<(String, Option<String>, Place)>,
}

/// Maximum number of tasks of a job array that are read individually.
const MAX_TASKS: usize = 16;

const SHORT: &[(&str, &str)] = &[
    ("N", "nodes"),
    ("n", "ntasks"),
    ("c", "cpus-per-task"),
    ("t", "time"),
    ("p", "partition"),
    ("A", "account"),
    ("J", "job-name"),
    ("C", "constraint"),
    ("q", "qos"),
    ("G", "gpus"),
    ("w", "nodelist"),
    ("o", "output"),
    ("e", "error"),
    ("D", "chdir"),
    ("a", "array"),
];

/// Reads the directives. Like Slurm, stops at the first command.
pub(crate) fn directives(text: &str, place: impl Fn(u32) -> Place) -> Directives {
    let mut out = Directives::default();
    for (line, n) in text.lines().zip(1..) {
        let t = line.trim_end_matches('\r');
        let Some(rest) = t.strip_prefix("#SBATCH") else {
            let t = t.trim();
            if t.is_empty() || t.starts_with('#') {
                continue;
            }
            break;
        };
        let body = rest.split(" #").next().unwrap_or(rest).split("\t#").next().unwrap_or(rest).trim();
        out.read(body.split_whitespace(), place(n));
    }
    out
}

impl Directives {
    /// Adds options of the submitting command, which take precedence over the directives.
    pub(crate) fn add(&mut self, options: &[super::shell::Text]) {
        let line = options.first().map_or(Place::NONE, super::shell::Text::line);
        self.read(options.iter().map(super::shell::Text::as_str), line);
    }

    fn read<'w>(&mut self, words: impl Iterator<Item = &'w str>, line: Place) {
        let mut words = words.peekable();
        while let Some(w) = words.next() {
            let (name, mut value) = if let Some(long) = w.strip_prefix("--") {
                match long.split_once('=') {
                    Some((n, v)) => (n.to_owned(), Some(v.to_owned())),
                    None => (long.to_owned(), None),
                }
            } else if let Some(short) = w.strip_prefix('-') {
                let key: String = short.chars().take(1).collect();
                let Some((_, long)) = SHORT.iter().find(|(s, _)| *s == key) else { continue };
                let tail = short.get(key.len()..).unwrap_or("").trim_start_matches('=');
                ((*long).to_owned(), (!tail.is_empty()).then(|| tail.to_owned()))
            } else {
                continue;
            };
            if value.is_none()
                && let Some(v) = words.peek().filter(|v| !v.starts_with('-'))
            {
                value = Some((*v).to_owned());
                words.next();
            }
            let value = value.map(|v| v.trim_matches(['"', '\'']).to_owned());
            self.list.push((name, value, line));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<(&str, Place)> {
        self.list.iter().rev().find(|(n, ..)| n == name).and_then(|(_, v, l)| Some((v.as_deref()?, *l)))
    }

    fn int(&self, name: &str) -> Option<(i64, Place)> {
        let (v, l) = self.get(name)?;
        let first: String = v.chars().take_while(char::is_ascii_digit).collect();
        Some((parse_int(&first)?, l))
    }

    pub(crate) fn nodes(&self) -> Option<(i64, Place)> {
        self.int("nodes")
    }

    /// Number of accelerators per node, from any of the directives that state it.
    pub(crate) fn per_node(&self) -> Option<(i64, Place)> {
        let count = |name: &str| {
            let (v, l) = self.get(name)?;
            Some((count_of(v)?, l))
        };
        count("gpus-per-node")
            .or_else(|| self.get("gres").and_then(|(v, l)| Some((gres(v)?, l))))
            .or_else(|| {
                let (per_task, l) = count("gpus-per-task")?;
                let tasks = self.int("ntasks-per-node").map(|t| t.0).or_else(|| {
                    let (t, n) = (self.int("ntasks")?.0, self.nodes()?.0);
                    (n > 0 && t % n == 0).then(|| t / n)
                })?;
                Some((per_task.checked_mul(tasks)?, l))
            })
            .or_else(|| {
                let (all, l) = count("gpus")?;
                let n = self.nodes().map_or(1, |n| n.0);
                (n > 0 && all % n == 0).then(|| (all / n, l))
            })
    }

    /// Tasks of a job array, if there are few enough to read each of them: `0-2`, `1,4`, `0-8:4%2`.
    pub(crate) fn array(&self) -> Option<(Vec<u32>, Place)> {
        let (list, line) = self.get("array")?;
        let mut tasks = Vec::new();
        for part in list.split('%').next()?.split(',') {
            let (range, step) = part.split_once(':').map_or(Some((part, 1)), |(r, s)| Some((r, s.parse().ok()?)))?;
            let (from, to) = match range.split_once('-') {
                Some((from, to)) => (from.trim().parse().ok()?, to.trim().parse().ok()?),
                None => (range.trim().parse().ok()?, range.trim().parse().ok()?),
            };
            let (from, to): (u32, u32) = (from, to);
            if step == 0 || from > to || (to - from) as usize / step >= MAX_TASKS {
                return None;
            }
            tasks.extend((from..=to).step_by(step));
        }
        (tasks.len() > 1 && tasks.len() <= MAX_TASKS).then_some((tasks, line))
    }

    /// Variables that Slurm sets for the job.
    pub(crate) fn variables(&self) -> Vec<(String, String, Place)> {
        let mut out = Vec::new();
        let mut put = |name: &str, value: Option<(i64, Place)>| {
            if let Some((v, l)) = value {
                out.push((name.to_owned(), v.to_string(), l));
            }
        };
        let nodes = self.nodes();
        put("SLURM_NNODES", nodes);
        put("SLURM_JOB_NUM_NODES", nodes);
        put("SLURM_GPUS_PER_NODE", self.per_node().filter(|_| self.get("gpus-per-node").is_some()));
        put("SLURM_GPUS_ON_NODE", self.per_node());
        put("SLURM_NTASKS_PER_NODE", self.int("ntasks-per-node"));
        put("SLURM_CPUS_PER_TASK", self.int("cpus-per-task"));
        let tasks = self.int("ntasks").or_else(|| {
            let (n, l) = nodes?;
            Some((self.int("ntasks-per-node").map_or(Some(n), |t| n.checked_mul(t.0))?, l))
        });
        put("SLURM_NTASKS", tasks);
        put("SLURM_NPROCS", tasks);
        if let Some((name, l)) = self.get("job-name") {
            out.push(("SLURM_JOB_NAME".to_owned(), name.to_owned(), l));
        }
        out
    }

    /// Sets the fields that the directives state.
    pub(crate) fn report(&self, out: &mut ReadFields) {
        for (name, value, line) in &self.list {
            let Some(field) = Field::in_section("slurm", &name.replace('-', "_")) else { continue };
            match (field, value) {
                (Field::SlurmExclusive, _) => {
                    out.set(field, true, *line);
                }
                (_, Some(v)) if v.starts_with('<') || v.contains(['$', '{']) => {}
                (Field::SlurmGpus | Field::SlurmGpusPerNode | Field::SlurmGpusPerTask, Some(v)) => {
                    if let Some(n) = count_of(v) {
                        out.set(field, n, *line);
                    }
                }
                (_, Some(v)) if field.kind() == Type::Int => {
                    let first: String = v.chars().take_while(char::is_ascii_digit).collect();
                    if let Some(n) = parse_int(&first) {
                        out.set(field, n, *line);
                    }
                }
                (_, Some(v)) => {
                    out.set(field, v.as_str(), *line);
                }
                (_, None) => {}
            }
        }
        if let Some((n, l)) = self.nodes() {
            out.set(Field::Nodes, n, l);
        }
        if let Some((n, l)) = self.per_node() {
            out.set(Field::AcceleratorsPerNode, n, l);
        }
        for name in ["constraint", "gres", "gpus-per-node", "gpus-per-task", "gpus", "partition"] {
            // A partition may be named after an architecture, which does not identify the accelerator.
            let vague = |v: &str| {
                let low = v.to_ascii_lowercase();
                name == "partition" && (low.contains("hopper") || low.contains("blackwell"))
            };
            if let Some((v, l)) = self.get(name).filter(|(v, _)| !vague(v))
                && let Some(a) = names::accelerator_label(
                    v.split(':').filter(|p| p.parse::<u32>().is_err()).collect::<Vec<_>>().join(":").as_str(),
                )
            {
                out.fields.set_implied(Field::Accelerator, a, l);
            }
        }
    }
}

/// Parses a count such as `8` or `h100:8`.
fn count_of(v: &str) -> Option<i64> {
    parse_int(v.rsplit(':').next()?)
}

/// Number of accelerators in `gpu:8` or `gpu:h100:8,nvme:1`; 1 for a bare `gpu`.
fn gres(v: &str) -> Option<i64> {
    let part = v.split(',').find(|p| p.trim_start_matches("gres/").starts_with("gpu"))?;
    let part = part.split('(').next().unwrap_or(part);
    match part.rsplit_once(':') {
        Some((_, n)) => parse_int(n).or(Some(1)),
        None => part.split_once('=').map_or(Some(1), |(_, n)| parse_int(n)),
    }
}

/// Reads nodes and devices from the options of `srun` before a program.
pub(crate) fn srun(words: &[super::shell::Text], out: &mut ReadFields) {
    let Some(at) = words.iter().position(|w| super::argv::base(w.as_str()) == "srun") else { return };
    let args = super::argv::parse(words.get(at + 1..).unwrap_or(&[]));
    let first = |names: &[&str]| args.flag(names).and_then(|n| Some((n.int()?, n.line)));
    let short = args.flags.iter().rev().find(|f| f.name == "-N").and_then(|f| Some((f.node.int()?, f.node.line)));
    // A step on a single node starts a helper, not the job.
    if let Some((n, l)) = first(&["nodes"]).or(short).filter(|(n, _)| *n > 1) {
        out.fields.set_implied(Field::Nodes, n, l);
    }
    for names in [&["gpus_per_node"][..], &["gres"][..]] {
        let Some(node) = args.flag(names) else { continue };
        let n = node.text().and_then(|t| if names == ["gres"] { gres(&t) } else { count_of(&t) });
        if let Some(n) = n {
            out.fields.set_implied(Field::AcceleratorsPerNode, n, node.line);
        }
    }
}
