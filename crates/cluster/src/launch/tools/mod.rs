//! One module for each tool: its command, its configuration, and which settings it can express.

mod accelerate;
mod bridge;
mod deepspeed;
mod dynamo;
mod features;
mod llamacpp;
mod maxtext;
mod megatron;
mod nemo;
mod primus;
mod serving;
mod sglang;
mod torchtitan;
mod trtllm;
mod vllm;

use atlas_core::plan::Format;
use atlas_plan::knob::Knob;

use super::job::Job;
use super::table::{self, Objection};
use super::tool::Tool;
use super::words::{Arguments, Word};
use super::{Unsupported, trains};

/// What starts the program on every node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Start {
    /// `torchrun`, one process for each device.
    Torchrun,
    /// `accelerate launch` with this configuration beside the script.
    Accelerate(&'static str),
    /// One process on each node, started as it is.
    Direct,
}

/// A server's place among the nodes, where one takes several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    /// Nodes of one server.
    pub(crate) nodes: u64,
    /// Flags that name the head, the node's own rank and the like; `$HEAD_NODE` and `$NODE_RANK` are set.
    pub(crate) flags: String,
}

/// A configuration file beside the script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    /// The table of flags that its keys are in, and the keys with plain values.
    pub(crate) table: &'static str,
    pub(crate) keys: Vec<(String, Option<String>)>,
}

/// What a tool makes of a job, before it is wrapped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    /// The table of flags of the program.
    pub(crate) table: &'static str,
    /// The usual image.
    pub(crate) image: String,
    /// Variables with defaults, at the head of the script.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Variables that the program reads.
    pub(crate) exports: Vec<(&'static str, Word)>,
    pub(crate) start: Start,
    /// The program.
    pub(crate) program: Vec<Word>,
    pub(crate) arguments: Arguments,
    pub(crate) configs: Vec<Config>,
    pub(crate) expressed: Vec<Knob>,
    pub(crate) refused: Vec<Unsupported>,
    pub(crate) notes: Vec<String>,
    /// Servers, each with devices of its own, started with the same command.
    pub(crate) servers: u64,
    /// Devices of one server or of one node's part of it.
    pub(crate) devices: u64,
    /// The port of a server.
    pub(crate) port: Option<u64>,
    pub(crate) spread: Option<Spread>,
    /// A client that sends the planned load.
    pub(crate) client: Option<Arguments>,
    /// A manifest of the tool's own kind, instead of wrapping.
    pub(crate) manifest: Option<String>,
}

impl Draft {
    /// An empty draft for a table of flags.
    pub(crate) fn new(table: &'static str, job: &Job<'_>, image: impl Into<String>) -> Draft {
        Draft {
            table,
            image: job.options.image.clone().unwrap_or_else(|| image.into()),
            variables: Vec::new(),
            exports: Vec::new(),
            start: if trains(job) { Start::Torchrun } else { Start::Direct },
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

    /// Notes a value that the tool does not have.
    pub(crate) fn refuse(&mut self, setting: &str, reason: impl Into<String>) {
        self.refused.push(Unsupported::new(setting, reason));
    }

    /// Refuses weights that no flag makes from those published in 16 bit.
    pub(crate) fn refuse_weights(&mut self, format: Format) {
        let reason = format!(
            "{} needs weights published in it; name them with --model-path and drop the setting",
            format.name()
        );
        self.refuse("precision", reason);
    }

    /// Refuses a format of keys and values that the server does not keep.
    pub(crate) fn refuse_cache(&mut self, format: Format) {
        self.refuse("kv_precision", format!("{} is not a format of its cache", format.name()));
    }

    /// What the table of flags objects to.
    pub(crate) fn objections(&self, release: Option<&str>, tool: Tool) -> Vec<Unsupported> {
        let own = self.arguments.settings().map(|(flag, value)| (self.table, flag, value));
        let files = self
            .configs
            .iter()
            .flat_map(|config| config.keys.iter().map(|(key, value)| (config.table, key.as_str(), value.as_deref())));
        let client = self.client.iter().flat_map(Arguments::settings).map(|(flag, value)| ("bench", flag, value));
        own.chain(files)
            .chain(client)
            .filter_map(|(table, flag, value)| {
                let reason = match table::check(table, flag, value, release).err()? {
                    Objection::Unknown => format!("{} has no such flag", tool.label()),
                    Objection::Value(choices) => {
                        format!("takes one of {choices}, not {}", value.unwrap_or("this"))
                    }
                    Objection::Since(since) => {
                        let release = release.unwrap_or("this release");
                        format!("{} has it since {since}; the scenario's release is {release}", tool.label())
                    }
                };
                Some(Unsupported::new(flag, reason))
            })
            .collect()
    }
}

/// The tool's command for the job.
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
        // Segments that grow lose less memory to fragmentation. PyTorch reads the variable on ROCm too.
        let value = Word::Shell("\"${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}\"");
        draft.exports.push(("PYTORCH_CUDA_ALLOC_CONF", value));
    }
    Ok(draft)
}

/// The complaint about a job of the other mode; [`Job::of`] has refused those before.
pub(crate) fn other_mode() -> Unsupported {
    Unsupported::new("mode", "the tool does not run this mode")
}
