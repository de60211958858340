//! `cargo xtask properties`: checks invariants of estimates on random scenarios.
//!
//! [`draw`] generates scenarios as users could define them, and [`rules`] defines the invariants. The same seed gives
//! the same scenarios.

mod draw;
mod rules;

use std::collections::BTreeMap;
use std::process::ExitCode;

use atlas_config::library::Library;
use atlas_document::Sources;

use draw::Drawn;
use rules::RULES;

/// Options of `cargo xtask properties`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of scenarios to draw
    #[arg(long, default_value_t = 100_000)]
    scenarios: u64,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Maximum number of violations to print per property
    #[arg(long, default_value_t = 5)]
    show: usize,
}

/// Results of a rule.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Number of scenarios to which it applied.
    pub(crate) checked: u64,
    /// Descriptions of the scenarios that violate it.
    pub(crate) broken: Vec<String>,
}

/// Results of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Number of scenarios drawn.
    pub(crate) drawn: u64,
    /// Number of scenarios that resolve.
    pub(crate) resolved: u64,
    /// Number of scenarios that can run.
    pub(crate) running: u64,
    /// Results by the name of the rule.
    pub(crate) found: BTreeMap<&'static str, Found>,
}

/// Draws scenarios and checks the rules.
pub(crate) fn look(scenarios: u64, seed: u64) -> Outcome {
    let library = Library::load(&Sources::built_in(), None);
    let mut random = draw::Random::new(seed);
    let mut outcome = Outcome { drawn: scenarios, ..Outcome::default() };
    for number in 0..scenarios {
        let Some(drawn) = Drawn::new(&library, &mut random) else { continue };
        outcome.resolved += 1;
        outcome.running += u64::from(drawn.answer.runs());
        for rule in &RULES {
            if number % rule.every != 0 {
                continue;
            }
            if let Some(verdict) = (rule.check)(&drawn) {
                let found = outcome.found.entry(rule.name).or_default();
                found.checked += 1;
                found.broken.extend(verdict.err().map(|what| format!("{what}\n    {}", drawn.command())));
            }
        }
    }
    outcome
}

/// Prints the results as a Markdown table, followed by violations.
pub(crate) fn run(args: &Args) -> ExitCode {
    let outcome = look(args.scenarios, args.seed);
    println!(
        "Seed {}: {} scenarios drawn, {} resolved, {} of them can run.\n",
        args.seed, outcome.drawn, outcome.resolved, outcome.running
    );
    println!("| property | scenarios | violations |\n| --- | ---: | ---: |");
    for (name, found) in &outcome.found {
        println!("| {name} | {} | {} |", found.checked, found.broken.len());
    }
    let mut ok = true;
    for (name, found) in outcome.found.iter().filter(|(_, found)| !found.broken.is_empty()) {
        ok = false;
        println!("\n{name}:");
        found.broken.iter().take(args.show).for_each(|broken| println!("  {broken}"));
    }
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    #[test]
    fn random_scenarios_keep_every_property() {
        let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        let outcome = super::look(600, seed);
        let broken: Vec<_> = outcome.found.iter().filter(|(_, found)| !found.broken.is_empty()).collect();
        assert!(broken.is_empty(), "{broken:#?}");
        assert!(outcome.running > 60 && outcome.found.len() >= 6, "{outcome:?}");
    }
}
