//! Section 3 of the guide: lat_min and lat_base_coeff, tail multipliers.

use crate::calibrate::columns::MetricColumn;
use atlas_core::math;
use std::collections::BTreeMap;

use super::Calibration;
use crate::calibrate::observation::Observation;
use crate::calibrate::parameter::{LAT_COEFF, LAT_MIN, M95, M99, Parameter, R_TTFT};
use crate::calibrate::statistics::{Estimate, bootstrap, factor, location};
use atlas_config::Mode;
use atlas_core::sort;
use atlas_core::statistics::{median, quantile};

/// Number of requests that the guide requires for a percentile.
const REQUESTS: f64 = 100.0;

/// Median latency, ms.
fn typical(row: &Observation) -> Option<f64> {
    let found = row.figure(MetricColumn::P50Ms).or_else(|| row.figure(MetricColumn::LatencyMs))?;
    (found.value > 0.0 && found.value.is_finite()).then_some(found.value)
}

impl<'a> Calibration<'a> {
    /// lat_min and lat_base_coeff: max(lat_min, c / rate). The transition between both is found by trying all splits.
    pub(super) fn latency(&mut self) {
        let mut points: Vec<(f64, f64, &'a Observation)> = Vec::new();
        let mut smallest: Vec<(f64, &'a Observation)> = Vec::new();
        for row in
            self.own().filter(|row| row.mode() == Mode::Inference || row.figure(MetricColumn::LatencyMs).is_some())
        {
            let Some(latency) = typical(row) else { continue };
            if row.number("batch") == Some(1.0) && row.number("seq_len") == Some(1.0) {
                smallest.push((latency, row));
            } else if let Some(rate) = self.compute_rate(row) {
                points.push((rate, latency, row));
            }
        }
        sort::by(&mut points, |a, b| a.0.total_cmp(&b.0));
        let split = split(&points);
        let (slow, fast) = points.split_at(split.min(points.len()));
        let logs = |points: &[(f64, f64, &'a Observation)], with_rate: bool| -> Vec<f64> {
            points
                .iter()
                .map(|(rate, latency, _)| math::ln(*latency) + if with_rate { math::ln(*rate) } else { 0.0 })
                .collect()
        };
        let rows = |points: &[(f64, f64, &'a Observation)]| points.iter().map(|point| point.2).collect::<Vec<_>>();
        match location(&logs(slow, true)).map(Estimate::exp) {
            Some(found) => {
                let found = Estimate { r2: explained_variance(&points, split), ..found };
                let method = "max(lat_min, c / rate) fitted to logarithms: c, from rates at which the latency falls";
                self.take(Parameter::new(&LAT_COEFF, found, method, rows(slow)));
            }
            None => self.record_missing(
                "lat_base_coeff",
                "median latency and tokens/s at several batch sizes, including low rates",
            ),
        }
        let least: Vec<f64> = smallest.iter().map(|(latency, _)| *latency).collect();
        if !least.is_empty() {
            // Smallest model, one token: the minimum itself, as in the guide.
            let value = least.iter().copied().fold(f64::INFINITY, f64::min);
            let spread = bootstrap(&least, |sample| sample.iter().copied().fold(f64::INFINITY, f64::min));
            let interval = spread.and_then(|spread| spread.interval);
            let found = Estimate { value, interval, n: least.len(), r2: None };
            let method = "lowest latency of a single sequence of one token";
            self.take(Parameter::new(&LAT_MIN, found, method, smallest.iter().map(|(_, row)| *row)));
        } else if let Some(found) = location(&logs(fast, false)).map(Estimate::exp) {
            let found = Estimate { r2: explained_variance(&points, split), ..found };
            let method =
                "max(lat_min, c / rate) fitted to logarithms: lat_min, from rates at which the latency is constant";
            self.take(Parameter::new(&LAT_MIN, found, method, rows(fast)));
        } else {
            self.record_missing(
                "lat_min",
                "latency of a single sequence of one token, or at rates at which it is constant",
            );
        }
    }

    /// Tokens per second that one accelerator computes: as given, or otherwise derived from the throughput by adding
    /// the communication time and the prompts. Serving throughput counts only generated tokens.
    fn compute_rate(&self, row: &Observation) -> Option<f64> {
        if let Some(stated) = row.figure(MetricColumn::ComputeRate) {
            return (stated.value > 0.0).then_some(stated.value);
        }
        let rate = row.throughput()?.value / self.bench.accelerators(row);
        let (prompt, generate) = (row.number("seq_len").unwrap_or(0.0), row.number("generate").unwrap_or(0.0));
        let all = if generate > 0.0 { (prompt + generate) / generate } else { 1.0 };
        let communication = 1.0 + self.c().omega * self.communication(row).map_or(0.0, |known| known.omega_comm);
        Some(rate * all * communication)
    }

    /// Tail multipliers: percentiles over the median, without the contribution of the model's tail factor.
    pub(super) fn tails(&mut self) {
        for (slot, percentile, q) in [(M95, MetricColumn::P95Ms, 0.95), (M99, MetricColumn::P99Ms, 0.99)] {
            let mut found: Vec<(f64, f64, &'a Observation)> = Vec::new();
            for row in self.own() {
                let (Some(tail), Some(p50)) = (row.figure(percentile), row.figure(MetricColumn::P50Ms)) else {
                    continue;
                };
                let ratio = tail.value / p50.value / self.tail_factor(row);
                if ratio.is_finite() && ratio > 0.0 && tail.value >= p50.value {
                    found.push((ratio, row.figure(MetricColumn::Samples).map_or(0.0, |n| n.value), row));
                }
            }
            if found.is_empty() {
                if !self.tail_of_requests(&slot, q) {
                    self.record_missing(slot.symbol, "p50 and this percentile under load, of at least 100 requests");
                }
                continue;
            }
            let few = found.iter().filter(|(_, n, _)| *n > 0.0 && *n < REQUESTS).count();
            let unknown = found.iter().filter(|(_, n, _)| *n == 0.0).count();
            if few > 0 {
                self.warn(format!("{}: {few} rows have percentiles of fewer than 100 requests", slot.symbol));
            }
            if unknown > 0 {
                self.warn(format!("{}: {unknown} rows do not specify the number of requests (samples)", slot.symbol));
            }
            // Rows with few requests are not used for tails if there are rows with more.
            let enough: Vec<&(f64, f64, &Observation)> = found.iter().filter(|(_, n, _)| *n >= REQUESTS).collect();
            let used: Vec<&(f64, f64, &Observation)> = if enough.is_empty() { found.iter().collect() } else { enough };
            let ratios: Vec<f64> = used.iter().map(|(ratio, ..)| *ratio).collect();
            let Some(mut estimate) = factor(&ratios) else { continue };
            let requests: f64 = used.iter().map(|(_, n, _)| *n).sum();
            if let [(ratio, n, _)] = used.as_slice() {
                estimate.interval = percentile_ratio_interval(*ratio, *n, q);
            }
            estimate.n = if requests > 0.0 { requests as usize } else { used.len() };
            let name = percentile.name();
            let method = format!("{name} over p50_ms, corrected for communication and SR-IOV (comm_tail, sriov_tail)");
            self.take(Parameter::new(&slot, estimate, method, used.iter().map(|(.., row)| *row)));
        }
        self.first_token();
    }

    /// Factor by which the model multiplies tails in addition to the multiplier.
    fn tail_factor(&self, row: &Observation) -> f64 {
        let sriov = row.word("virt").is_some_and(|virt| virt.eq_ignore_ascii_case("sriov"));
        let c = self.c();
        let communication = self.communication(row).map_or(0.0, |known| known.omega_comm);
        1.0 + c.tail_comm * communication + if sriov { c.tail_sriov } else { 0.0 }
    }

    /// Rows with the latency of a single request each: percentiles over all rows of one configuration.
    fn tail_of_requests(&mut self, slot: &crate::calibrate::parameter::Slot, q: f64) -> bool {
        let mut groups: BTreeMap<String, Vec<(f64, &'a Observation)>> = BTreeMap::new();
        for row in self.own() {
            let single = row
                .figure(MetricColumn::LatencyMs)
                .filter(|_| row.figure(MetricColumn::P50Ms).is_none() && self.compute_rate(row).is_none());
            if let Some(latency) = single.filter(|latency| latency.value > 0.0) {
                groups.entry(row.configuration_key(&[])).or_default().push((latency.value, row));
            }
        }
        let Some(rows) = groups.into_values().max_by_key(Vec::len).filter(|rows| rows.len() >= 20) else {
            return false;
        };
        if (rows.len() as f64) < REQUESTS {
            self.warn(format!("{}: percentile of {} requests, expected at least 100", slot.symbol, rows.len()));
        }
        let widening = rows.first().map_or(1.0, |(_, row)| self.tail_factor(row));
        let values: Vec<f64> = rows.iter().map(|(latency, _)| *latency).collect();
        let ratio = |sample: &mut Vec<f64>| quantile(sample, q) / quantile(sample, 0.5) / widening;
        let Some(found) = bootstrap(&values, ratio) else { return false };
        let method = format!("{:.0}th percentile over the median of single requests, bootstrap interval", 100.0 * q);
        self.take(Parameter::new(slot, found, method, rows.iter().map(|(_, row)| *row)));
        true
    }

    /// TTFT over the median latency: not in the guide, but measured together with it.
    fn first_token(&mut self) {
        let rows = self.own().filter_map(|row| {
            let share = row.figure(MetricColumn::TtftMs)?.value / row.figure(MetricColumn::P50Ms)?.value;
            (share > 0.0 && share <= 1.0).then_some((share, row))
        });
        let rows: Vec<(f64, &'a Observation)> = rows.collect();
        let shares: Vec<f64> = rows.iter().map(|(share, _)| *share).collect();
        if let Some(found) = factor(&shares) {
            let method = "TTFT over median latency";
            self.take(Parameter::new(&R_TTFT, found, method, rows.iter().map(|(_, row)| *row)));
        }
    }
}

/// 95 % interval of the ratio of a percentile to the median, for n requests. Latencies are approximately log-normal, so
/// their spread follows from the ratio itself. The variance of a quantile is q (1 − q) / (n f²) with the density f at
/// the quantile.
fn percentile_ratio_interval(ratio: f64, n: f64, q: f64) -> Option<[f64; 2]> {
    let z: f64 = if q > 0.97 { 2.326 } else { 1.645 };
    if n < 2.0 || ratio <= 1.0 {
        return None;
    }
    let sigma = math::ln(ratio) / z;
    let density = |z: f64| math::exp(-z * z / 2.0) / (2.0 * std::f64::consts::PI).sqrt() / sigma;
    let variance = q * (1.0 - q) / density(z).powi(2) + 0.25 / density(0.0).powi(2)
        - 2.0 * 0.5 * (1.0 - q) / (density(z) * density(0.0));
    let half = 1.96 * (variance.max(0.0) / n).sqrt();
    Some([ratio * math::exp(-half), ratio * math::exp(half)])
}

/// Number of slowest points that follow c / rate: the split with the smallest absolute error on logarithms.
fn split(points: &[(f64, f64, &Observation)]) -> usize {
    let loss = |split: usize| -> f64 {
        let (slow, fast) = points.split_at(split.min(points.len()));
        let off = |logs: Vec<f64>| {
            let center = median(logs.iter().copied()).unwrap_or_default();
            logs.iter().map(|log| (log - center).abs()).sum::<f64>()
        };
        off(slow.iter().map(|(rate, latency, _)| math::ln(rate * latency)).collect())
            + off(fast.iter().map(|(_, latency, _)| math::ln(*latency)).collect())
    };
    // Two lines through one point each fit anything, so each part is empty or has two points, if there are enough.
    let n = points.len();
    let sensible = (0..=n).filter(|split| n < 4 || (*split != 1 && *split + 1 != n));
    sensible.min_by(|a, b| loss(*a).total_cmp(&loss(*b)).then(b.cmp(a))).unwrap_or(n)
}

/// Share of the variance of the logarithms that the fit explains.
fn explained_variance(points: &[(f64, f64, &Observation)], split: usize) -> Option<f64> {
    let logs: Vec<f64> = points.iter().map(|(_, latency, _)| math::ln(*latency)).collect();
    let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    let total: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let (slow, fast) = points.split_at(split.min(points.len()));
    let c = location(&slow.iter().map(|(rate, latency, _)| math::ln(rate * latency)).collect::<Vec<_>>());
    let level = location(&fast.iter().map(|(_, latency, _)| math::ln(*latency)).collect::<Vec<_>>());
    let left: f64 = slow
        .iter()
        .map(|(rate, latency, _)| (math::ln(rate * latency) - c.map_or(0.0, |c| c.value)).powi(2))
        .sum::<f64>()
        + fast
            .iter()
            .map(|(_, latency, _)| (math::ln(*latency) - level.map_or(0.0, |level| level.value)).powi(2))
            .sum::<f64>();
    (total > 0.0 && points.len() > 2).then(|| 1.0 - left / total)
}
