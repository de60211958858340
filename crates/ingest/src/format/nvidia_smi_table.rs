//! The table of plain `nvidia-smi`, printed once or repeatedly.

use serde_json::json;

use super::nvidia_smi_devices::Devices;
use crate::lines::Line;
use crate::reading::{Context, Reading, Setting, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{has, number, parse_leading_number, text_between};

/// Recognizer of the table.
#[derive(Debug, Default)]
pub struct Table {
    tables: u64,
    current: Option<u64>,
    devices: Devices<u64>,
}

impl Recognizer for Table {
    fn triggers(&self) -> &'static [&'static str] {
        &["| NVIDIA-SMI", "W / ", "MiB / ", "  NVIDIA ", "  Tesla "]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "| NVIDIA-SMI") {
            self.tables += 1;
            let driver = text_between(text, "Driver Version:", " ").map(str::to_owned);
            self.devices.driver = driver.or(self.devices.driver.take());
            return Outcome::Recognized;
        }
        let Some(inner) = text.strip_prefix('|') else { return Outcome::NotRecognized };
        if !has(inner, "MiB /") && !has(inner, "W /") {
            let Some((index, name)) = device(text) else { return Outcome::NotRecognized };
            self.devices.named(name, line.number);
            self.current = Some(index);
            self.devices.all.entry(index).or_default();
            return Outcome::Recognized;
        }
        // `| N/A   48C    P0            464W /  700W |   72770MiB /  81559MiB |     97%      Default |`
        let Some(device) = self.current.take().and_then(|index| self.devices.all.get_mut(&index)) else {
            return Outcome::Unusable("an nvidia-smi row without a device name above it");
        };
        let mut parts = inner.split('|');
        let (state, memory, load) =
            (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let with_unit = |text: &str, unit: &str| {
            text.split_ascii_whitespace().find_map(|word| word.strip_suffix(unit).and_then(number))
        };
        let (draw, cap) = state.rsplit_once('/').unwrap_or((state, ""));
        for (series, value) in [
            (&mut device.power, with_unit(draw, "W")),
            (&mut device.temperature, with_unit(state, "C")),
            (&mut device.used, with_unit(memory, "MiB")),
            (&mut device.utilization, with_unit(load, "%")),
        ] {
            value.into_iter().for_each(|value| series.push(value));
        }
        self.devices.cap = with_unit(cap, "W").or(self.devices.cap);
        self.devices.total =
            memory.split_once('/').and_then(|(_, total)| with_unit(total, "MiB")).or(self.devices.total);
        Outcome::Recognized
    }

    fn contradicts(&self, line: Line<'_>) -> bool {
        device(line.text).is_some_and(|(_, name)| self.devices.differs(name))
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn settings(&self) -> Vec<Setting> {
        self.devices.settings()
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.devices.all.is_empty() {
            return Vec::new();
        }
        let mut facts = self.devices.facts();
        facts.set("total_power_w", number_to_json(self.devices.total_power().unwrap_or_default()));
        let snapshots = self.devices.all.values().map(|device| device.power.len()).max().unwrap_or(0);
        let mut notes = Vec::new();
        if snapshots > 1 {
            facts.set("snapshots", snapshots);
            facts.set("tables", json!(self.tables));
            notes.push(format!("values are means over {snapshots} tables"));
        }
        vec![self.devices.reading("nvidia-smi-table", facts, notes, context)]
    }
}

/// Parses index and name of a device from `|   0  NVIDIA H100 80GB HBM3          On  | 00000000:61:00.0 Off |`.
fn device(text: &str) -> Option<(u64, &str)> {
    let inner = text.trim_ascii().strip_prefix('|')?;
    let (index, rest) = parse_leading_number(inner).filter(|(index, _)| index.fract() == 0.0 && *index >= 0.0)?;
    let mut cells = rest.split('|');
    let name = cells.next()?.trim();
    if name.is_empty() || cells.next()?.matches(':').count() < 2 {
        return None;
    }
    let name = name.strip_suffix("On").or(name.strip_suffix("Off")).unwrap_or(name).trim();
    Some((index as u64, name.trim_end_matches('.')))
}
