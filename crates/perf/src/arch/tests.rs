use super::*;

#[test]
fn llama_2_7b_has_its_published_parameters() {
    let a = Architecture::default();
    assert!((a.params() / 6.7384e9 - 1.0).abs() < 1e-3);
}

#[test]
fn deepseek_v3_has_its_published_parameters() {
    let a = Architecture::deepseek_v3();
    assert!((a.params() / 671.0e9 - 1.0).abs() < 0.01, "{}", a.params());
    assert!((a.active_params() / 37.5e9 - 1.0).abs() < 0.02, "{}", a.active_params());
}

#[test]
fn a_window_never_lengthens_the_context() {
    let full = Architecture::default();
    let mut windowed = full;
    windowed.window = Some(Window { size: Count::new(1024), share: 1.0, chunked: false });
    assert!(windowed.mean_context(8192.0) < full.mean_context(8192.0));
    assert_eq!(windowed.mean_context(512.0), full.mean_context(512.0));
}
