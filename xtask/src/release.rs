//! `cargo xtask release`: a tarball of the optimized binary with completions, man pages, licenses and a bill of materials,
//! its checksum, and a Debian package.

mod debian;
mod materials;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where it goes, and what for.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Target triple [default: x86_64-unknown-linux-musl where it is installed, else this machine's]
    #[arg(long)]
    target: Option<String>,
    /// Directory that the files are written to
    #[arg(long, default_value = "target/release-files")]
    out: PathBuf,
}

/// Why there is no release.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    /// A program could not be started, or a file not be written.
    #[error("{what}: {source}")]
    System { what: String, source: std::io::Error },
    /// A program failed; it has said why.
    #[error("{0} failed")]
    Failed(String),
    /// What cargo says of the packages is not understood.
    #[error("cargo metadata: {0}")]
    Metadata(String),
}

/// The target that runs without a C library of the system.
const STATIC: &str = "x86_64-unknown-linux-musl";
const SHELLS: [(&str, &str); 3] = [("bash", "atlas.bash"), ("zsh", "_atlas"), ("fish", "atlas.fish")];
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ReleaseError {
    let what = what.into();
    move |source| ReleaseError::System { what, source }
}

/// Runs a program, and answers what it wrote to stdout.
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

fn is_installed(target: &str) -> bool {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"])).unwrap_or_default();
    Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir()
}

pub(crate) fn host() -> Result<String, ReleaseError> {
    let described = output(Command::new("rustc").arg("-vV"))?;
    let host = described.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| ReleaseError::Failed("rustc -vV".to_owned()))
}

/// Flags under which messages name files alike wherever the sources and cargo's home are.
fn remapped() -> Result<String, ReleaseError> {
    let here = std::env::current_dir().map_err(system("the current directory"))?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let given = std::env::var("RUSTFLAGS").unwrap_or_default();
    let flags = home.iter().map(|home| (home.as_path(), "/cargo")).chain([(here.as_path(), "/atlas")]);
    Ok(flags.fold(given, |all, (from, to)| format!("{all} --remap-path-prefix={}={to}", from.display())))
}

/// Builds, packs, and says what was written.
pub(crate) fn run(args: &Args) -> Result<(), ReleaseError> {
    let target = match &args.target {
        Some(target) => target.clone(),
        None if is_installed(STATIC) => STATIC.to_owned(),
        None => host()?,
    };
    if !target.contains("musl") {
        eprintln!(
            "not static: this binary needs the C library of a system like this one. `rustup target add {STATIC}` makes a \
             static one possible."
        );
    }
    // The time of the commit stands for that of the build, so that two builds are alike.
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]))?.trim().to_owned();
    let mut build = cargo();
    build.args(["build", "--profile", "dist", "--locked", "--package", "atlas-fabric", "--target", &target]);
    output(build.env("SOURCE_DATE_EPOCH", &time).env("RUSTFLAGS", remapped()?))?;
    let binary = Path::new("target").join(&target).join("dist/atlas");
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("atlas-{version}-{target}");
    let folder = args.out.join(&name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(system(folder.display().to_string()))?;
    }
    let make = |path: &Path| std::fs::create_dir_all(path).map_err(system(path.display().to_string()));
    make(&folder.join("completions"))?;
    let copy = |from: &Path, to: PathBuf| {
        std::fs::copy(from, &to).map(drop).map_err(system(format!("{} to {}", from.display(), to.display())))
    };
    copy(&binary, folder.join("atlas"))?;
    for text in TEXTS {
        copy(Path::new(text), folder.join(text))?;
    }
    let write = |path: PathBuf, text: &str| std::fs::write(&path, text).map_err(system(path.display().to_string()));
    let atlas = folder.join("atlas");
    let native = target == host()? || target == STATIC && cfg!(target_os = "linux");
    if native {
        for (shell, file) in SHELLS {
            let script = output(Command::new(&atlas).args(["completions", shell]))?;
            write(folder.join("completions").join(file), &script)?;
        }
        output(Command::new(&atlas).arg("man").arg(folder.join("man")))?;
    } else {
        eprintln!(
            "completions and man pages are missing: {target} does not run here, and the binary writes them itself"
        );
    }
    let metadata =
        output(cargo().args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &target]))?;
    write(folder.join("sbom.cdx.json"), &materials::bill(&metadata, version)?)?;
    pack(&args.out, &name, &time)?;
    match debian::package(&folder, &args.out, version, &target, &time)? {
        Some(package) => println!("{}", package.display()),
        None => eprintln!("no Debian package: dpkg-deb is not here, or Debian does not run on {target}"),
    }
    Ok(())
}

/// Packs a folder the same way every time, and writes the checksum alongside it.
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
