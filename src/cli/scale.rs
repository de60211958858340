//! `atlas scale`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::args::Globals;
use super::failure::Failure;
use super::output::{self, Charset, write_stderr};
use super::simulation_files::Folder;
use super::simulation_inputs::{self as inputs, Preset, refused};
use super::{pick, run_with_progress, save};
use atlas_config::library::Library;
use atlas_plan::simulation::config::{Config, Pair, Subject};
use atlas_plan::simulation::scale::{Curve, LIMIT, StudySubject, curve};
use atlas_plan::simulation::{Options, RunsProgress};
use atlas_report::chart::{drawing, png, svg, text};
use atlas_report::simulation::plots::Chart;
use atlas_report::simulation::scale as described;
use atlas_report::{Format, to_json, to_yaml};
use atlas_sim::scaling::Work;

/// Show strong and weak scaling over nodes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas scale --nodes 1,2,4,8,16                 the predecessor's study of its medium preset
  atlas scale --target h100-sxm-128 --workload llama3.1-70b-train --nodes 4,8,16,32 --mode strong
  atlas scale --config my_config.yaml --nodes 1 2 4 8 --out results
  atlas scale --target h100-sxm-8 --workload llama3.1-8b-serve --nodes 1,2,4 --format csv

Strong scaling keeps the total work constant as the cluster grows; weak scaling grows the work with the cluster. \
Efficiency is the speedup over the smallest size that runs, divided by the ideal speedup; it is shown for both the \
simulation and the closed form. Data-parallel replicas fill the nodes; tensor, pipeline and context parallelism stay \
the same.")]
pub struct Args {
    /// Numbers of nodes
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', required = true, value_parser = count)]
    pub nodes: Vec<f64>,
    /// Type of scaling
    #[arg(long, value_enum, default_value_t)]
    pub mode: Mode,
    /// Efficiency below which scaling counts as broken
    #[arg(long, value_name = "SHARE", default_value_t = LIMIT, value_parser = share)]
    pub threshold: f64,
    /// Preset of the predecessor simulator [default: medium]
    #[arg(long, value_enum, conflicts_with_all = ["config", "target", "workload", "set"])]
    pub preset: Option<Preset>,
    /// Simulation file of atlas, or YAML of the predecessor simulator
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "workload"])]
    pub config: Option<PathBuf>,
    /// Target; its number of nodes is replaced
    #[arg(long, value_name = "NAME", requires = "workload")]
    pub target: Option<String>,
    /// Workload
    #[arg(long, value_name = "NAME", requires = "target")]
    pub workload: Option<String>,
    /// Set a knob; repeatable
    #[arg(long, value_name = "KNOB=VALUE", long_help = super::args::set_help())]
    pub set: Vec<String>,
    /// Simulation options.
    #[command(flatten)]
    pub options: Options,
    /// Directory for scaling.json, scaling.csv, the simulation file and the chart
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Also write the chart as SVG
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub svg: Option<PathBuf>,
    /// Also write the chart as PNG
    #[arg(long, value_name = "FILE.png", help_heading = "Output")]
    pub png: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
}

/// Type of scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Mode {
    /// The total work stays constant
    Strong,
    /// The work grows with the number of nodes
    Weak,
    /// Both, one after the other
    #[default]
    Both,
}

fn count(text: &str) -> Result<f64, String> {
    match text.trim().parse::<u32>() {
        Ok(count) if (1..=1_000_000).contains(&count) => Ok(f64::from(count)),
        _ => Err("expected whole numbers of nodes from 1 to 1000000".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("expected a share above 0, at most 1".to_owned()),
    }
}

/// Runs the study and prints the result.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let library = pick::library(globals);
    let config = subject(args, &library)?;
    let (name, parts) = match &config.subject {
        Subject::Predecessor(predecessor) => (predecessor.name.clone(), None),
        Subject::Scenario(pair) => {
            (format!("{} × {}", pair.target, pair.workload), Some(inputs::parts(&library, pair)?))
        }
        Subject::Jobs(_) => return Err(Failure::usage(["a cluster of jobs cannot be scaled; choose one job"]).into()),
    };
    let base = match (&config.subject, &parts) {
        (_, Some((parts, overrides))) => StudySubject::Scenario(parts, overrides),
        (Subject::Predecessor(predecessor), None) => StudySubject::Predecessor(predecessor),
        _ => return Ok(()),
    };
    let works: &[Work] = match args.mode {
        Mode::Strong => &[Work::Fixed],
        Mode::Weak => &[Work::PerAccelerator],
        Mode::Both => &[Work::Fixed, Work::PerAccelerator],
    };
    let runs = config.options.replications() + u32::from(parts.is_none());
    let gauge = RunsProgress::of((works.len() * args.nodes.len()) as u32 * runs);
    let curves = run_with_progress(&gauge, Duration::from_millis(500), "simulated", || {
        let one = |work: &Work| {
            curve(&base, library.catalog(), &args.nodes, *work, args.threshold, &config.options, &gauge)
                .map_err(refused)
        };
        works.iter().map(one).collect::<color_eyre::Result<Vec<Curve>>>()
    })??;
    print(args, &name, &curves, globals.charset())?;
    write(args, &config, &name, &curves, gauge.canceled())?;
    if gauge.canceled() {
        write_stderr("interrupted: larger sizes are missing");
        return Err(Failure::Reported.into());
    }
    Ok(())
}

fn subject(args: &Args, library: &Library) -> color_eyre::Result<Config> {
    let options = args.options.clone();
    if options.wants_goodput() {
        return Err(Failure::usage(["failures are not supported here; use `atlas simulate --study goodput`"]).into());
    }
    if options.hosts.is_some() {
        return Err(Failure::usage(["--hosts is not supported here; use `atlas simulate --hosts`"]).into());
    }
    if let Some(path) = &args.config {
        let mut config = inputs::read(path, library)?;
        if let Subject::Scenario(pair) = &mut config.subject {
            pair.set.extend(args.set.iter().cloned());
        }
        config.options = options.or(config.options);
        return Ok(config);
    }
    let subject = match (&args.target, &args.workload) {
        (Some(target), Some(workload)) => {
            Subject::Scenario(Pair { target: target.clone(), workload: workload.clone(), set: args.set.clone() })
        }
        _ => Subject::Predecessor(Box::new(args.preset.unwrap_or(Preset::Medium).config())),
    };
    Ok(Config { subject, options })
}

fn print(args: &Args, name: &str, curves: &[Curve], charset: Charset) -> color_eyre::Result<()> {
    match args.format {
        Format::Table => {
            let width = output::width();
            let picture = text::draw(&described::plot(name, curves), width.min(100), 18, charset == Charset::Unicode);
            let text = format!("{name}\n\n{}\n{picture}", described::render(curves, width));
            output::print(&charset.write(&text))?;
        }
        Format::Csv => output::print(&described::csv_of(curves))?,
        Format::Json => output::print(&to_json(&described::document(name, curves))?)?,
        Format::Yaml => output::print(&to_yaml(&described::document(name, curves))?)?,
    }
    Ok(())
}

fn write(args: &Args, config: &Config, name: &str, curves: &[Curve], canceled: bool) -> color_eyre::Result<()> {
    let plot = described::plot(name, curves);
    let mut document = described::document(name, curves);
    if let Some(map) = document.as_object_mut().filter(|_| canceled) {
        let sizes = curves.iter().map(|curve| curve.points.len()).max().unwrap_or(0);
        map.insert("partial".to_owned(), serde_json::json!({"sizes_described": sizes, "sizes": args.nodes.len()}));
    }
    if let Some(place) = &args.out {
        let mut folder = Folder::open(place, name)?;
        folder.json("scaling.json", &document)?;
        folder.text("scaling.csv", &described::csv_of(curves))?;
        folder.text("config.yaml", &config.yaml()?)?;
        folder.chart("scaling_efficiency", &Chart::Plot(plot.clone()))?;
        folder.print_paths();
    }
    let Some(picture) = drawing::plot(&plot, 760.0, 420.0) else { return Ok(()) };
    if let Some(path) = &args.svg {
        save::save(path, svg::standalone(picture.clone()))?;
    }
    if let Some(path) = &args.png {
        save::save(path, png::paint(picture)?)?;
    }
    Ok(())
}
