//! `atlas post-train`.

use color_eyre::eyre::eyre;
use serde_json::{Map, Value, json};

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::{output, pick};
use atlas_config::workload::PostTrainingMethod;
use atlas_core::count::Count;
use atlas_core::field::Group;
use atlas_core::sort;
use atlas_core::units;
use atlas_plan::knob::{self, KnobValues as _, Overrides};
use atlas_plan::post_training::{Step, StepOptions, step};
use atlas_plan::scenario::Parts;
use atlas_report::table::{Table, left, right};
use atlas_report::{Format, csv, to_json, to_yaml};

/// What is trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// Reinforcement learning: the model samples responses, which are scored and trained on (PPO, GRPO)
    #[value(alias = "ppo", alias = "grpo")]
    Rl,
    /// Direct preference optimization: trains on pairs of responses, with a frozen reference model
    Dpo,
}

/// Estimate a step of reinforcement learning or preference optimization: time by phase, idle share, cost.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas post-train --target h100-sxm-64 --train llama3.1-8b-rl-train
  atlas post-train --target h100-sxm-64 --train llama3.1-8b-rl-train \\
    --rollout llama3.1-8b-rl-rollout --rollout-nodes 4 --asynchronous
  atlas post-train --method dpo --target h100-sxm-64 --train llama3-70b-sft

Both workloads must use the same model. With rl, the rollout's prompt and output lengths apply to training, too; with \
dpo, the lengths and the number format are those of training, and no serving workload is needed. The time to load frozen \
models that do not fit beside training is part of scoring; the time to move the states of training and rollout to host \
memory and back is not part of the estimate. For supervised fine-tuning and LoRA, use `atlas run` with a workload such as llama3-70b-lora.")]
pub struct Args {
    /// Target
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Training workload: layout, precision and batch of an optimizer step
    #[arg(long, value_name = "WORKLOAD")]
    pub train: String,
    /// Serving workload for rollouts and frozen models: layout and lengths [default: the one named under post_training
    /// in the training workload; with dpo, the model on as few accelerators as fit]
    #[arg(long, value_name = "WORKLOAD")]
    pub rollout: Option<String>,
    /// Training method [default: the workload's, else rl]
    #[arg(long, value_enum)]
    pub method: Option<Method>,
    /// Prompts per step; pairs per step with dpo [default: the workload's, else 128]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub prompts: Option<u32>,
    /// Responses per prompt [default: the workload's, else 8; always 2 with dpo]
    #[arg(long, alias = "samples", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub responses: Option<u32>,
    /// Frozen models of the same size that score every response: reference, reward [default: the workload's, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub scorers: Option<u32>,
    /// Nodes dedicated to rollouts [default: the workload's, else all nodes alternate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rollout_nodes: Option<u32>,
    /// Generate rollouts of the next step during training, one step off-policy
    #[arg(long)]
    pub asynchronous: bool,
    /// Set a knob of the rollout workload; repeatable (--set applies to training, and to both if it is a knob of the target)
    #[arg(long, value_name = "KNOB=VALUE")]
    pub rollout_set: Vec<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Estimates a step and prints it.
///
/// # Errors
/// The workloads do not match or cannot run.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let find = |workload: &str| Parts::find(&library, &args.target, workload).map_err(Failure::from);
    let train = find(&args.train)?;
    let own = train.workload.post_training.clone().unwrap_or_default();
    let method = args.method.unwrap_or(match own.method {
        Some(PostTrainingMethod::Dpo) => Method::Dpo,
        Some(PostTrainingMethod::Rl) | None => Method::Rl,
    });
    if method == Method::Dpo && args.responses.is_some() {
        return Err(Failure::usage(["--responses: dpo always has two responses per prompt".to_owned()]).into());
    }
    let rollout = args.rollout.as_deref().or(own.rollout.as_deref()).map(find).transpose()?;
    if rollout.is_none() && method == Method::Rl {
        let what = format!("--rollout is required: {} has no rollout under post_training", args.train);
        return Err(Failure::usage([what]).into());
    }
    let train_knobs = args.knobs.overrides(train.fabrics())?;
    let mut rollout_knobs = Overrides::new();
    for text in &args.rollout_set {
        let parsed = knob::assignment(text).and_then(|(knob, value)| Ok((knob, knob.parse(&value, train.fabrics())?)));
        let (knob, setting) = parsed.map_err(|error| Failure::usage([format!("--rollout-set: {error}")]))?;
        if knob.spec().group == Group::Target {
            let what = format!(
                "--rollout-set: {} is a knob of the target, which both workloads use: set it with --set",
                knob.name()
            );
            return Err(Failure::usage([what]).into());
        }
        rollout_knobs.insert(knob, setting);
    }
    let options = StepOptions {
        prompts: args.prompts.map(Count::new).or(own.prompts).unwrap_or(Count::new(128)),
        samples: match method {
            Method::Rl => Some(args.responses.map(Count::new).or(own.responses).unwrap_or(Count::new(8))),
            Method::Dpo => None,
        },
        scorers: args.scorers.map(Count::new).or(own.scorers).unwrap_or(Count::ONE),
        // DPO trains on given data and has no rollouts.
        rollout_nodes: args.rollout_nodes.map(Count::new).or(own.rollout_nodes.filter(|_| method == Method::Rl)),
        asynchronous: args.asynchronous || (method == Method::Rl && own.asynchronous == Some(true)),
    };
    let step = step((&train, &train_knobs), (rollout.as_ref(), &rollout_knobs), &options)
        .map_err(|error| eyre!("{}: {error}", args.target))?;
    let rollout = rollout.as_ref().map(|rollout| &*rollout.workload.name);
    match args.format {
        Format::Table => output::print(&globals.charset().write(&described(&step, &options)))?,
        Format::Csv => output::print(&csv_of(&step))?,
        Format::Json => output::print(&to_json(&document(&step, args, rollout))?)?,
        Format::Yaml => output::print(&to_yaml(&document(&step, args, rollout))?)?,
    }
    Ok(())
}

/// Summary of a step, for all output formats.
fn figures(step: &Step) -> [(&'static str, Option<f64>); 13] {
    [
        ("step_s", Some(step.seconds)),
        ("rollout_s", Some(step.rollout)),
        ("tail_s", Some(step.tail)),
        ("scoring_s", Some(step.scoring)),
        ("training_s", Some(step.training)),
        ("sync_s", Some(step.sync)),
        ("moves_s", Some(step.moves)),
        ("idle_share", Some(step.idle)),
        ("sequences", Some(step.sequences)),
        ("updates", Some(step.updates)),
        ("tokens_per_sec", Some(step.tokens / step.seconds)),
        ("usd_per_step", step.usd),
        ("usd_per_1m_tokens", step.usd.map(|usd| 1e6 * usd / step.tokens)),
    ]
}

fn described(step: &Step, options: &StepOptions) -> String {
    let mut table = Table::new([left("part"), right("time"), right("of the step")]);
    for (name, seconds) in step.parts() {
        table.row([name.to_owned(), units::duration(seconds), units::percent(seconds / step.seconds)]);
    }
    table.row(["step".to_owned(), units::duration(step.seconds), String::new()]);
    let [train, rollout] = step.nodes;
    let nodes = |count: f64| format!("{count} node{}", if count == 1.0 { "" } else { "s" });
    let place = match (options.samples, options.rollout_nodes) {
        (None, _) => nodes(train.into()),
        (_, None) if train == 1.0 => "1 node alternates between rollout and training".to_owned(),
        (_, None) => format!("{train} nodes alternate between rollout and training"),
        _ => format!("{} for rollout, {train} for training", nodes(rollout.into())),
    };
    let how = if options.asynchronous { ", rollouts one step behind" } else { "" };
    let plural = if step.updates == 1.0 { "update" } else { "updates" };
    let cost = step.usd.map_or_else(
        || "no price: set cost.hourly_usd in the target".to_owned(),
        |usd| format!("{} per step, {} per million tokens", units::usd(usd), units::usd(1e6 * usd / step.tokens)),
    );
    format!(
        "{place}{how}; {} responses, {} {plural}\n{}\naccelerators idle {} of the time; {} tok/s; {cost}\n",
        step.sequences,
        step.updates,
        table.render(),
        units::percent(step.idle),
        units::si(step.tokens / step.seconds),
    ) + &step.notes.iter().map(|note| format!("note: {note}\n")).collect::<String>()
}

fn csv_of(step: &Step) -> String {
    let figures = figures(step);
    let cells = figures.map(|(_, value)| value.map_or_else(String::new, |value| value.to_string()));
    csv::line(figures.map(|(name, _)| name)) + &csv::line(&cells)
}

fn document(step: &Step, args: &Args, rollout: Option<&str>) -> Value {
    let figures: Map<String, Value> =
        sort::collect_unsorted(figures(step).into_iter().map(|(name, value)| (name.to_owned(), json!(value))));
    json!({"target": args.target, "train": args.train, "rollout": rollout, "step": figures, "notes": step.notes})
}
