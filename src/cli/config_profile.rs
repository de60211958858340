//! `atlas config profile`: creates the hardware profile of a target.

use std::path::PathBuf;

use super::args::Globals;
use super::calibrate::default_path;
use super::failure::Failure;
use super::output::write_stderr;
use super::{pick, save};
use atlas_evidence::calibrate::document;
use atlas_evidence::calibrate::parameter::{FABRICS, NODE_WATTS, NODE_WATTS_RANGE, ProfileValues, SLOTS};

/// Write the hardware profile of a target.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Target to create the profile for
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Profile to take the coefficients from
    #[arg(long, value_name = "NAME", default_value = "nvidia")]
    pub base: String,
    /// Set a coefficient by its path, such as utilization.base=0.5; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Write the profile to this file [default: profiles/TARGET.yaml, where it takes effect for the target]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
}

/// Writes the profile.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let library = pick::library(globals);
    let target = library.target(&args.target).map_err(Failure::from)?;
    let base = library.profile(&args.base).map_err(Failure::from)?;
    if !base.calibrated {
        return Err(Failure::usage([format!(
            "profile {} has no coefficients; use --base to choose one that has",
            args.base
        )])
        .into());
    }
    let mut figures =
        ProfileValues { coefficients: base.coefficients, fabrics: base.fabrics.to_vec(), node_watts: base.node_watts };
    // The target's own interconnect must be among the fabrics.
    if let Some(link) = &target.interconnect
        && !figures.fabrics.iter().any(|(name, _)| name.eq_ignore_ascii_case(&link.kind))
    {
        figures.fabrics.push((link.kind.as_str().into(), 1.0));
        write_stderr(&format!("note: profile {} has no fabric {}; using a factor of 1", args.base, link.kind));
    }
    let problems: Vec<String> = args.set.iter().filter_map(|text| set(&mut figures, text).err()).collect();
    if !problems.is_empty() {
        return Err(Failure::usage(problems).into());
    }
    let path = args.out.clone().unwrap_or_else(|| default_path(globals, target));
    let text = document::uncalibrated(&target.name, &target.vendor, &base.name, &figures);
    if args.force {
        save::write(&path, &text)?;
    } else {
        save::write_new(&path, &text, save::FORCE_OR_OTHER_FILE)?;
    }
    write_stderr(&format!("wrote {}", path.display()));
    Ok(())
}

/// Sets one coefficient.
fn set(figures: &mut ProfileValues, text: &str) -> Result<(), String> {
    let known = || SLOTS.iter().map(|slot| slot.path).collect::<Vec<_>>().join(", ");
    let Some((path, value)) = text.split_once('=') else {
        return Err(format!("--set {text}: expected PATH=VALUE, PATH one of {}", known()));
    };
    let path = path.trim();
    let slot = SLOTS.iter().find(|slot| slot.path == path);
    let fabric = path.strip_prefix(FABRICS).and_then(|rest| rest.strip_prefix('.'));
    let [low, high] = match (slot, fabric) {
        (Some(slot), _) => slot.range,
        (None, Some(_)) => [0.05, 100.0],
        (None, None) if path == NODE_WATTS => NODE_WATTS_RANGE,
        (None, None) => {
            return Err(format!(
                "--set {text}: unknown coefficient {path}; known coefficients: {}, {NODE_WATTS}, {FABRICS}.NAME",
                known()
            ));
        }
    };
    let number = value.trim().parse::<f64>().ok().filter(|number| (low..=high).contains(number));
    let number = number
        .ok_or_else(|| format!("--set {text}: found {}, expected a number from {low} to {high}", value.trim()))?;
    match (slot, fabric) {
        (Some(slot), _) => (slot.set)(&mut figures.coefficients, number),
        (None, Some(name)) => match figures.fabrics.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, factor)) => *factor = number,
            None => figures.fabrics.push((name.into(), number)),
        },
        (None, None) => figures.node_watts = Some(number),
    }
    Ok(())
}
