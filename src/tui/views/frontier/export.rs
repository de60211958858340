//! The frontier as a document.

use super::FrontierCurves;
use crate::tui::app::App;
use crate::tui::dialogs::export::parts::{about, charted, left, right, scaled, titled};
use crate::tui::views::race::layout::layout_of;
use atlas_core::sort;
use atlas_plan::estimate::Metric;
use atlas_plan::search::optimize::Candidate;
use atlas_report::chart::{Plot, Series};
use atlas_report::document::Document;
use atlas_report::optimum::changes;
use atlas_report::study::{Block, Cell, Grid};

/// Pareto frontier of every target: a chart, and the knobs that lead to each.
pub(in crate::tui) fn document(app: &App) -> Option<Document> {
    let about = &about(&app.now.setup);
    let front = app.queries.frontier.answer()?;
    let here = app.answer.value(front.across).zip(app.answer.value(front.up)).filter(|_| app.answer.fits());
    let curves = front.curves.iter().map(|curve| (&*curve.target, curve.points.iter().map(|(_, candidate)| candidate)));
    let (plot, rows) = compromises(front.pair.name, [front.across, front.up], curves, here);
    let blocks = std::iter::once(Block::Text(remark(front))).chain(charted(&plot));
    let blocks = blocks.chain([Block::Table(rows.clone())]).collect();
    Some(titled(format!("Pareto frontier, {}: {about}", front.pair.name), blocks, rows))
}

fn remark(front: &FrontierCurves) -> String {
    let none: Vec<&str> = front.curves.iter().filter(|c| c.points.is_empty()).map(|c| &*c.target).collect();
    let points: usize = front.curves.iter().map(|curve| curve.points.len()).sum();
    let mut text =
        format!("{points} Pareto-optimal points: no layout improves one metric without worsening the other.");
    if !none.is_empty() {
        text += &format!(" No layout can run this workload on {}.", none.join(", "));
    }
    text
}

/// Pareto frontiers of several targets over two metrics, as a plot and a table.
pub(in crate::tui) fn compromises<'c>(
    title: &str,
    [across, up]: [&'static Metric; 2],
    curves: impl Iterator<Item = (&'c str, impl Iterator<Item = &'c Candidate>)>,
    here: Option<(f64, f64)>,
) -> (Plot, Grid) {
    let (mut series, mut rows) = (Vec::new(), Vec::new());
    for (target, points) in curves {
        let mut places = Vec::new();
        for candidate in points {
            let Some(place) = candidate.value(across).zip(candidate.value(up)) else { continue };
            places.push(place);
            rows.push(vec![
                Cell::text(target),
                Cell::number(across.show(place.0), place.0),
                Cell::number(up.show(place.1), place.1),
                // The changes relative to the scenario do not suffice to reproduce a point.
                Cell::text(layout_of(&candidate.scenario)),
                Cell::text(changes(candidate)),
            ]);
        }
        sort::by(&mut places, |a, b| a.0.total_cmp(&b.0));
        series.push(Series { name: target.to_owned(), points: places, joined: true });
    }
    let all = || series.iter().flat_map(|series: &Series| series.points.iter().copied()).chain(here);
    let (factor_x, across_axis) = scaled(across, all().map(|(x, _)| x));
    let (factor_y, up_axis) = scaled(up, all().map(|(_, y)| y));
    let place = |(x, y): (f64, f64)| (factor_x * x, factor_y * y);
    let here = here.map(place);
    let series = series.iter().map(|series| {
        let points = series.points.iter().copied().map(place).collect();
        Series { name: series.name.clone(), points, joined: series.joined }
    });
    let plot =
        Plot { title: title.to_owned(), across: across_axis, up: up_axis, series: series.collect(), highlighted: here };
    (plot, Grid { head: vec![left("target"), right(across.name), right(up.name), left("layout"), left("knobs")], rows })
}
