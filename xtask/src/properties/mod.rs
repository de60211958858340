//! `cargo xtask properties`: what must hold of every answer, looked for in random scenarios.
//!
//! [`draw`] makes scenarios as users could state them, [`rules`] says what must hold. The same seed draws the same scenarios.

mod draw;
mod rules;

use std::collections::BTreeMap;
use std::process::ExitCode;

use atlas_config::library::Library;
use atlas_document::Sources;

use draw::Drawn;
use rules::RULES;

/// How many, and from which seed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Scenarios that are drawn
    #[arg(long, default_value_t = 100_000)]
    scenarios: u64,
    /// Seed of what is drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Violations of a rule that are printed
    #[arg(long, default_value_t = 5)]
    show: usize,
}

/// What a rule found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Scenarios that it applied to.
    pub(crate) checked: u64,
    /// Scenarios that break it, with what was found.
    pub(crate) broken: Vec<String>,
}

/// What a run found.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Scenarios that were drawn.
    pub(crate) drawn: u64,
    /// Of these, the scenarios that resolve.
    pub(crate) resolved: u64,
    /// Of these, the scenarios that run.
    pub(crate) running: u64,
    /// By the name of the rule.
    pub(crate) found: BTreeMap<&'static str, Found>,
}

/// Draws scenarios and holds the rules against them.
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

/// Prints what was found as a table in Markdown, and violations behind it.
pub(crate) fn run(args: &Args) -> ExitCode {
    let outcome = look(args.scenarios, args.seed);
    println!(
        "Seed {}: {} scenarios drawn, {} resolve, {} of them run.\n",
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
