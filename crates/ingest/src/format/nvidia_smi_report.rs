//! The report of `nvidia-smi -q` in old and new drivers: sections of `name : value` for each device.

use serde_json::json;

use super::nvidia_smi_devices::Devices;
use crate::lines::Line;
use crate::reading::{Context, Reading, Setting, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{has, parse_leading_number};

/// Recognizer of the report.
#[derive(Debug, Default)]
pub struct Report {
    open: bool,
    section: String,
    /// Bus address of the current device.
    current: Option<String>,
    /// Whether power of the current device was read. The average precedes the instantaneous power, and is preferred.
    has_power: bool,
    devices: Devices<String>,
    reports: u64,
}

impl Recognizer for Report {
    fn triggers(&self) -> &'static [&'static str] {
        &["NVSMI LOG"]
    }

    fn in_block(&self) -> bool {
        self.open
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_end();
        if has(text, "NVSMI LOG") {
            self.open = true;
            self.reports += 1;
            self.current = None;
            return Outcome::Recognized;
        }
        if !self.open {
            return Outcome::NotRecognized;
        }
        let inner = text.trim_start();
        let indented = inner.len() < text.len();
        if let Some(bus) = inner.strip_prefix("GPU ").filter(|bus| !indented && bus.matches(':').count() >= 2) {
            self.devices.all.entry(bus.to_owned()).or_default();
            self.has_power = false;
            self.current = Some(bus.to_owned());
            self.section.clear();
            return Outcome::Recognized;
        }
        let Some((name, value)) = inner.split_once(" : ").map(|(name, value)| (name.trim(), value.trim())) else {
            if indented {
                inner.clone_into(&mut self.section);
                return Outcome::Recognized;
            }
            // Any other unindented line ends the report.
            self.open = false;
            return Outcome::NotRecognized;
        };
        self.value(name, value, indented, line.number)
    }

    fn contradicts(&self, line: Line<'_>) -> bool {
        let name = line.text.split_once(" : ").filter(|(name, _)| name.trim() == "Product Name");
        self.open && name.is_some_and(|(_, value)| self.devices.differs(value.trim()))
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
        facts.set_optional("total_power_w", self.devices.total_power().map(number_to_json));
        let mut notes = Vec::new();
        if self.reports > 1 {
            facts.set("snapshots", json!(self.reports));
            notes.push(format!("values are means over {} reports", self.reports));
        }
        vec![self.devices.reading("nvidia-smi-q", facts, notes, context)]
    }
}

impl Report {
    fn value(&mut self, name: &str, value: &str, indented: bool, line: u64) -> Outcome {
        if !indented {
            if name == "Driver Version" {
                self.devices.driver = Some(value.to_owned());
            }
            return Outcome::Recognized;
        }
        if name == "Product Name" {
            self.devices.named(value, line);
        }
        let Some(device) = self.current.as_ref().and_then(|bus| self.devices.all.get_mut(bus)) else {
            return Outcome::Unusable("a line of nvidia-smi -q outside the section of a device");
        };
        let figure =
            |unit: &str| parse_leading_number(value).filter(|(_, rest)| rest.trim() == unit).map(|(figure, _)| figure);
        match (self.section.as_str(), name) {
            // Newer drivers report the power of the module in a separate section.
            ("GPU Power Readings" | "Power Readings", _) => match name {
                "Power Draw" | "Average Power Draw" | "Instantaneous Power Draw" if !self.has_power => {
                    if let Some(watts) = figure("W") {
                        device.power.push(watts);
                        self.has_power = true;
                    }
                }
                "Current Power Limit" | "Enforced Power Limit" | "Power Limit" => {
                    self.devices.cap = figure("W").or(self.devices.cap)
                }
                _ => {}
            },
            ("FB Memory Usage", "Total") => self.devices.total = figure("MiB").or(self.devices.total),
            ("FB Memory Usage", "Used") => figure("MiB").into_iter().for_each(|mib| device.used.push(mib)),
            // Newer drivers print `GPU`, older ones `Gpu`.
            ("Utilization", "Gpu" | "GPU") => figure("%").into_iter().for_each(|share| device.utilization.push(share)),
            ("Temperature", "GPU Current Temp") => {
                figure("C").into_iter().for_each(|degrees| device.temperature.push(degrees));
            }
            _ => {}
        }
        Outcome::Recognized
    }
}
