//! The race as a document.

use super::layout::layout;
use super::table::metrics;
use super::{Outcome, is_ranked_by_price_type, places, question, ranked};
use crate::tui::app::App;
use atlas_plan::estimate::Metric;
use atlas_plan::estimate::digits;
use atlas_plan::search::methodology::{mixed_prices, price_type};
use atlas_report::document::Document;
use atlas_report::study::{Block, Cell, Grid};
use atlas_report::table::Align;

/// Returns the ranking with everything needed to reproduce it; `None` before there are results.
#[must_use]
pub fn document(app: &App) -> Option<Document> {
    let rows = ranked(app);
    if rows.is_empty() {
        return None;
    }
    let columns = metrics(app);
    let mut headings = vec![("rank".to_owned(), Align::Right), ("target".to_owned(), Align::Left)];
    headings.extend(columns.iter().map(|metric| (metric.label.to_owned(), Align::Right)));
    headings.extend(["low", "high"].map(|name| (name.to_owned(), Align::Right)));
    headings.push(("measured rows".to_owned(), Align::Right));
    headings.push(("error at nearest row".to_owned(), Align::Right));
    headings.extend(["layout", "note"].map(|name| (name.to_owned(), Align::Left)));
    let by_price_type = is_ranked_by_price_type(app);
    if by_price_type {
        headings.insert(2, ("price".to_owned(), Align::Left));
    }
    let cells = rows.iter().zip(places(app, &rows)).map(|(entry, (place, _))| {
        let rank = if entry.class() == 0 { (place + 1).to_string() } else { String::new() };
        let price = entry.pick().map_or("", |pick| price_type(&pick.scenario)).to_owned();
        let price = Some(price).filter(|_| by_price_type);
        let value = |metric: &Metric| {
            let pick = entry.pick()?;
            Some(Cell::number(digits::shown(metric, &pick.scenario, &pick.estimate), pick.value(metric)?))
        };
        let interval = entry.pick().zip(columns.first()).and_then(|(pick, metric)| {
            let (low, high) = pick.interval(metric)?;
            Some([low, high].map(|end| Cell::number(metric.brief(end), end)))
        });
        let note = match &entry.outcome {
            Outcome::Best(_) => String::new(),
            Outcome::Violates(_, condition) => format!("does not meet {condition}"),
            Outcome::Refused(why) => why.clone(),
        };
        let first = [rank, entry.name.to_string()].into_iter().chain(price).map(Cell::text);
        let figures =
            columns.iter().map(|metric| value(metric).unwrap_or_default()).chain(interval.unwrap_or_default());
        let support = entry.pick().and_then(|pick| pick.evidence.as_ref());
        let near = support.and_then(|support| support.nearest.as_ref()).filter(|near| near.comparable);
        let evidence = [
            support.map_or_else(Cell::default, |known| Cell::number(known.all.rows.to_string(), known.all.rows as f64)),
            near.map_or_else(Cell::default, |near| Cell::number(format!("{:+.0} %", 100.0 * near.error), near.error)),
        ];
        let last = [entry.pick().map_or_else(String::new, layout), note].into_iter().map(Cell::text);
        first.chain(figures).chain(evidence).chain(last).collect()
    });
    let table = Grid { head: headings, rows: cells.collect() };
    let title = format!("Race on {}: {}", app.now.setup.workload, question(app));
    let mut blocks = vec![Block::Heading(1, title.clone())];
    let prices = mixed_prices(rows.iter().filter_map(|entry| Some(&entry.pick()?.scenario)));
    blocks.extend(prices.filter(|_| by_price_type).map(|note| Block::Text(format!("Ranked for each type: {note}."))));
    blocks.push(Block::Table(table.clone()));
    Some(Document { title, blocks, rows: table })
}
