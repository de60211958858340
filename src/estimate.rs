//! What every engine answers, and the registry of metrics that names each figure.

use crate::units;

/// The answer to a scenario.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// The aggregate over the schedule's phases, or the single answer without a schedule.
    pub total: Figures,
    /// Per phase; empty without a schedule.
    pub phases: Vec<Figures>,
    /// Minutes of all phases.
    pub total_minutes: f64,
    /// Latency of the service alone, weighted over phases that were queued; zero without a schedule.
    pub service: Latency,
    /// Means over the phases of what queueing adds.
    pub queue: Queue,
    /// Cost of all nodes.
    pub cost: Cost,
}

/// Figures of a phase or of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Tokens per second of all accelerators; generated tokens in inference.
    pub tokens_per_sec: f64,
    /// Share of peak FLOP/s that does useful work.
    pub flop_utilization: f64,
    /// Share of peak memory bandwidth in use.
    pub hbm_bw_util: f64,
    /// Share of the time that goes into communication.
    pub comm_compute_ratio: f64,
    /// Time of one optimizer step, ms; 0 in inference.
    pub step_time_ms: f64,
    /// Latency of a request; 0 in training.
    pub latency: Latency,
    /// Peak memory of an accelerator, GB; clipped at what it has.
    pub peak_mem_gb: f64,
    /// Power of one node, W.
    pub node_power_w: f64,
    /// Steps that had to be repeated.
    pub retries: u32,
    /// Runs that failed; the model never predicts one.
    pub failures: u32,
    /// Weight of the phase, minutes.
    pub minutes: f64,
    /// Queueing, where the phase serves requests.
    pub queue: Option<Queue>,
}

/// Percentiles of a latency, ms.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Time to first token.
    pub ttft: f64,
}

/// What waiting in line adds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Queue {
    /// Arrivals, requests/s.
    pub arrival_rate: f64,
    /// Parallel servers.
    pub servers: f64,
    /// Mean service time, ms.
    pub service_mean_ms: f64,
    /// Coefficient of variation of the service time.
    pub service_cv: f64,
    /// Coefficient of variation of the arrivals.
    pub arrival_cv: f64,
    /// Share of the servers' time in use.
    pub utilization: f64,
    /// Service and waiting together.
    pub latency: Latency,
    /// Waiting alone.
    pub wait: Latency,
    /// Waiting over the whole, at p99.
    pub waiting_fraction_p99: f64,
}

/// Cost, USD.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Rental and energy of all nodes, USD/h.
    pub usd_per_hour: f64,
    /// Of which energy, USD/h.
    pub energy_usd_per_hour: f64,
    /// Rental and energy of all nodes per 1000 tokens.
    pub usd_per_1k_tokens: f64,
    /// The founding system's figure: rental and energy of ONE node over the tokens of ALL nodes. Equal to
    /// `usd_per_1k_tokens` for one node, too low by the number of nodes otherwise; kept for comparison with old records.
    pub usd_per_1k_tokens_parity: f64,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neutral,
}

/// How a metric is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// SI prefix, four digits.
    Si,
    /// Per cent.
    Percent,
    /// Dollars.
    Usd,
    /// A duration given in milliseconds.
    Duration,
    /// A whole number.
    Count,
}

impl Format {
    /// Writes a value without its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Format::Si => units::si(value),
            Format::Percent => units::percent(value),
            Format::Usd => units::usd(value),
            Format::Duration => units::duration_ms(value),
            Format::Count => format!("{value:.0}"),
        }
    }
}

/// When a metric says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// Always.
    Always,
    /// In training.
    Training,
    /// In inference.
    Inference,
    /// In inference with a schedule.
    Queueing,
}

/// The section a metric stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// How fast.
    Throughput,
    /// How soon.
    Latency,
    /// How dear.
    Cost,
    /// How hungry.
    Power,
    /// How full.
    Utilization,
}

impl Section {
    /// Its heading.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Section::Throughput => "throughput",
            Section::Latency => "latency",
            Section::Cost => "cost",
            Section::Power => "power",
            Section::Utilization => "utilisation",
        }
    }
}

/// One figure of an estimate, described once for panes, tables, demos and reports.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in files, flags and JSON.
    pub name: &'static str,
    /// Its label on screens.
    pub label: &'static str,
    /// Its unit, where the format does not write one.
    pub unit: &'static str,
    /// Where it stands.
    pub section: Section,
    /// Which way is better.
    pub better: Better,
    /// How it is written.
    pub format: Format,
    /// When it says something.
    pub applies: Applies,
    /// One line of explanation.
    pub help: &'static str,
    /// Reads it.
    pub get: fn(&Estimate, &crate::scenario::Scenario) -> f64,
}

impl PartialEq for Metric {
    fn eq(&self, other: &Metric) -> bool {
        self.name == other.name
    }
}

/// Every metric, in the order in which panes and tables show them.
pub const METRICS: [Metric; 20] = [
    Metric {
        name: "tokens_per_sec",
        label: "tokens/s",
        unit: "tok/s",
        section: Section::Throughput,
        better: Better::Higher,
        format: Format::Si,
        applies: Applies::Always,
        help: "tokens per second of all accelerators; generated tokens in inference",
        get: |e, _| e.total.tokens_per_sec,
    },
    Metric {
        name: "tokens_per_sec_per_accel",
        label: "tok/s/accel",
        unit: "tok/s",
        section: Section::Throughput,
        better: Better::Higher,
        format: Format::Si,
        applies: Applies::Always,
        help: "tokens per second of one accelerator",
        get: |e, s| e.total.tokens_per_sec / s.accelerators(),
    },
    Metric {
        name: "step_time_ms",
        label: "step time",
        unit: "",
        section: Section::Throughput,
        better: Better::Lower,
        format: Format::Duration,
        applies: Applies::Training,
        help: "time of one optimizer step: dp × microbatch × sequence tokens",
        get: |e, _| e.total.step_time_ms,
    },
    Metric {
        name: "p50_ms",
        label: "p50",
        unit: "",
        section: Section::Latency,
        better: Better::Lower,
        format: Format::Duration,
        applies: Applies::Inference,
        help: "median latency, waiting included",
        get: |e, _| e.total.latency.p50,
    },
    Metric {
        name: "p95_ms",
        label: "p95",
        unit: "",
        section: Section::Latency,
        better: Better::Lower,
        format: Format::Duration,
        applies: Applies::Inference,
        help: "95th percentile of latency, waiting included",
        get: |e, _| e.total.latency.p95,
    },
    Metric {
        name: "p99_ms",
        label: "p99",
        unit: "",
        section: Section::Latency,
        better: Better::Lower,
        format: Format::Duration,
        applies: Applies::Inference,
        help: "99th percentile of latency, waiting included",
        get: |e, _| e.total.latency.p99,
    },
    Metric {
        name: "ttft_ms",
        label: "TTFT",
        unit: "",
        section: Section::Latency,
        better: Better::Lower,
        format: Format::Duration,
        applies: Applies::Inference,
        help: "time to first token, waiting included",
        get: |e, _| e.total.latency.ttft,
    },
    Metric {
        name: "queue_wait_p99_ms",
        label: "wait p99",
        unit: "",
        section: Section::Latency,
        better: Better::Lower,
        format: Format::Duration,
        applies: Applies::Queueing,
        help: "99th percentile of the wait before service",
        get: |e, _| e.queue.wait.p99,
    },
    Metric {
        name: "queue_utilization",
        label: "queue load",
        unit: "",
        section: Section::Latency,
        better: Better::Lower,
        format: Format::Percent,
        applies: Applies::Queueing,
        help: "share of the servers' time in use",
        get: |e, _| e.queue.utilization,
    },
    Metric {
        name: "dollar_per_1k_tokens",
        label: "$/1k tokens",
        unit: "",
        section: Section::Cost,
        better: Better::Lower,
        format: Format::Usd,
        applies: Applies::Always,
        help: "rental and energy of all nodes per 1000 tokens",
        get: |e, _| e.cost.usd_per_1k_tokens,
    },
    Metric {
        name: "dollar_per_1m_tokens",
        label: "$/1M tokens",
        unit: "",
        section: Section::Cost,
        better: Better::Lower,
        format: Format::Usd,
        applies: Applies::Always,
        help: "rental and energy of all nodes per million tokens",
        get: |e, _| e.cost.usd_per_1k_tokens * 1000.0,
    },
    Metric {
        name: "usd_per_hour",
        label: "$/hour",
        unit: "",
        section: Section::Cost,
        better: Better::Lower,
        format: Format::Usd,
        applies: Applies::Always,
        help: "rental and energy of all nodes",
        get: |e, _| e.cost.usd_per_hour,
    },
    Metric {
        name: "tokens_per_dollar",
        label: "tokens/$",
        unit: "tok",
        section: Section::Cost,
        better: Better::Higher,
        format: Format::Si,
        applies: Applies::Always,
        help: "tokens one dollar buys, rental and energy",
        get: |e, _| 1000.0 / e.cost.usd_per_1k_tokens,
    },
    Metric {
        name: "node_power_w",
        label: "power/node",
        unit: "W",
        section: Section::Power,
        better: Better::Lower,
        format: Format::Si,
        applies: Applies::Always,
        help: "power of one node at this utilisation",
        get: |e, _| e.total.node_power_w,
    },
    Metric {
        name: "power_w",
        label: "power",
        unit: "W",
        section: Section::Power,
        better: Better::Lower,
        format: Format::Si,
        applies: Applies::Always,
        help: "power of all nodes, without the facility's overhead",
        get: |e, s| e.total.node_power_w * s.num_nodes,
    },
    Metric {
        name: "tokens_per_joule",
        label: "tokens/J",
        unit: "tok/J",
        section: Section::Power,
        better: Better::Higher,
        format: Format::Si,
        applies: Applies::Always,
        help: "tokens per joule at the nodes' plugs",
        get: |e, s| e.total.tokens_per_sec / (e.total.node_power_w * s.num_nodes),
    },
    Metric {
        name: "flop_utilization",
        label: "FLOP use",
        unit: "",
        section: Section::Utilization,
        better: Better::Higher,
        format: Format::Percent,
        applies: Applies::Always,
        help: "share of peak FLOP/s that does useful work",
        get: |e, _| e.total.flop_utilization,
    },
    Metric {
        name: "hbm_bw_util",
        label: "HBM use",
        unit: "",
        section: Section::Utilization,
        better: Better::Neutral,
        format: Format::Percent,
        applies: Applies::Always,
        help: "share of peak memory bandwidth in use",
        get: |e, _| e.total.hbm_bw_util,
    },
    Metric {
        name: "comm_compute_ratio",
        label: "comm share",
        unit: "",
        section: Section::Utilization,
        better: Better::Lower,
        format: Format::Percent,
        applies: Applies::Always,
        help: "share of the time that goes into communication",
        get: |e, _| e.total.comm_compute_ratio,
    },
    Metric {
        name: "peak_mem_gb",
        label: "memory",
        unit: "GB",
        section: Section::Utilization,
        better: Better::Neutral,
        format: Format::Si,
        applies: Applies::Always,
        help: "peak memory of an accelerator; this model clips it at what there is",
        get: |e, _| e.total.peak_mem_gb,
    },
];

impl Metric {
    /// The metric of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Whether it says something about this scenario.
    #[must_use]
    pub fn applies_to(&self, scenario: &crate::scenario::Scenario) -> bool {
        let inference = scenario.mode() == crate::spec::Mode::Inference;
        match self.applies {
            Applies::Always => true,
            Applies::Training => !inference,
            Applies::Inference => inference,
            Applies::Queueing => inference && !scenario.phases.is_empty(),
        }
    }

    /// Its value with its unit.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        let text = self.format.show(value);
        if self.unit.is_empty() { text } else { units::with_unit(&text, self.unit) }
    }
}
