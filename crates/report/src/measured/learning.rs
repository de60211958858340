//! Plausibility of loss and learning rate of a run, alone and compared with another run.

use super::{Measured, Steps};
use atlas_core::units::significant;

/// Compares loss and learning rate of the runs with those of the first, and adds notes to the others.
pub fn compare_training_curves(runs: &mut [Measured]) {
    let Some((first, others)) = runs.split_first_mut() else { return };
    let peak = |steps: &Steps| steps.learning_rate.iter().copied().fold(0.0, f64::max);
    for run in others {
        let (own, base) = (peak(&run.steps), peak(&first.steps));
        if own > 0.0 && base > 0.0 && !(0.99..=1.01).contains(&(own / base)) {
            let (own, base, ratio) = (significant(own, 3), significant(base, 3), significant(own / base, 3));
            run.notes.push(format!(
                "the peak learning rate is {own}, but {base} in {} (x{ratio}): the losses are not comparable",
                first.name
            ));
        }
        // Runs with the same number of tokens per step should have similar losses after the same number of steps.
        let batch = |run: &Measured| run.figure("sequences per step").zip(run.figure("tokens per sequence"));
        let last = run.steps.loss.len().min(first.steps.loss.len());
        if last >= 10 && batch(run).is_some() && batch(run) == batch(first) {
            let tail = |steps: &Steps| {
                let part: Vec<f64> = steps.loss.iter().take(last).skip(last - last / 10).copied().collect();
                part.iter().sum::<f64>() / part.len() as f64
            };
            let (own, base) = (tail(&run.steps), tail(&first.steps));
            if (own / base - 1.0).abs() > 0.05 {
                run.notes.push(format!(
                    "after {last} steps with the same number of tokens, the loss is {}, but {} in {}",
                    significant(own, 4),
                    significant(base, 4),
                    first.name
                ));
            }
        }
    }
}

/// Adds notes if loss or learning rate do not look like those of a run that learns.
pub(super) fn sanity(steps: &Steps, notes: &mut Vec<String>) {
    let losses = &steps.loss;
    if losses.len() >= 10 {
        let tenth = losses.len() / 10;
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (first, last) = losses.split_at(tenth.max(1));
        let last = last.get(last.len().saturating_sub(tenth.max(1))..).unwrap_or_default();
        let (first, last) = (mean(first), mean(last));
        if last >= first {
            notes.push(format!(
                "the loss does not decrease: {} in the first tenth of the steps, {} in the last",
                significant(first, 4),
                significant(last, 4)
            ));
        }
        if losses.iter().any(|loss| *loss < 0.05) {
            notes.push("the loss falls below 0.05: the model overfits, or the data repeats".to_owned());
        }
    }
    let rates = &steps.learning_rate;
    if rates.len() >= 2 && rates.iter().all(|rate| *rate == 0.0) {
        notes.push("the learning rate is 0 throughout".to_owned());
    }
    let peak = rates.iter().copied().fold(0.0, f64::max);
    if peak > 0.01 {
        notes.push(format!("a learning rate of {} is unusual", significant(peak, 3)));
    }
}
