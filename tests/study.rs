//! Studies: what they say, and that a browser shows them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;
use std::process::Command;

use atlas_fabric::knob::Overrides;
use atlas_fabric::library::Library;
use atlas_fabric::report::study::{Block, Entry, Study, content, html, markdown};
use atlas_fabric::scenario::Parts;
use atlas_fabric::spec::Sources;

fn study(workload: &str) -> Study {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/analytical");
    let (targets, workloads) = (Some(data.join("targets.yaml")), Some(data.join("workloads.yaml")));
    let library = Library::load(&Sources { targets, workloads, ..Sources::built_in() }, None);
    let entry = |name: &str| {
        let parts = Parts::find(&library, name, workload).unwrap();
        Entry::of(name.to_owned(), parts, Overrides::new()).unwrap()
    };
    Study {
        made: "2026-01-01T00:00:00Z".to_owned(),
        command: "atlas report --workload <x>".to_owned(),
        entries: vec![entry("h100x8"), entry("mi300x8")],
        failed: vec![("other <one>".to_owned(), "no & such".to_owned())],
    }
}

#[test]
fn a_study_says_everything_in_both_formats() {
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
    for wanted in ["costs least", "| TPOT |", "90 %:", "hourly_usd", "| spike |", "bound (", "atlas report --workload"]
    {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    let page = html::write(&[study]);
    assert!(page.contains("other &lt;one&gt;: no &amp; such") && !page.contains("<one>"));
    // Nothing is fetched: every address is prose, none an attribute.
    assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("url("));
}

#[test]
fn breakdowns_of_a_study_sum() {
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

/// Skipped only where no Chromium is installed.
#[test]
fn a_browser_shows_it() {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let works = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    let Some(browser) = names.into_iter().find(works) else {
        println!("no Chromium here; skipped");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("study.html");
    // A script of the test's own clicks a head twice and notes the order of the rows.
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
