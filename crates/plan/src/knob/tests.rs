#![allow(clippy::unwrap_used)]
use super::*;

fn fabrics() -> Vec<(Arc<str>, f64)> {
    vec![("IB".into(), 1.0), ("RoCE".into(), 1.1)]
}

#[test]
fn knob_parse_accepts_the_unit_of_the_knob() {
    let value = |knob: Knob, text: &str| knob.parse(text, &[]).ok();
    for text in ["48", "$48", "$48/h", "48 $/h", "48/h", "$ 48"] {
        assert_eq!(value(Knob::HourlyUsd, text), Some(Setting::Number(48.0)), "{text}");
    }
    assert_eq!(value(Knob::CapexUsdNode, "$250k"), Some(Setting::Number(250_000.0)));
    assert_eq!(value(Knob::Prompt, "8k tok"), Some(Setting::Number(8000.0)));
    assert_eq!(value(Knob::Utilization, "50%"), Some(Setting::Number(0.5)));
    assert_eq!(value(Knob::PrefixHit, "12.5 %"), Some(Setting::Number(0.125)));
    for (knob, text) in [
        (Knob::Tp, "50%"),
        (Knob::Utilization, "150%"),
        (Knob::Tp, "$8"),
        (Knob::HourlyUsd, "$"),
        (Knob::HourlyUsd, "48 ms"),
        (Knob::Prompt, "tok"),
    ] {
        assert_eq!(value(knob, text), None, "{text}");
    }
}

#[test]
fn knob_parse_accepts_suffixes_case_and_spaces_and_rejects_invalid() {
    assert_eq!(Knob::Prompt.parse("8k", &[]).unwrap(), Setting::Number(8000.0));
    assert_eq!(Knob::Prompt.parse(" 32_768 ", &[]).unwrap(), Setting::Number(32768.0));
    assert_eq!(Knob::CudaGraphs.parse("ON", &[]).unwrap(), Setting::Toggle(true));
    assert_eq!(Knob::Fabric.parse("roce", &fabrics()).unwrap(), Setting::Choice("RoCE".into()));
    assert_eq!(Knob::Seed.parse("-5", &[]).unwrap(), Setting::Seed(-5));
    for (knob, text) in [
        (Knob::Tp, "0"),
        (Knob::Tp, "1.5"),
        (Knob::Tp, "nan"),
        (Knob::Pue, "inf"),
        (Knob::Tp, "1e30"),
        (Knob::Tp, ""),
        (Knob::Virt, "vm"),
    ] {
        assert!(knob.parse(text, &[]).is_err(), "{text}");
    }
    let error = Knob::Fabric.parse("NVLink", &fabrics()).unwrap_err().to_string();
    assert_eq!(error, "fabric: found \"NVLink\", expected one of IB, RoCE");
}

#[test]
fn knob_names_accept_aliases_and_typos_get_a_suggestion() {
    assert_eq!(Knob::named("cuda-graphs").unwrap(), Knob::CudaGraphs);
    assert_eq!(Knob::named("ISL").unwrap(), Knob::Prompt);
    assert_eq!(Knob::named("microbach").unwrap_err().to_string(), "no knob `microbach`; did you mean `microbatch`?");
    assert!(assignment("tp").is_err());
    assert_eq!(assignment("tp = 8").unwrap(), (Knob::Tp, "8".to_owned()));
}

#[test]
fn knob_step_stays_within_bounds_and_is_reversible() {
    let up = |knob: Knob, from: f64| knob.step(&Setting::Number(from), 1, &[]);
    let down = |knob: Knob, from: f64| knob.step(&Setting::Number(from), -1, &[]);
    assert_eq!(up(Knob::Tp, 8.0), Setting::Number(16.0));
    assert_eq!(up(Knob::Tp, 6.0), Setting::Number(8.0));
    assert_eq!(down(Knob::Tp, 6.0), Setting::Number(4.0));
    assert_eq!(down(Knob::Tp, 1.0), Setting::Number(1.0));
    assert_eq!(down(Knob::Generate, 1.0), Setting::Number(0.0));
    assert_eq!(up(Knob::Generate, 0.0), Setting::Number(1.0));
    assert_eq!(up(Knob::Pue, 1.2), Setting::Number(1.25));
    assert_eq!(down(Knob::Pue, 1.25), Setting::Number(1.2));
    assert_eq!(up(Knob::Tp, 4096.0), Setting::Number(4096.0));
    assert_eq!(Knob::Fabric.step(&Setting::Choice("IB".into()), 1, &fabrics()), Setting::Choice("RoCE".into()));
    assert_eq!(Knob::Fabric.step(&Setting::Choice("RoCE".into()), 1, &fabrics()), Setting::Choice("RoCE".into()));
    assert_eq!(Knob::CudaGraphs.step(&Setting::Toggle(true), -1, &[]), Setting::Toggle(false));
}
