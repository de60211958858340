//! Output of refitted constants as text, CSV and JSON.

use std::time::Duration;

use super::tables::{cells, describe_median_mean, error_table};
use crate::cli::args::Globals;
use crate::cli::output;
use atlas_core::units;
use atlas_evidence::validate::{self, Refit};
use atlas_perf::interval::{Factors, Release};
use atlas_report::table::{Table, left, right};
use atlas_report::{Format, csv, serialized};

/// Prints the errors of the built-in constants on the sources that are held out from every fit.
pub(super) fn exam(globals: &Globals) -> color_eyre::Result<()> {
    let mut table = error_table("held-out sources");
    for (title, stats) in validate::examination()? {
        table.row(cells(title, &stats));
    }
    output::print(&globals.charset().write(&table.render()))?;
    Ok(())
}

/// Fits the constants and prints them, with the errors on held-out sources.
pub(super) fn fit(format: Format, globals: &Globals) -> color_eyre::Result<()> {
    let spinner = indicatif::ProgressBar::new_spinner().with_message("fitting, leaving out one source at a time");
    spinner.enable_steady_tick(Duration::from_millis(120));
    let refit = validate::refit()?;
    spinner.finish_and_clear();
    let text = match format {
        Format::Table => fit_tables(&refit),
        Format::Json | Format::Yaml => serialized(&serde_json::to_value(&refit)?, format == Format::Yaml)?,
        Format::Csv => held_out(&refit),
    };
    output::print(&globals.charset().write(&text))?;
    Ok(())
}

/// CSV of all rows, each with the error of a fit without its source.
fn held_out(refit: &Refit) -> String {
    let mut out = csv::line(["id", "metric", "without", "regime", "log_error"]);
    for row in &refit.held_out {
        let log_error = serde_json::Value::from(row.log_error).to_string();
        out += &csv::line([&row.id, row.metric, &row.without, row.regime, &log_error]);
    }
    out
}

/// Renders a fit as tables: constants, errors and intervals.
fn fit_tables(refit: &Refit) -> String {
    let mut table = Table::new([left("constant"), right("shipped"), right("fitted here"), left("unit")]);
    for constant in &refit.constants {
        let fitted = constant.fitted.map_or_else(|| "fixed".to_owned(), |value| units::significant(value, 4));
        table.row([
            constant.name.to_owned(),
            units::significant(constant.shipped, 4),
            fitted,
            constant.unit.to_owned(),
        ]);
    }
    let mut out = format!("{}\n", table.render());
    for one in &refit.judged {
        let mut table = error_table(one.title);
        for (name, stats) in &one.groups {
            table.row(cells(name, stats));
        }
        table.section("all");
        table.row(cells("all rows", &one.all));
        out += &table.render();
        let [stated, withheld] = one.inside.map(|share| 100.0 * share);
        out += &format!("{}\n", describe_median_mean("groups'", &one.groups, &one.all));
        out += &format!(
            "Inside the interval of the other groups: {stated:.0} %, {withheld:.0} % with releases withheld.\n\n"
        );
    }
    let mut table = Table::new([
        left("90 % interval, factors"),
        left("release"),
        right("rows"),
        right("sources"),
        right("shipped"),
        right("found here"),
        right("covered"),
    ]);
    let factors = |f: Factors| format!("{:.2} to {:.2}", f.low, f.high);
    for band in &refit.bands {
        table.row([
            band.regime.to_owned(),
            match band.release {
                Release::Stated => "stated",
                Release::Assumed => "assumed",
            }
            .to_owned(),
            band.rows.to_string(),
            band.sources.to_string(),
            factors(band.shipped),
            factors(band.found),
            units::percent(band.covered),
        ]);
    }
    out + &format!("{}\n", table.render())
}
