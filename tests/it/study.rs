//! Studies: their content, and that a browser displays them.

use std::path::Path;
use std::process::Command;

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::knob::Overrides;
use atlas_plan::scenario::Parts;
use atlas_report::study::{Block, Entry, Study, content, html, markdown};

fn study(workload: &str) -> Study {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/analytical");
    let (targets, workloads) = (Some(data.join("targets.yaml")), Some(data.join("workloads.yaml")));
    let library = Library::load(&Sources { targets, workloads, ..Sources::built_in() }, None);
    let entry = |name: &str| {
        let parts = Parts::find(&library, name, workload).unwrap();
        Entry::of(name.to_owned(), parts, Overrides::new()).unwrap()
    };
    Study {
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        command: "atlas report --workload <x>".to_owned(),
        entries: vec![entry("h100x8"), entry("mi300x8")],
        failed: vec![("other <one>".to_owned(), "no & such".to_owned())],
    }
}

#[test]
fn study_has_all_sections_in_markdown_and_html() {
    let study = study("llama3_70b_day");
    let blocks = content::blocks(&study);
    let headings: Vec<&str> = blocks
        .iter()
        .filter_map(|b| if let Block::Heading(2, text) = b { Some(text.as_str()) } else { None })
        .collect();
    let wanted = [
        "Summary",
        "Comparison",
        "Charts",
        "Where time and memory go",
        "Schedule",
        "Assumptions and sources",
        "Method",
    ];
    assert_eq!(headings, wanted);
    let text = markdown::write(std::slice::from_ref(&study));
    for wanted in
        ["per million tokens", "| TPOT |", "90 %:", "hourly_usd", "| spike |", "bound by", "atlas report --workload"]
    {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    let page = html::write(&[study]);
    assert!(page.contains("other &lt;one&gt;: no &amp; such") && !page.contains("<one>"));
    // Nothing is fetched: addresses occur only in text, not in attributes.
    assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("url("));
}

#[test]
fn study_bar_totals_lie_within_their_intervals() {
    for block in content::blocks(&study("llama3_8b_train")) {
        let Block::Bars(bars) = block else { continue };
        for bar in bars.bars {
            assert!(bar.total() > 0.0 && bar.parts.iter().all(|(_, value)| *value >= 0.0), "{bar:?}");
            if let Some((low, high)) = bar.interval {
                assert!(low <= bar.total() * (1.0 + 1e-9) && bar.total() <= high * (1.0 + 1e-9), "{bar:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs Chromium"]
fn browser_renders_charts_and_sorts_tables_of_a_study() {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let works = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    let browser = names.into_iter().find(works).expect("Chromium is installed");
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("study.html");
    // A script of the test clicks a column head twice and records the order of the rows.
    let probe = "<script>const head=document.querySelectorAll('thead th')[1];const first=()=>head.closest('table').tBodies[0].rows[0].cells[1].dataset.v;\
                 head.click();const down=first();head.click();document.body.dataset.sorted=Number(down)>Number(first());\
                 document.body.dataset.charts=document.querySelectorAll('svg.chart').length;</script></body>";
    std::fs::write(&page, html::write(&[study("llama3_70b_serve")]).replace("</body>", probe)).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(
        dom.contains("data-sorted=\"true\""),
        "sorting by a click; stderr: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let charts = dom.split("data-charts=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse::<u32>().ok());
    assert!(charts.is_some_and(|charts| charts >= 8), "{charts:?} charts");
}

fn atlas(dir: &Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(arguments).current_dir(dir).env("ATLAS_CONFIG_DIR", dir.join("config")).output().unwrap()
}

/// The best configuration of each target, how it was found, and where the configurations differ.
#[test]
fn maximum_performance_report_states_the_search_behind_each_optimum() {
    let dir = tempfile::tempdir().unwrap();
    let search = ["--workload", "llama3.1-70b-serve", "--target", "h100-sxm-8", "--target", "mi300x-8"];
    let over = ["--over", "tp=2,4,8", "--over", "concurrency=32,128"];
    let maximum = [&["report", "--methodology", "maximum-performance"], &search[..], &over, &["--tpot", "50"]].concat();
    let described = atlas(dir.path(), &maximum);
    let text = String::from_utf8_lossy(&described.stdout);
    for part in [
        "## Methodology: maximum-performance",
        "### Configuration differences",
        "### mi300x-8",
        "this is the best of that space",
        "| hill-climb |",
        "where TPOT <= 50.00 ms",
        "atlas report --methodology",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}\n{}", String::from_utf8_lossy(&described.stderr));
    }
    // Flags that only apply to a search are rejected, not ignored.
    // The knobs that each search changed, as in `compare`.
    let document = atlas(dir.path(), &[&maximum[..], &["--format", "json"]].concat());
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).unwrap();
    let compared = [&["compare"], &maximum[1..], &["--format", "json"]].concat();
    let compared: serde_json::Value = serde_json::from_slice(&atlas(dir.path(), &compared).stdout).unwrap();
    let changes = |document: &serde_json::Value| -> Vec<serde_json::Value> {
        document["targets"].as_array().unwrap().iter().map(|target| target["changes"].clone()).collect()
    };
    assert_eq!(changes(&document), changes(&compared));
    assert!(changes(&document).iter().any(|changes| *changes != serde_json::json!({})), "{document}");
    let refused = atlas(dir.path(), &[&["report"], &search[..], &["--tpot", "50"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--tpot"));
}

#[test]
fn a_target_without_the_metrics_of_the_goal_does_not_stop_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let search = ["report", "--workload", "llama3.1-70b-serve", "--methodology", "maximum-performance", "--tpot", "50"];
    let over = ["--over", "tp=4,8", "--out", "best.md"];
    let on = |targets: &str| atlas(dir.path(), &[&search[..], &over, &["--target", targets]].concat());
    let legacy = "GROQ_LPU_NODE";
    let both = on(&format!("{legacy},h100-sxm-8"));
    assert!(both.status.success(), "{}", String::from_utf8_lossy(&both.stderr));
    let text = std::fs::read_to_string(dir.path().join("best.md")).unwrap();
    assert!(text.contains("tpot_ms does not apply to inference"), "{text}");
    assert_eq!(on(legacy).status.code(), Some(2));
}

#[test]
fn sweep_report_shows_point_count_and_curves() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = ["sweep", "--over", "tp=1,2,4,8", "--over", "microbatch=1,2", "--out", "s.csv"];
    let on = ["--target", "h100-sxm-8", "--target", "mi300x-8", "--workload", "llama2-7b-dp8"];
    assert!(atlas(dir.path(), &[&sweep[..], &on].concat()).status.success());
    let described = atlas(dir.path(), &["report", "--sweep", "s.csv", "--out", "s.html"]);
    assert!(described.status.success(), "{}", String::from_utf8_lossy(&described.stderr));
    let page = std::fs::read_to_string(dir.path().join("s.html")).unwrap();
    assert!(page.contains("16 points") && page.contains("<svg") && page.contains("over microbatch"), "{page}");
    let described = atlas(dir.path(), &["report", "--sweep", "s.csv", "--format", "csv"]);
    assert!(String::from_utf8_lossy(&described.stdout).starts_with("target,workload,tp,microbatch,"));
}
