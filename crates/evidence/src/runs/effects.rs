//! Effects of a cluster on the logarithm of measured over predicted, each with a prior as wide as such effects usually
//! are.

use std::collections::BTreeSet;

use atlas_config::corrections::{
    Class, Configuration, Correction, Corrections, Factor, Features, Quantity, UnseenDeviation, uncertainty_scale,
};
use atlas_core::sort;

use super::Run;
use super::components::Components;
use super::matrix::Cholesky;

/// Degrees of freedom of the likelihood (Student's t), which gives little weight to a run far from all others.
const STUDENT_DEGREES_OF_FREEDOM: f64 = 4.0;
/// Number of reweighting rounds. There are few runs, and it converges quickly.
const ROUNDS: usize = 12;

/// Returns the effects of the runs, with the prior variance of each.
fn factors(runs: &[&Run], c: &Components) -> Vec<(Factor, f64)> {
    let names = |name: fn(&Run) -> &String| sort::collect_unsorted::<BTreeSet<_>, _>(runs.iter().map(|run| name(run)));
    let mut all = vec![(Factor::Cluster, c.cluster)];
    all.extend(
        names(|run| &run.accelerator).into_iter().map(|n| (Factor::Accelerator(n.as_str().into()), c.accelerator)),
    );
    all.extend(names(|run| &run.software).into_iter().map(|n| (Factor::Software(n.as_str().into()), c.software)));
    all.extend(names(|run| &run.model).into_iter().map(|n| (Factor::Model(n.as_str().into()), c.model)));
    all.extend(Class::ALL.into_iter().zip(c.classes).map(|(class, variance)| (Factor::Class(class), variance)));
    let mut configurations: Vec<Configuration> = Vec::new();
    for run in runs {
        let one = Configuration {
            accelerator: run.accelerator.as_str().into(),
            software: run.software.as_str().into(),
            shape: run.shape,
            falloff: c.falloff,
        };
        if !configurations.contains(&one) {
            configurations.push(one);
        }
    }
    all.extend(configurations.into_iter().map(|one| (Factor::Near(one), c.configuration)));
    // An effect without any prior variance stays zero.
    all.retain(|(_, variance)| *variance > 0.0);
    all
}

/// Returns the correction determined by runs of one quantity; `None` without runs, or if no effect has a prior
/// variance.
#[must_use]
pub fn correction(runs: &[&Run], c: &Components) -> Option<Correction> {
    if runs.is_empty() {
        return None;
    }
    let factors = factors(runs, c);
    if factors.is_empty() {
        return None;
    }
    let features: Vec<Features<'_>> = runs.iter().map(|run| run.features()).collect();
    let values: Vec<f64> = runs.iter().map(|run| run.log_ratio()).collect();
    let weight =
        |factor: &Factor, one: &Features<'_>| uncertainty_scale(one.uncertainty, c.growth) * factor.weight(one);
    let in_runs: Vec<Vec<f64>> =
        factors.iter().map(|(factor, _)| features.iter().map(|one| weight(factor, one)).collect()).collect();
    // Prior covariance of every effect with every run, and between runs.
    let with_runs: Vec<Vec<f64>> = factors
        .iter()
        .zip(&in_runs)
        .map(|((_, variance), row)| row.iter().map(|weight| variance * weight).collect())
        .collect();
    let mut common = vec![vec![0.0; runs.len()]; runs.len()];
    for (own, scaled) in in_runs.iter().zip(&with_runs) {
        for (row, a) in common.iter_mut().zip(own) {
            row.iter_mut().zip(scaled).for_each(|(cell, b)| *cell += a * b);
        }
    }
    let mut weights = vec![1.0; runs.len()];
    let mut solved = None;
    for _ in 0..ROUNDS {
        let mut matrix = common.clone();
        for (i, ((row, weight), run)) in matrix.iter_mut().zip(&weights).zip(runs).enumerate() {
            if let Some(cell) = row.get_mut(i) {
                *cell += c.residual / weight + run.noise;
            }
        }
        let factored = Cholesky::of(&matrix)?;
        let scaled = factored.solve(&values);
        for (((weight, row), value), run) in weights.iter_mut().zip(&common).zip(&values).zip(runs) {
            let left = value - row.iter().zip(&scaled).map(|(a, b)| a * b).sum::<f64>();
            *weight = (STUDENT_DEGREES_OF_FREEDOM + 1.0)
                / (STUDENT_DEGREES_OF_FREEDOM + left * left / (c.residual + run.noise));
        }
        solved = Some((factored, scaled));
    }
    let (factored, scaled) = solved?;
    let means = with_runs.iter().map(|row| row.iter().zip(&scaled).map(|(a, b)| a * b).sum::<f64>());
    let effects = factors.iter().map(|(factor, _)| factor.clone()).zip(means).collect();
    let explained: Vec<Vec<f64>> = with_runs.iter().map(|row| factored.forward(row)).collect();
    let covariance = factors
        .iter()
        .enumerate()
        .zip(&explained)
        .map(|((i, (_, variance)), a)| {
            let cell = |(j, b): (usize, &Vec<f64>)| {
                let prior = if i == j { *variance } else { 0.0 };
                prior - a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>()
            };
            explained.iter().enumerate().map(cell).collect()
        })
        .collect();
    let unseen =
        UnseenDeviation { accelerator: c.accelerator.sqrt(), software: c.software.sqrt(), model: c.model.sqrt() };
    let configurations: BTreeSet<&str> = sort::collect_unsorted(runs.iter().map(|run| run.id.as_str()));
    Some(Correction {
        runs: configurations.len(),
        effects,
        covariance,
        unseen,
        residual: c.residual.sqrt(),
        reach: c.reach,
        growth: c.growth,
    })
}

/// Returns the corrections determined by runs on one accelerator, for every quantity that they measured.
#[must_use]
pub fn corrections(runs: &[Run], table: impl Fn(Quantity) -> Components) -> Corrections {
    let accelerator = runs.first().map(|run| run.accelerator.as_str()).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        if !names.contains(&run.id) {
            names.push(run.id.clone());
        }
    }
    let mut all = Corrections::on(accelerator.into(), names);
    for quantity in Quantity::ALL {
        let own: Vec<&Run> = runs.iter().filter(|run| run.quantity == quantity).collect();
        if let Some(correction) = correction(&own, &table(quantity)) {
            all.set(quantity, correction);
        }
    }
    all
}
