//! `ibstat`: lists the same ports as sysfs, for machines where sysfs is not accessible.

use super::infiniband::{Port, kind, rate};

/// Parses the output of `ibstat` without options.
#[must_use]
pub fn ports(text: &str) -> Vec<Port> {
    let mut ports: Vec<Port> = Vec::new();
    let mut device = String::new();
    let mut open: Option<Reading> = None;
    for line in text.lines().take(1 << 16) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("CA '").and_then(|rest| rest.split('\'').next()) {
            ports.extend(open.take().and_then(|reading| reading.port(&device)));
            device = crate::text::clean(name);
        } else if let Some(number) = line.strip_prefix("Port ").and_then(|rest| rest.strip_suffix(':')) {
            ports.extend(open.take().and_then(|reading| reading.port(&device)));
            open = number.trim().parse().ok().map(|number| Reading { number, ..Reading::default() });
        } else if let (Some(reading), Some((field, value))) = (&mut open, line.split_once(':')) {
            let value = value.trim();
            match field {
                "State" => reading.active = value.eq_ignore_ascii_case("Active"),
                "Rate" => reading.gbits = rate(value),
                "Link layer" => reading.layer = Some(value.to_owned()),
                _ => {}
            }
        }
        if ports.len() >= 512 {
            return ports;
        }
    }
    ports.extend(open.and_then(|reading| reading.port(&device)));
    ports
}

#[derive(Default)]
struct Reading {
    number: u32,
    active: bool,
    gbits: Option<f64>,
    layer: Option<String>,
}

impl Reading {
    fn port(self, device: &str) -> Option<Port> {
        Some(Port {
            device: device.to_owned(),
            port: self.number,
            gbits: self.gbits?,
            kind: kind(device, self.layer.as_deref(), None),
            active: self.active,
        })
    }
}
