//! Traces of the jobs of a cluster: Slurm accounting (`sacct -P`), the Standard Workload Format, CSV like that of the
//! Helios traces, and JSON like that of the Philly traces.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use serde_json::Value;

/// A job of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedJob {
    /// Job name or number.
    pub name: String,
    /// Submission time, in seconds from an origin common to all jobs.
    pub submitted: f64,
    /// Accelerators used, or processors in the Standard Workload Format.
    pub accelerators: f64,
    /// Run time, s.
    pub seconds: f64,
    /// Time limit, s.
    pub limit: Option<f64>,
}

/// A trace of jobs.
#[derive(Debug, Clone, Default)]
pub struct JobTrace {
    /// Name of the format.
    pub format: &'static str,
    /// Jobs in the order of submission.
    pub jobs: Vec<TracedJob>,
    /// Number of jobs left out, by reason.
    pub skipped: BTreeMap<&'static str, usize>,
}

/// Maximum number of jobs of a trace.
const MAX_JOBS: usize = 2_000_000;

const FORMATS: &str = "expected the output of sacct -P with its header, the Standard Workload Format, CSV with the \
                       columns submit_time, gpu_num and duration, or the JSON of the Philly traces";

/// Parses a trace.
///
/// # Errors
/// If the text has none of the formats, or no job that ran on accelerators.
pub fn read(text: &str) -> Result<JobTrace, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut trace = if first.trim_start().starts_with('[') {
        philly(text)?
    } else if first.starts_with(';') || is_swf(first) {
        swf(text)
    } else if first.contains('|') && first.to_lowercase().contains("jobid") {
        table(text, b'|', "sacct")?
    } else if first.contains(',') {
        table(text, b',', "CSV of jobs")?
    } else {
        let shown: String = first.chars().take(80).collect();
        return Err(format!("unknown format of a job trace: the file begins with \"{shown}\"; {FORMATS}"));
    };
    trace.jobs.sort_by(|a, b| a.submitted.total_cmp(&b.submitted));
    if trace.jobs.is_empty() {
        let why: Vec<String> = trace.skipped.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        let why = if why.is_empty() { "the file has no records".to_owned() } else { why.join(", ") };
        return Err(format!("{}: no usable job: {why}", trace.format));
    }
    Ok(trace)
}

impl JobTrace {
    fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    /// Adds a job that ran on accelerators, or counts it as skipped.
    fn take(
        &mut self,
        name: String,
        submitted: Option<f64>,
        gpus: Option<f64>,
        seconds: Option<f64>,
        limit: Option<f64>,
    ) {
        let positive = |value: Option<f64>| value.filter(|value| value.is_finite() && *value > 0.0);
        match (submitted.filter(|at| at.is_finite()), positive(gpus), positive(seconds)) {
            _ if self.jobs.len() >= MAX_JOBS => self.skip("beyond the limit of 2000000 jobs"),
            (None, ..) => self.skip("without a submission time"),
            (_, None, _) => self.skip("without accelerators"),
            (.., None) => self.skip("without a run time"),
            (_, Some(gpus), _) if gpus.fract() != 0.0 || gpus > 1e7 => {
                self.skip("with a fractional or excessive number of accelerators");
            }
            (Some(submitted), Some(accelerators), Some(seconds)) => {
                let limit = positive(limit).filter(|limit| *limit >= seconds);
                self.jobs.push(TracedJob { name, submitted, accelerators, seconds, limit });
            }
        }
    }
}

/// Whether a line consists of the eighteen numbers of the Standard Workload Format.
fn is_swf(line: &str) -> bool {
    let mut fields = 0;
    line.split_ascii_whitespace().all(|field| {
        fields += 1;
        field.parse::<f64>().is_ok()
    }) && fields == 18
}

/// Parses the Standard Workload Format (Feitelson): job, submission time, waiting time, run time, allocated processors,
/// …, requested processors, requested time.
fn swf(text: &str) -> JobTrace {
    let mut trace = JobTrace { format: "Standard Workload Format", ..JobTrace::default() };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(';')) {
        let fields: Vec<f64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        if fields.len() < 9 {
            trace.skip("truncated or malformed");
            continue;
        }
        let at = |index: usize| fields.get(index).copied().filter(|value| *value >= 0.0);
        let processors = at(4).filter(|n| *n > 0.0).or_else(|| at(7));
        let name = at(0).map_or_else(String::new, |number| number.to_string());
        trace.take(name, at(1), processors, at(3), at(8));
    }
    trace
}

/// Column names in lower case, letters and digits only.
const COLUMNS: [(Column, &[&str]); 9] = [
    (Column::Name, &["jobid", "jobidraw", "id", "jobname", "name"]),
    (Column::Submitted, &["submit", "submittime", "submittedtime", "submissiontime", "arrivaltime", "timestamp"]),
    (Column::Started, &["start", "starttime"]),
    (Column::Ended, &["end", "endtime", "finishtime"]),
    (Column::Seconds, &["elapsedraw", "duration", "runtime", "runseconds", "seconds"]),
    (Column::Elapsed, &["elapsed"]),
    (Column::Gpus, &["gpunum", "numgpus", "numgpu", "gpus", "ngpus", "gpurequest", "gpucount"]),
    (Column::Resources, &["alloctres", "reqtres", "allocgres", "reqgres"]),
    (Column::Limit, &["timelimit", "timelimitraw", "requestedtime", "walltime"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Name,
    Submitted,
    Started,
    Ended,
    Seconds,
    Elapsed,
    Gpus,
    Resources,
    Limit,
}

/// Parses a table with a header.
fn table(text: &str, delimiter: u8, format: &'static str) -> Result<JobTrace, String> {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| format!("{format}: {error}"))?.clone();
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let names: Vec<String> = header.iter().map(plain).collect();
    // Names listed earlier in `COLUMNS` take precedence.
    let place = |column: Column| {
        let (_, known) = COLUMNS.iter().find(|(one, _)| *one == column)?;
        known.iter().find_map(|name| names.iter().position(|found| found == name))
    };
    let has = |columns: &[Column]| columns.iter().any(|column| place(*column).is_some());
    let mut lacks = Vec::new();
    for (columns, what) in [
        (&[Column::Submitted][..], "the submission time (Submit or submit_time)"),
        (&[Column::Gpus, Column::Resources], "the number of accelerators (AllocTRES or gpu_num)"),
        (&[Column::Seconds, Column::Elapsed, Column::Ended], "the run time (ElapsedRaw, duration, or start and end)"),
    ] {
        if !has(columns) {
            lacks.push(what);
        }
    }
    if !lacks.is_empty() {
        return Err(format!("{format}: no column for {}; {FORMATS}", lacks.join(", ")));
    }
    let minutes = place(Column::Limit).and_then(|at| names.get(at)).is_some_and(|name| name == "timelimitraw");
    let mut trace = JobTrace { format, ..JobTrace::default() };
    for record in reader.records() {
        let Ok(record) = record else {
            trace.skip("truncated or malformed");
            continue;
        };
        let text = |column| place(column).and_then(|at| record.get(at)).map(str::trim).filter(|text| !text.is_empty());
        let name = text(Column::Name).unwrap_or("job").to_owned();
        // Slurm lists the steps of a job separately; skip them.
        if delimiter == b'|' && name.contains('.') {
            continue;
        }
        let seconds = text(Column::Seconds).and_then(|text| text.parse().ok());
        let seconds = seconds.or_else(|| parse_duration(text(Column::Elapsed)?)).or_else(|| {
            let (start, end) = (parse_time(text(Column::Started)?)?, parse_time(text(Column::Ended)?)?);
            Some(end - start)
        });
        let gpus = text(Column::Gpus).and_then(|text| text.parse().ok());
        let gpus = gpus.or_else(|| gpus_of(text(Column::Resources)?));
        let limit = text(Column::Limit).and_then(|text| match text.parse::<f64>() {
            Ok(number) if minutes => Some(60.0 * number),
            Ok(number) => Some(number),
            Err(_) => parse_duration(text),
        });
        trace.take(name, text(Column::Submitted).and_then(parse_time), gpus, seconds, limit);
    }
    Ok(trace)
}

/// Parses the number of accelerators from Slurm's trackable resources: `billing=8,gres/gpu=8`, `gpu:a100:4`.
fn gpus_of(resources: &str) -> Option<f64> {
    let parts: Vec<&str> = resources.split(',').collect();
    let total = parts
        .iter()
        .find_map(|part| part.strip_prefix("gres/gpu=").or_else(|| part.strip_prefix("gpu="))?.parse().ok());
    total.or_else(|| {
        let typed = parts.iter().filter_map(|part| {
            let rest = part
                .strip_prefix("gres/gpu:")
                .or_else(|| part.strip_prefix("gres:gpu:"))
                .or_else(|| part.strip_prefix("gpu:"))?;
            rest.rsplit([':', '=']).next()?.parse::<f64>().ok()
        });
        let sum: f64 = typed.sum();
        (sum > 0.0).then_some(sum)
    })
}

/// Parses a time to seconds: a number, or a date with a time of day.
fn parse_time(text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return Some(number);
    }
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(at.as_millisecond() as f64 / 1e3);
    }
    // Philly appends the zone: "2017-10-09 07:01:57 PDT".
    let plain: String = text.split_whitespace().take(2).collect::<Vec<_>>().join("T");
    let at: DateTime = plain.parse().ok()?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(at.timestamp().as_millisecond() as f64 / 1e3)
}

/// Parses a duration `[DAYS-]HOURS:MINUTES:SECONDS` of Slurm, whose leading parts may be missing.
fn parse_duration(text: &str) -> Option<f64> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let mut seconds = 0.0;
    for part in rest.split(':') {
        seconds = 60.0 * seconds + part.parse::<f64>().ok()?;
    }
    Some(86_400.0 * days.parse::<f64>().ok()? + seconds)
}

/// Parses `cluster_job_log` of Microsoft's Philly traces, which lists the attempts of each job with servers and
/// accelerators.
fn philly(text: &str) -> Result<JobTrace, String> {
    let all: Vec<Value> =
        serde_json::from_str(text).map_err(|error| format!("invalid JSON of a Philly trace: {error}; {FORMATS}"))?;
    let mut trace = JobTrace { format: "Philly's job log", ..JobTrace::default() };
    for job in &all {
        let text = |name: &str| job.get(name).and_then(Value::as_str);
        let attempts = job.get("attempts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let seconds: f64 = attempts
            .iter()
            .filter_map(|attempt| {
                let at = |name: &str| attempt.get(name).and_then(Value::as_str).and_then(parse_time);
                Some((at("end_time")? - at("start_time")?).max(0.0))
            })
            .sum();
        let gpus = |attempt: &Value| -> f64 {
            let servers = attempt.get("detail").and_then(Value::as_array).into_iter().flatten();
            servers.filter_map(|server| Some(server.get("gpus")?.as_array()?.len() as f64)).sum()
        };
        let gpus = attempts.iter().map(gpus).fold(0.0, f64::max);
        let name = text("jobid").unwrap_or("job").to_owned();
        trace.take(name, text("submitted_time").and_then(parse_time), Some(gpus), Some(seconds), None);
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    const SACCT: &str = "JobID|JobName|Submit|Start|End|ElapsedRaw|Timelimit|AllocTRES|State
101|train|2024-05-01T10:00:00|2024-05-01T10:05:00|2024-05-01T12:05:00|7200|1-00:00:00|billing=64,cpu=64,gres/gpu=16,node=2|COMPLETED
101.batch|batch|2024-05-01T10:05:00|2024-05-01T10:05:00|2024-05-01T12:05:00|7200||cpu=64|COMPLETED
102|prep|2024-05-01T09:00:00|2024-05-01T09:00:00|2024-05-01T09:10:00|600|01:00:00|cpu=8,node=1|COMPLETED
103|eval|2024-05-01T09:30:00|2024-05-01T09:31:00|2024-05-01T09:41:00|600|00:30:00|cpu=8,gres/gpu:h100=4,node=1|COMPLETED
";

    #[test]
    fn slurm_accounting_yields_accelerator_jobs_without_steps() {
        let trace = read(SACCT).unwrap();
        assert_eq!(trace.format, "sacct");
        let jobs: Vec<(&str, f64, f64)> =
            trace.jobs.iter().map(|job| (job.name.as_str(), job.accelerators, job.seconds)).collect();
        assert_eq!(jobs, [("103", 4.0, 600.0), ("101", 16.0, 7200.0)]);
        assert_eq!(trace.jobs[1].submitted - trace.jobs[0].submitted, 1800.0);
        assert_eq!(trace.jobs[1].limit, Some(86_400.0));
        assert_eq!(trace.skipped["without accelerators"], 1);
    }

    #[test]
    fn a_trace_without_records_is_refused() {
        let header = SACCT.lines().next().unwrap();
        assert_eq!(read(header).unwrap_err(), "sacct: no usable job: the file has no records");
    }

    #[test]
    fn workload_format_helios_and_philly_are_read() {
        let swf = "; UnixStartTime: 0\n 1 0 10 3600 32 -1 -1 32 7200 -1 1 1 1 1 1 1 -1 -1\n 2 60 0 -1 8 -1 -1 8 100 -1 0 1 1 1 1 1 -1 -1\n";
        let trace = read(swf).unwrap();
        assert_eq!((trace.jobs.len(), trace.jobs[0].accelerators, trace.jobs[0].limit), (1, 32.0, Some(7200.0)));
        assert_eq!(trace.skipped["without a run time"], 1);
        let helios = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
                      7,u1,vcA,8,64,1,COMPLETED,2020-04-01 00:00:13,2020-04-01 00:00:14,2020-04-01 01:00:14,3600,1\n";
        let trace = read(helios).unwrap();
        assert_eq!(
            (trace.jobs[0].name.as_str(), trace.jobs[0].accelerators, trace.jobs[0].seconds),
            ("7", 8.0, 3600.0)
        );
        let philly = r#"[{"status": "Pass", "vc": "a", "jobid": "application_1", "submitted_time": "2017-10-09 07:02:07",
            "attempts": [{"start_time": "2017-10-09 07:10:00", "end_time": "2017-10-09 08:10:00",
                          "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]}]}]"#;
        let trace = read(philly).unwrap();
        assert_eq!((trace.jobs[0].accelerators, trace.jobs[0].seconds), (3.0, 3600.0));
    }

    #[test]
    fn other_files_are_refused_and_lacking_columns_are_named() {
        assert!(read("hello\n").unwrap_err().contains("sacct -P"));
        let problem = read("JobID|State\n1|COMPLETED\n").unwrap_err();
        assert!(problem.contains("Submit") && problem.contains("AllocTRES"), "{problem}");
        assert!(read("").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_job_trace_text_does_not_panic(text in "[ -~\n|]{0,300}", cut in 0_usize..600) {
            let _ = read(&text);
            let cut = SACCT.get(..cut.min(SACCT.len())).unwrap();
            if let Ok(trace) = read(cut) {
                prop_assert!(trace.jobs.len() <= 2);
            }
        }
    }
}
