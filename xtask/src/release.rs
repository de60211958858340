//! `cargo xtask release`: creates, for each target, a tarball of the optimized binary with completions, man pages,
//! licenses and a bill of materials, its checksum, and a Debian package. Every binary is tested in an empty root
//! directory, and all must print the same bytes.

mod build;
mod debian;
mod materials;
mod minimal;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options of `cargo xtask release`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Target triple; repeatable [default: the installed musl targets of x86-64 and AArch64, else that of this machine]
    #[arg(long)]
    target: Vec<String>,
    /// Output directory
    #[arg(long, default_value = "target/release-files")]
    out: PathBuf,
}

/// Error while creating a release.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    /// A program cannot be started, or a file cannot be written.
    #[error("{what}: {source}")]
    System { what: String, source: std::io::Error },
    /// A program failed; its own output states the reason.
    #[error("{0} failed")]
    Failed(String),
    /// The output of `cargo metadata` is not recognized.
    #[error("cargo metadata: {0}")]
    Metadata(String),
    /// The binary fails without system files.
    #[error("`atlas {line}` failed in an empty root directory:\n{stderr}")]
    Minimal { line: &'static str, stderr: String },
    /// Two architectures print different bytes.
    #[error("the output of `atlas {line}` on {other} differs from that on {one}")]
    Differs { line: &'static str, one: String, other: String },
}

const SHELLS: [(&str, &str); 3] = [("bash", "atlas.bash"), ("zsh", "_atlas"), ("fish", "atlas.fish")];
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ReleaseError {
    let what = what.into();
    move |source| ReleaseError::System { what, source }
}

/// Runs a program and returns its stdout.
fn output(command: &mut Command) -> Result<String, ReleaseError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::inherit()).output().map_err(system(name.clone()))?;
    if !output.status.success() {
        return Err(ReleaseError::Failed(name));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

pub(crate) fn host() -> Result<String, ReleaseError> {
    let described = output(Command::new("rustc").arg("-vV"))?;
    let host = described.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| ReleaseError::Failed("rustc -vV".to_owned()))
}

/// Builds, packages and tests the binaries, and prints the paths of the files.
pub(crate) fn run(args: &Args) -> Result<(), ReleaseError> {
    oldest_compiler()?;
    let targets = if args.target.is_empty() { build::targets()? } else { args.target.clone() };
    // The time of the commit is used as build time, so that builds are reproducible.
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]))?.trim().to_owned();
    let mut first: Option<(&str, minimal::Answers)> = None;
    for target in &targets {
        if !target.contains("musl") {
            eprintln!("{target} is not static: its binary needs a C library compatible with that of this system");
        }
        let Some(answers) = release(target, &args.out, &time)? else { continue };
        match &first {
            Some((one, known)) => match minimal::difference(known, &answers) {
                Some(line) => {
                    return Err(ReleaseError::Differs { line, one: (*one).to_owned(), other: target.clone() });
                }
                None => println!("the output of {target} is identical to that of {one}"),
            },
            None => first = Some((target, answers)),
        }
    }
    Ok(())
}

/// Checks the package with the oldest supported compiler, if it is installed.
fn oldest_compiler() -> Result<(), ReleaseError> {
    let version = concat!(env!("CARGO_PKG_RUST_VERSION"), ".0");
    let installed = Command::new("rustup").args(["run", version, "cargo", "--version"]).stdout(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        eprintln!("not checked with Rust {version}: rustup toolchain install {version} --profile minimal");
        return Ok(());
    }
    // Build artifacts of different compilers are not compatible.
    let mut check = Command::new("rustup");
    check.args(["run", version, "cargo", "check", "--locked", "--target-dir", "target/oldest"]);
    check.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    output(&mut check)?;
    println!("checked with Rust {version}");
    Ok(())
}

/// Releases one target; returns what its binary printed in an empty root directory, if it could be tested.
fn release(target: &str, out: &Path, time: &str) -> Result<Option<minimal::Answers>, ReleaseError> {
    let binary = build::binary(target, time)?;
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("atlas-{version}-{target}");
    let folder = out.join(&name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(system(folder.display().to_string()))?;
    }
    let make = |path: &Path| std::fs::create_dir_all(path).map_err(system(path.display().to_string()));
    make(&folder.join("completions"))?;
    let copy = |from: &Path, to: PathBuf| {
        std::fs::copy(from, &to).map(drop).map_err(system(format!("{} to {}", from.display(), to.display())))
    };
    let atlas = folder.join("atlas");
    copy(&binary, atlas.clone())?;
    for text in TEXTS {
        copy(Path::new(text), folder.join(text))?;
    }
    let write = |path: PathBuf, text: &str| std::fs::write(&path, text).map_err(system(path.display().to_string()));
    let runs = build::Runs::here(target)?;
    if let Some(mut man) = runs.command(&atlas) {
        for (shell, file) in SHELLS {
            let mut script = runs.command(&atlas).unwrap_or_else(|| Command::new(&atlas));
            write(folder.join("completions").join(file), &output(script.args(["completions", shell]))?)?;
        }
        output(man.arg("man").arg(folder.join("man")))?;
    } else {
        eprintln!("completions and man pages are missing: this machine cannot run {target}, natively or in QEMU");
    }
    let metadata =
        output(cargo().args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target]))?;
    write(folder.join("sbom.cdx.json"), &materials::bill(&metadata, version)?)?;
    pack(out, &name, time)?;
    match debian::package(&folder, out, version, target, time)? {
        Some(package) => println!("{}", package.display()),
        None => eprintln!("no Debian package: dpkg-deb is not installed, or Debian does not support {target}"),
    }
    let answers = if target.contains("musl") { minimal::answers(&atlas, &runs)? } else { None };
    match &answers {
        Some(answers) => println!("{target}: {} commands succeeded in an empty root directory", answers.len()),
        None => eprintln!("{target}: not tested in an empty root directory"),
    }
    Ok(answers)
}

/// Packs a directory reproducibly, and writes the checksum next to it.
fn pack(out: &Path, name: &str, time: &str) -> Result<(), ReleaseError> {
    let archive = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.current_dir(out).args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--use-compress-program=gzip -n",
    ]);
    output(tar.arg(format!("--mtime=@{time}")).args(["-cf", &archive, name]))?;
    let sum = output(Command::new("sha256sum").current_dir(out).arg(&archive))?;
    let file = out.join(format!("{archive}.sha256"));
    std::fs::write(&file, &sum).map_err(system(file.display().to_string()))?;
    println!("{sum}in {}", out.display());
    Ok(())
}
