//! The TUI under random keys, pastes, mouse reports, resizes and rewritten files, with races, a watched log and idle
//! time in between: it does not exit, and does not leak memory, descriptors or threads. A short run is part of the
//! tests; `cargo xtask soak` runs for hours.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use rand_mt::Mt64;

use crate::common::program::driven;
use crate::common::pty::Session;

/// Rounds of the short run.
const SHORT: u64 = 60;
/// Rounds between two visits of the views.
const BETWEEN_VISITS: u64 = 50;
/// Maximum resident memory, MB: the limit of cached simulations (64 MB), two running simulations and the library, with
/// a margin for an unoptimized build.
const MAX_MEMORY: f64 = 400.0;
/// Maximum growth of resident memory from the second to the last quarter of the run: in MB, and as a factor. In a run
/// shorter than an hour, the cache of simulations (64 MB) may fill in its second half.
const GROWTH: (f64, f64) = (24.0, 1.25);
const GROWTH_SHORT: (f64, f64) = (64.0, 1.25);

/// Duration of a visit of a view, and of the idle time after the visits.
const VISIT: Duration = Duration::from_millis(1500);
/// Timeout for a redraw.
const LONGEST_REPAINT: Duration = Duration::from_secs(10);

/// Resource usage of a process.
#[derive(Debug, Clone, Copy)]
struct Usage {
    memory_mb: f64,
    threads: usize,
    descriptors: usize,
}

impl Usage {
    fn of(pid: u32) -> Usage {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let field = |name: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
        Usage { memory_mb: field("VmRSS:") / 1024.0, threads: field("Threads:") as usize, descriptors }
    }
}

/// Statistics of a run.
#[derive(Debug, Default)]
struct Done {
    keys: u64,
    pastes: u64,
    resizes: u64,
    reloads: u64,
    starts: u64,
    /// Visits of the race and of the watch that were confirmed on the screen.
    races: u64,
    watches: u64,
    /// Lines appended to the watched log.
    lines: u64,
    /// Resizes after which nothing was written before the timeout.
    unanswered: u64,
    /// Longest time from a resize to the first byte of the redraw.
    slowest: Duration,
}

/// Random input from a seed.
struct Dice(Mt64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    /// A few keys as sent by a terminal. Keys that quit (q, Ctrl-C, Ctrl-\) are excluded; if the program exits all the
    /// same, it is started again.
    fn keys(&mut self) -> String {
        const NAMED: [&str; 16] = [
            "\u{1b}",
            "\r",
            "\t",
            " ",
            "\u{7f}",
            "\u{1b}[A",
            "\u{1b}[B",
            "\u{1b}[C",
            "\u{1b}[D",
            "\u{1b}[5~",
            "\u{1b}[6~",
            "\u{1b}[H",
            "\u{1b}[F",
            "\u{1b}[Z",
            "\u{1b}OP",
            "\u{12}",
        ];
        let mut keys = String::new();
        for _ in 0..=self.below(40) {
            match self.below(10) {
                0..=5 => keys.push((b'!' + self.below(94) as u8) as char),
                6..=8 => keys += self.pick(&NAMED),
                _ => {
                    let (button, x, y) = (self.below(2) * 64 + self.below(2), 1 + self.below(200), 1 + self.below(60));
                    write!(keys, "\u{1b}[<{button};{x};{y}M").unwrap();
                }
            }
        }
        keys.replace('q', "j")
    }

    fn paste(&mut self) -> String {
        let text = self.pick(&["tp=8", "é界\u{301}", "--set x=1\n", "\u{1b}[31m", "0.5", ""]);
        format!("\u{1b}[200~{}\u{1b}[201~", text.repeat(1 + self.below(50) as usize))
    }
}

const TARGETS: &str = "- {name: h100-sxm-8, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 8, \
num_nodes: 1, memory_gb_per_accel: 80, cost: {hourly_usd: PRICE, energy_watts_node: 10200, pue: 1.15}}\n";

/// Starts the program with no other programs available: random keys may open an editor or submit a job.
fn start(dir: &Path) -> Session {
    let mut command = CommandBuilder::new(driven());
    command.args(["--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve", "--watch", "job.log"]);
    for name in ["EDITOR", "VISUAL", "NO_COLOR", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command.env("PATH", dir.join("no-programs"));
    command.env("HOME", dir);
    // glibc keeps freed memory up to thresholds that grow with the largest block, which would be mistaken for memory in
    // use.
    for name in ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"] {
        command.env(name, "131072");
    }
    let session = Session::run(dir, command);
    session.wait_for("vj Watch ━");
    session
}

/// Waits for new output; returns the elapsed time.
fn answered(session: &Session) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < LONGEST_REPAINT {
        if !session.bytes.lock().unwrap().is_empty() {
            return Some(began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// One round: keys, and sometimes a paste, a resize, a rewritten file or a pause.
fn round(session: &mut Session, dir: &Path, dice: &mut Dice, done: &mut Done) {
    let keys = dice.keys();
    done.keys += keys.chars().count() as u64;
    session.keys(&keys);
    if dice.below(10) == 0 {
        done.pastes += 1;
        session.keys(&dice.paste());
    }
    rewrite(dir, dice, done);
    if dice.below(8) == 0 {
        const SIZES: [(u16, u16); 5] = [(1, 1), (20, 5), (80, 24), (120, 40), (200, 60)];
        let others: Vec<(u16, u16)> = SIZES.into_iter().filter(|size| *size != session.size).collect();
        let (columns, rows) = others[dice.below(others.len() as u64) as usize];
        done.resizes += 1;
        session.bytes.lock().unwrap().clear();
        session.resize(columns, rows);
        match answered(session) {
            Some(took) => done.slowest = done.slowest.max(took),
            None => done.unanswered += 1,
        }
    }
    // The content of the screen is not checked.
    session.bytes.lock().unwrap().clear();
    std::thread::sleep(Duration::from_millis(if dice.below(50) == 0 { 500 } else { 5 }));
}

/// Rewrites the watched file and appends to the watched log.
fn rewrite(dir: &Path, dice: &mut Dice, done: &mut Done) {
    done.reloads += 1;
    let text = match dice.below(5) {
        0 => "- name: [".to_owned(),
        price => TARGETS.replace("PRICE", &(10 * price + dice.below(10)).to_string()),
    };
    std::fs::write(dir.join("workload/targets.yaml"), text).unwrap();
    done.lines += 1;
    let mut log = std::fs::File::options().append(true).open(dir.join("job.log")).unwrap();
    let (step, time) = (done.lines, 1000 + dice.below(100));
    writeln!(
        log,
        " iteration {step}/ 5000000 | elapsed time per iteration (ms): {time}.0 | global batch size: 8 | lm loss: 2.5 |"
    )
    .unwrap();
}

/// Resizes to another common size, so that every cell is redrawn.
fn redraw(session: &mut Session) {
    let size = if session.size == (100, 30) { (104, 31) } else { (100, 30) };
    session.bytes.lock().unwrap().clear();
    session.resize(size.0, size.1);
}

/// Waits until no output is written for a while: on a busy machine, keys are handled long after they were sent.
fn settled(session: &Session) {
    const QUIET: Duration = Duration::from_millis(200);
    let began = Instant::now();
    let (mut written, mut since) = (session.bytes.lock().unwrap().len(), Instant::now());
    while since.elapsed() < QUIET && began.elapsed() < LONGEST_REPAINT {
        std::thread::sleep(Duration::from_millis(5));
        let now = session.bytes.lock().unwrap().len();
        if now != written {
            (written, since) = (now, Instant::now());
        }
    }
}

/// Closes everything, opens a view, and stays there while the file and the log change; returns whether the view's title
/// appeared. It tries again if it did not: a computation on a busy machine may exceed the timeout.
fn visit(session: &mut Session, key: &str, title: &str, dir: &Path, dice: &mut Dice, done: &mut Done) -> bool {
    for _ in 0..3 {
        // On a one-cell screen there is no output that shows that keys are handled.
        redraw(session);
        settled(session);
        for _ in 0..6 {
            session.keys("\u{1b}");
            std::thread::sleep(Duration::from_millis(40));
        }
        // Escape and a key that are read together would be taken as Alt with the key.
        settled(session);
        session.keys(key);
        redraw(session);
        let began = Instant::now();
        let mut seen = false;
        while began.elapsed() < VISIT || !seen && began.elapsed() < LONGEST_REPAINT {
            if session.child.try_wait().unwrap().is_some() {
                return false;
            }
            seen = seen || session.screen().contains(title);
            if seen {
                rewrite(dir, dice, done);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        if seen {
            session.bytes.lock().unwrap().clear();
            return true;
        }
        eprintln!("{title:?} is not on the screen:\n{}", session.screen());
    }
    false
}

/// Runs until `enough` returns true, calling `seen` after every round; returns the statistics.
fn soak(seed: u64, mut enough: impl FnMut(u64) -> bool, mut seen: impl FnMut(&Done, Usage)) -> Done {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("workload")).unwrap();
    std::fs::write(dir.path().join("workload/targets.yaml"), TARGETS.replace("PRICE", "10")).unwrap();
    std::fs::write(dir.path().join("job.log"), "").unwrap();
    let mut dice = Dice(Mt64::new(seed));
    let mut done = Done::default();
    let mut session = start(dir.path());
    let mut rounds = 0;
    while !enough(rounds) {
        if let Some(status) = session.child.try_wait().unwrap() {
            assert!(status.success(), "seed {seed}, round {rounds}: it ended with {status:?}\n{}", session.screen());
            done.starts += 1;
            session = start(dir.path());
        }
        round(&mut session, dir.path(), &mut dice, &mut done);
        rounds += 1;
        if rounds % BETWEEN_VISITS == 0 {
            done.races += u64::from(visit(&mut session, "c", "━ 2 Race", dir.path(), &mut dice, &mut done));
            done.watches += u64::from(visit(&mut session, "vj", "vj Watch ━", dir.path(), &mut dice, &mut done));
            std::thread::sleep(VISIT);
        }
        if session.child.try_wait().unwrap().is_none() {
            seen(&done, Usage::of(session.child.process_id().unwrap()));
        }
    }
    session.signal("TERM");
    session.wait_for_end();
    done
}

#[test]
fn random_input_keeps_the_tui_running_within_memory_limits() {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let done = soak(
        seed,
        |rounds| rounds >= SHORT,
        |_, usage| {
            assert!(usage.memory_mb < MAX_MEMORY, "{usage:?}");
            assert!(usage.threads < 40 && usage.descriptors < 60, "{usage:?}");
        },
    );
    assert!(done.keys > SHORT && done.reloads >= SHORT && done.resizes > 0, "{done:?}");
    assert!(done.races > 0 && done.watches > 0, "{done:?}");
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Run by `cargo xtask soak`, which sets the variables.
#[test]
#[ignore = "long: `cargo xtask soak --seconds N`"]
fn long_run() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let length = Duration::from_secs(variable("ATLAS_SOAK_SECONDS").parse().expect("seconds"));
    let seed = variable("ATLAS_SOAK_SEED").parse().unwrap_or_else(|_| u64::from(std::process::id()));
    let (began, every) = (Instant::now(), (length / 120).max(Duration::from_secs(1)));
    let mut next = every;
    let mut samples: Vec<f64> = Vec::new();
    println!(
        "seed {seed}\nseconds,keys,pastes,resizes,reloads,races,watches,restarts,memory_mb,threads,descriptors,\
         slowest_repaint_ms,unanswered"
    );
    let done = soak(
        seed,
        |_| began.elapsed() >= length,
        |done, usage| {
            if began.elapsed() >= next {
                next += every;
                samples.push(usage.memory_mb);
                println!(
                    "{:.0},{},{},{},{},{},{},{},{:.1},{},{},{:.1},{}",
                    began.elapsed().as_secs_f64(),
                    done.keys,
                    done.pastes,
                    done.resizes,
                    done.reloads,
                    done.races,
                    done.watches,
                    done.starts,
                    usage.memory_mb,
                    usage.threads,
                    usage.descriptors,
                    1e3 * done.slowest.as_secs_f64(),
                    done.unanswered
                );
            }
            assert!(usage.memory_mb < MAX_MEMORY, "{usage:?}");
            assert!(usage.threads < 40 && usage.descriptors < 60, "{usage:?}");
        },
    );
    println!("{done:?}");
    let quarter = samples.len() / 4;
    if quarter > 2 {
        let (early, late) = (median(&samples[quarter..2 * quarter]), median(&samples[3 * quarter..]));
        println!("memory: {early:.1} MB in the second quarter, {late:.1} MB in the last");
        let (megabytes, factor) = if length < Duration::from_secs(3600) { GROWTH_SHORT } else { GROWTH };
        assert!(late <= megabytes + factor * early, "memory grows from {early:.1} to {late:.1} MB");
    }
}
