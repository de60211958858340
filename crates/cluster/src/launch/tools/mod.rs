//! One module per tool, with its command, its configuration, and the settings that it can express.

mod accelerate;
mod bridge;
mod deepspeed;
mod dynamo;
mod features;
mod llamacpp;
mod load;
mod maxtext;
mod megatron;
mod nemo;
mod primus;
mod recomputation;
mod serving;
mod sglang;
mod torchtitan;
mod trtllm;
mod vllm;

use atlas_core::plan::Format;
use atlas_plan::knob::Knob;

use super::job::Job;
use super::tool::Tool;
use super::words::{Arguments, Word};
use super::{Unsupported, trains};
use crate::flags::{self, FlagError};

/// How the program is started on each node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Launcher {
    /// `torchrun`, with one process per device.
    Torchrun,
    /// `accelerate launch`, with this configuration file in the directory of the script.
    Accelerate(&'static str),
    /// Directly, with one process per node.
    Direct,
}

/// How a server is distributed over several nodes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MultiNode {
    /// Number of nodes per server.
    pub(crate) nodes: u64,
    /// Flags for the head node's address, the rank of the node and the like. `$HEAD_NODE` and `$NODE_RANK` are set.
    pub(crate) flags: String,
}

/// A configuration file in the directory of the script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    /// Name of the table of flags that contains its keys.
    pub(crate) table: &'static str,
    pub(crate) keys: Vec<(String, Option<String>)>,
}

/// A client that generates the planned load: `vllm bench serve`, which supports all engines with the OpenAI API.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Client {
    pub(crate) arguments: Arguments,
    /// The first release of vLLM with all of them.
    pub(crate) since: &'static str,
}

/// A tool's command and configuration for a job, before wrapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    /// Name of the table of flags for the program.
    pub(crate) table: &'static str,
    /// Default image.
    pub(crate) image: String,
    /// Variables with defaults, at the top of the script.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Environment variables for the program.
    pub(crate) exports: Vec<(&'static str, Word)>,
    pub(crate) start: Launcher,
    /// Words that start the program.
    pub(crate) program: Vec<Word>,
    pub(crate) arguments: Arguments,
    pub(crate) configs: Vec<Config>,
    pub(crate) expressed: Vec<Knob>,
    pub(crate) refused: Vec<Unsupported>,
    pub(crate) notes: Vec<String>,
    /// Number of servers. Each has its own devices and is started with the same command.
    pub(crate) servers: u64,
    /// Number of devices of one server, or of its part on one node.
    pub(crate) devices: u64,
    /// Port of a server.
    pub(crate) port: Option<u64>,
    pub(crate) spread: Option<MultiNode>,
    /// Arguments of a client that generates the planned load.
    pub(crate) client: Option<Client>,
    /// A manifest in the tool's own format, in place of wrapping.
    pub(crate) manifest: Option<String>,
}

impl Draft {
    /// Creates an empty draft for a table of flags.
    pub(crate) fn new(table: &'static str, job: &Job<'_>, image: impl Into<String>) -> Draft {
        Draft {
            table,
            image: job.options.image.clone().unwrap_or_else(|| image.into()),
            variables: Vec::new(),
            exports: Vec::new(),
            start: if trains(job) { Launcher::Torchrun } else { Launcher::Direct },
            program: Vec::new(),
            arguments: Arguments::default(),
            configs: Vec::new(),
            expressed: Vec::new(),
            refused: Vec::new(),
            notes: Vec::new(),
            servers: 1,
            devices: job.per_node,
            port: None,
            spread: None,
            client: None,
            manifest: None,
        }
    }

    /// Records a setting that the tool cannot express.
    pub(crate) fn reject(&mut self, setting: &str, reason: impl Into<String>) {
        let refused = Unsupported::new(setting, reason);
        if !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
    }

    /// Adds a note, unless it is there already.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Rejects a KV cache format that the server does not support.
    pub(crate) fn reject_cache_format(&mut self, format: Format) {
        self.reject("kv_precision", format!("the tool does not support a KV cache in {}", format.name()));
    }

    /// Checks all flags and keys against the tables, and returns the errors.
    pub(crate) fn flag_errors(&self, release: Option<&str>, tool: Tool) -> Vec<Unsupported> {
        let own = self.arguments.settings().map(|(flag, value)| (self.table, flag, value));
        let files = self
            .configs
            .iter()
            .flat_map(|config| config.keys.iter().map(|(key, value)| (config.table, key.as_str(), value.as_deref())));
        let nodes = self.spread.iter().flat_map(|spread| spread.flags.split(' '));
        let nodes =
            nodes.filter(|word| word.starts_with("--")).map(|flag| (self.table, flag.trim_end_matches(')'), None));
        let client = self.client.iter().flat_map(|client| client.arguments.settings());
        // The client states the release that it needs, which may differ from the server's.
        let client = client.map(|(flag, value)| ("bench", flag, value, None));
        own.chain(files)
            .chain(nodes)
            .map(|(table, flag, value)| (table, flag, value, release))
            .chain(client)
            .filter_map(|(table, flag, value, release)| {
                let reason = match flags::check(table, flag, value, release).err()? {
                    FlagError::Unknown => format!("{} has no such flag", tool.label()),
                    FlagError::Value(choices) => {
                        format!("takes one of {choices}, not {}", value.unwrap_or("this"))
                    }
                    FlagError::Since(since) => {
                        let release = release.unwrap_or("this release");
                        // Dynamo's workers are started with the flags of their engine, whose release this is.
                        let engine = Tool::named(table).unwrap_or(tool).label();
                        format!("{engine} supports it since {since}; the scenario's release is {release}")
                    }
                };
                Some(Unsupported::new(flag, reason))
            })
            .collect()
    }
}

/// Creates the tool's draft for the job.
pub(crate) fn draft(tool: Tool, job: &Job<'_>) -> Result<Draft, Vec<Unsupported>> {
    let made = match tool {
        Tool::MegatronLm => megatron::draft(job),
        Tool::MegatronBridge => bridge::draft(job),
        Tool::Nemo => nemo::draft(job),
        Tool::Primus => primus::draft(job),
        Tool::Torchtitan => torchtitan::draft(job),
        Tool::DeepSpeed => deepspeed::draft(job),
        Tool::Accelerate => accelerate::draft(job),
        Tool::MaxText => maxtext::draft(job),
        Tool::Vllm => vllm::draft(job),
        Tool::Sglang => sglang::draft(job),
        Tool::TensorRtLlm => trtllm::draft(job),
        Tool::LlamaCpp => llamacpp::draft(job),
        Tool::Dynamo => dynamo::draft(job),
    };
    let mut draft = made.map_err(|problem| vec![problem])?;
    if tool.trains() && tool != Tool::MaxText {
        // Expandable segments reduce the memory lost to fragmentation. PyTorch also reads this variable on ROCm.
        let value = Word::Shell("\"${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}\"");
        draft.exports.push(("PYTORCH_CUDA_ALLOC_CONF", value));
    }
    Ok(draft)
}

/// Default image of PyTorch trainers.
pub(crate) fn pytorch_image(job: &Job<'_>) -> &'static str {
    if job.vendor == "AMD" { "rocm/pytorch:latest" } else { "nvcr.io/nvidia/pytorch:25.09-py3" }
}

/// Error for a job of the other mode. [`Job::of`] rejects such jobs before.
pub(crate) fn other_mode() -> Unsupported {
    Unsupported::new("mode", "the tool does not support this mode")
}
