//! Computation of a training step, operator by operator, with the times of the engine.

use super::expression::{Written, product, sum};
use super::{Origin, Term};
use atlas_perf::ops::{Op, Work};
use atlas_perf::training::terms::{Class, OperatorTime, Operators};

/// Seconds of an average layer, or of the output layer, in operators of a class. `None` if there are none.
pub(super) fn passes(symbol: &'static str, name: &'static str, all: &Operators, class: Class) -> Option<Term> {
    let of = all.of.iter().filter(|(_, time)| time.class == class);
    total(symbol, name, of.map(|(share, time)| shared(*share, passes_of(time))))
}

/// Seconds of recomputation of an average layer. `None` if nothing is recomputed.
pub(super) fn recomputed(symbol: &'static str, name: &'static str, all: &Operators) -> Option<Term> {
    let of = all.of.iter().filter(|(_, time)| time.recomputed != 0.0);
    total(symbol, name, of.map(|(share, time)| shared(*share, recomputed_of(time))))
}

fn total(symbol: &'static str, name: &'static str, all: impl Iterator<Item = Written>) -> Option<Term> {
    let written = all.reduce(|a, b| a + b)?;
    Some(Term::derived(symbol, name, "s", written))
}

/// Weights a term by the share of the layers that have the operator.
fn shared(share: f64, term: Term) -> Written {
    if share == 1.0 {
        return term.into();
    }
    let share = Term::input("share", "layers of this kind / all layers", "", share)
        .from(Origin::Engine("from the model architecture"));
    share * term
}

fn passes_of(time: &OperatorTime) -> Term {
    let word = split_camel_case(&format!("{:?}", time.op.name));
    let seconds = |symbol: &'static str, name: &'static str, how: &'static str, value: f64| {
        Term::input(symbol, name, "s", value).from(Origin::Engine(how))
    };
    let forward =
        seconds("forward", "forward pass", "maximum of compute and memory time, depending on shape", time.forward);
    let backward = seconds("backward", "gradients of inputs and weights", "like the forward pass", time.backward);
    let gaps = seconds("gaps", "gaps between kernels", "number of kernels × gap", time.gaps);
    let forward = forward.depending_on(flops(&time.op).into_iter().collect());
    let all = [forward, backward, gaps].into_iter().filter(|term| term.value != 0.0);
    Term::derived(format!("t_{}", word.replace(' ', "_")), word, "s", sum(all))
}

fn recomputed_of(time: &OperatorTime) -> Term {
    let word = split_camel_case(&format!("{:?}", time.op.name));
    Term::input(format!("t_{}", word.replace(' ', "_")), format!("{word}, recomputed"), "s", time.recomputed)
        .from(Origin::Engine("recomputed share of its forward pass"))
        .depending_on(flops(&time.op).into_iter().collect())
}

/// Forward FLOPs of an operator, if it has any.
fn flops(op: &Op) -> Option<Term> {
    let symbol = format!("F_{}", split_camel_case(&format!("{:?}", op.name)).replace(' ', "_"));
    let name = "FLOPs of the forward pass";
    match op.work {
        Work::Gemm(gemm) => {
            let dimension = |symbol: &'static str, name: &'static str, value: f64| {
                Term::input(symbol, name, "", value).from(Origin::Engine("from model dimensions and layout"))
            };
            let mut all = vec![
                dimension("rows", "tokens of the micro-batch per device", gemm.m),
                dimension("columns", "output width per device", gemm.n),
                dimension("inner", "inner dimension", gemm.k),
            ];
            if gemm.batch != 1.0 {
                all.push(dimension("groups", "number of independent GEMMs", gemm.batch));
            }
            Some(Term::stated(symbol, name, "FLOP", op.flops(), product(all) * 2.0))
        }
        Work::Attention { flops, .. } => Some(
            Term::input(symbol, name, "FLOP", flops)
                .from(Origin::Engine("2 × tokens × visible keys × (query width + value width), per layer and device")),
        ),
        Work::Vector { .. } | Work::Traffic { .. } => None,
    }
}

/// Splits a camel-case name into words: `query key value` for `QueryKeyValue`.
fn split_camel_case(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}
