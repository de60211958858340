//! `nvidia-smi dmon` and `dcgmi dmon`: tables whose header is repeated.

use serde_json::Value;

use crate::lines::Line;
use crate::observation::Observation;
use crate::reading::{Context, Facts, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{parse_leading_number, unix_seconds, words};

use super::power::{Devices, TOO_MANY_DEVICES};

/// Tool that printed the current table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Nothing,
    Smi,
    Dcgm,
}

/// Maximum number of columns. `nvidia-smi dmon` has about thirty, DCGM as many as the user requests.
const COLUMNS: usize = 128;

/// Content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Device,
    Date,
    Time,
    /// A metric, by its index in the list of series.
    Figure(usize),
}

/// Recognizer of both tools.
#[derive(Debug, Default)]
pub struct Dmon {
    kind: Kind,
    columns: Vec<Column>,
    series: Vec<(String, Series)>,
    /// Index of the series of power.
    power: Option<usize>,
    n: u64,
    /// Seconds of the days passed, and the latest time, if rows state only the time of day.
    days: f64,
    latest: f64,
    devices: Devices,
    dcgm: bool,
}

impl Recognizer for Dmon {
    fn triggers(&self) -> &'static [&'static str] {
        &["# gpu ", " gpu  ", "#gpu,", "# gpu,", "#Entity", "# Entity", "# Idx"]
    }

    fn in_table(&self) -> bool {
        self.kind != Kind::Nothing
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        // `--format csv` separates the words with commas.
        let text = line.text.trim_ascii();
        if text.starts_with('#') {
            let words: Vec<&str> = words(text.trim_start_matches('#')).take(COLUMNS).collect();
            let first = words.first().copied().unwrap_or_default();
            if first == "Entity" && words.len() > 1 {
                self.begin(Kind::Dcgm, &words);
                return Outcome::Recognized;
            }
            if words.contains(&"gpu") && (words.contains(&"pwr") || words.contains(&"sm") || words.contains(&"fb")) {
                self.begin(Kind::Smi, &words);
                return Outcome::Recognized;
            }
            let units = self.kind != Kind::Nothing && (words.contains(&"Idx") || words.contains(&"YYYYMMDD"));
            return if units { Outcome::Recognized } else { Outcome::NotRecognized };
        }
        match self.kind {
            Kind::Nothing => Outcome::NotRecognized,
            Kind::Dcgm if text == "Id" || text == "ID" => Outcome::Recognized,
            Kind::Dcgm => self.dcgm_row(text),
            Kind::Smi => self.smi_row(text),
        }
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.devices.append_observations(out);
    }

    fn finish(mut self: Box<Self>, _context: &Context) -> Vec<Reading> {
        if self.n == 0 {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("n_records", self.n);
        facts.set("num_gpus", self.devices.len());
        let listed = |series: &Series| -> Value { series.kept().iter().map(|value| number_to_json(*value)).collect() };
        let has_power = self.devices.has_power();
        if self.dcgm {
            for (name, series) in self.series.iter().filter(|(_, series)| !series.is_empty()) {
                facts.set(name.as_str(), listed(series));
                facts.set_optional(format!("mean_{name}"), series.mean());
            }
            self.devices.facts(&mut facts);
        } else {
            let of = |name: &str| self.series.iter().find(|(known, _)| known == name).map(|(_, series)| series);
            if let Some(power) = of("pwr") {
                facts.set("power_w", listed(power));
                facts.set_optional("mean_power_w", power.mean());
            }
            self.devices.facts(&mut facts);
            for (name, ours) in [("sm", "sm_percent_mean"), ("mem", "mem_percent_mean")] {
                facts.set_optional(ours, of(name).and_then(Series::mean));
            }
            facts.set_optional("memory_used_mb_max", of("fb").and_then(Series::max).map(number_to_json));
        }
        let (tool, format) = if self.dcgm { ("dcgm", "dcgmi-dmon") } else { ("nvidia_smi", "nvidia-smi-dmon") };
        vec![Reading {
            tool,
            format,
            kind: if has_power && !self.dcgm { "power" } else { "gpu_samples" },
            importance: Importance::Samples,
            facts,
            power: std::mem::take(&mut self.devices.samples),
            devices: self.devices.names,
            ..Reading::default()
        }]
    }
}

impl Dmon {
    fn begin(&mut self, kind: Kind, names: &[&str]) {
        self.kind = kind;
        self.dcgm |= kind == Kind::Dcgm;
        self.columns.clear();
        for name in names {
            let column = match *name {
                "Entity" | "gpu" => Column::Device,
                "Date" => Column::Date,
                "Time" => Column::Time,
                name => {
                    let known = self.series.iter().position(|(known, _)| known == name);
                    let place = known.unwrap_or(self.series.len());
                    if known.is_none() {
                        self.series.push((name.to_owned(), Series::default()));
                    }
                    if matches!(name, "pwr" | "POWER") {
                        self.power = Some(place);
                    }
                    Column::Figure(place)
                }
            };
            self.columns.push(column);
        }
    }

    /// Parses `GPU 0     61      0.367`.
    fn dcgm_row(&mut self, text: &str) -> Outcome {
        let Some(rest) = ["GPU ", "GPU-I ", "CI ", "CPU "].iter().find_map(|name| text.strip_prefix(name)) else {
            return Outcome::NotRecognized;
        };
        if words(rest).count() != self.columns.len() {
            return Outcome::Unusable("a sample whose number of columns differs from the header");
        }
        self.row(rest)
    }

    fn smi_row(&mut self, text: &str) -> Outcome {
        let mut found = 0;
        let mut device = "";
        for word in words(text) {
            match self.columns.get(found) {
                Some(Column::Device) => device = word,
                // A word that is not a value shows that the row belongs to another table.
                Some(Column::Figure(_)) if figure(word).is_none() && !blank_line(word) => {
                    return Outcome::NotRecognized;
                }
                _ => {}
            }
            found += 1;
        }
        let numbered = !device.is_empty() && device.bytes().all(|byte| byte.is_ascii_digit());
        if found != self.columns.len() || found < 2 || !numbered {
            return Outcome::NotRecognized;
        }
        self.row(text)
    }

    /// Returns a time of day as a time that keeps increasing after midnight.
    fn monotonic_time(&mut self, at: f64) -> f64 {
        const DAY: f64 = 86_400.0;
        if self.latest - (at + self.days) > DAY / 2.0 {
            self.days += DAY;
        }
        self.latest = at + self.days;
        self.latest
    }

    /// Reads a row with as many words as there are columns.
    fn row(&mut self, text: &str) -> Outcome {
        let (mut id, mut date, mut time, mut watts) = ("0", None, None, None);
        for (column, word) in self.columns.iter().zip(words(text)) {
            match column {
                Column::Device => id = word,
                Column::Date => date = Some(word),
                Column::Time => time = Some(word),
                Column::Figure(place) => {
                    let (Some((_, series)), Some(value)) = (self.series.get_mut(*place), figure(word)) else {
                        continue;
                    };
                    series.push(value);
                    watts = watts.or(Some(value).filter(|_| self.power == Some(*place)));
                }
            }
        }
        let Some(device) = self.devices.index(id) else { return Outcome::Unusable(TOO_MANY_DEVICES) };
        self.n += 1;
        if let Some(watts) = watts {
            // `-o DT` prepends `20240131 12:34:56`, `-o T` only the time of day.
            let at = time.and_then(|time| unix_seconds(&format!("{} {time}", date.unwrap_or("19700101"))));
            let at = at.map(|at| if date.is_some() { at } else { self.monotonic_time(at) });
            self.devices.push(device, at, watts);
        }
        Outcome::Recognized
    }
}

/// Whether a word stands for an unknown value.
fn blank_line(word: &str) -> bool {
    matches!(word, "-" | "N/A" | "[N/A]")
}

/// Parses a word that is entirely a number, unlike `-` and `N/A`.
fn figure(word: &str) -> Option<f64> {
    parse_leading_number(word).filter(|(value, rest)| rest.is_empty() && value.is_finite()).map(|(value, _)| value)
}
