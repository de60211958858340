//! Debian package with the files of a release.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ReleaseError, output, system};

/// Debian's architecture name for a target triple; `None` if Debian does not support it.
fn architecture(target: &str) -> Option<&'static str> {
    match target.split_once('-')? {
        ("x86_64", rest) if rest.contains("linux") => Some("amd64"),
        ("aarch64", rest) if rest.contains("linux") => Some("arm64"),
        _ => None,
    }
}

fn control(version: &str, architecture: &str, dependencies: &str) -> String {
    let dependencies = if dependencies.is_empty() { String::new() } else { format!("Depends: {dependencies}\n") };
    format!(
        "Package: atlas-fabric\nVersion: {version}\nArchitecture: {architecture}\n{dependencies}Section: utils\n\
         Priority: optional\nMaintainer: The Atlas Fabric developers <atlas-fabric@users.noreply.github.com>\n\
         Homepage: {}\nDescription: planner for AI accelerators with a terminal interface\n Throughput, latency, cost, \
         power and memory of training and serving on accelerators,\n estimated from first principles and checked against \
         published measurements.\n",
        env!("CARGO_PKG_REPOSITORY")
    )
}

/// Installation directories of the files of a release.
const PLACES: [(&str, &str); 6] = [
    ("atlas", "usr/bin/atlas"),
    ("completions/atlas.bash", "usr/share/bash-completion/completions/atlas"),
    ("completions/_atlas", "usr/share/zsh/vendor-completions/_atlas"),
    ("completions/atlas.fish", "usr/share/fish/vendor_completions.d/atlas.fish"),
    ("README.md", "usr/share/doc/atlas-fabric/README.md"),
    ("LICENSE-MIT", "usr/share/doc/atlas-fabric/copyright"),
];

fn install(from: &Path, to: &Path) -> Result<(), ReleaseError> {
    let parent = to.parent().unwrap_or(to);
    std::fs::create_dir_all(parent).map_err(system(parent.display().to_string()))?;
    std::fs::copy(from, to).map(drop).map_err(system(format!("{} to {}", from.display(), to.display())))
}

/// Packs the release files in `folder` into `out`; returns the package, or `None` if it cannot be built on this
/// machine.
pub(super) fn package(
    folder: &Path,
    out: &Path,
    version: &str,
    target: &str,
    time: &str,
) -> Result<Option<PathBuf>, ReleaseError> {
    let Some(architecture) = architecture(target) else { return Ok(None) };
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return Ok(None);
    }
    let root = out.join("debian");
    if root.exists() {
        std::fs::remove_dir_all(&root).map_err(system(root.display().to_string()))?;
    }
    for (from, to) in PLACES {
        let from = folder.join(from);
        if from.exists() {
            install(&from, &root.join(to))?;
        }
    }
    let pages = std::fs::read_dir(folder.join("man")).into_iter().flatten();
    for page in pages.map(|page| page.map_err(system("man"))).collect::<Result<Vec<_>, _>>()? {
        install(&page.path(), &root.join("usr/share/man/man1").join(page.file_name()))?;
    }
    let dependencies = if target.contains("musl") { "" } else { "libc6, libgcc-s1" };
    let control_file = root.join("DEBIAN/control");
    std::fs::create_dir_all(root.join("DEBIAN")).map_err(system("DEBIAN"))?;
    std::fs::write(&control_file, control(version, architecture, dependencies))
        .map_err(system(control_file.display().to_string()))?;
    let package = out.join(format!("atlas-fabric_{version}_{architecture}.deb"));
    let mut pack = Command::new("dpkg-deb");
    // Owned by root and with the date of the commit, so that packages are reproducible.
    pack.args(["--root-owner-group", "--build"]).arg(&root).arg(&package).env("SOURCE_DATE_EPOCH", time);
    output(&mut pack)?;
    std::fs::remove_dir_all(&root).map_err(system(root.display().to_string()))?;
    Ok(Some(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_debian_architectures_only_on_linux() {
        assert_eq!(architecture("x86_64-unknown-linux-musl"), Some("amd64"));
        assert_eq!(architecture("aarch64-unknown-linux-gnu"), Some("arm64"));
        assert_eq!(architecture("aarch64-apple-darwin"), None);
        assert_eq!(architecture("riscv64gc-unknown-linux-gnu"), None);
    }

    #[test]
    fn a_control_file_has_a_field_a_line_and_an_indented_description() {
        let text = control("0.2.0", "amd64", "libc6");
        let (fields, description) = text.split_once("Description: ").unwrap_or_default();
        assert!(fields.lines().all(|line| line.contains(": ")), "{text}");
        assert!(fields.contains("Depends: libc6\n") && !control("0.2.0", "amd64", "").contains("Depends"));
        assert!(description.lines().skip(1).all(|line| line.starts_with(' ') && line.len() > 2), "{text}");
    }

    #[test]
    fn debian_package_contains_files_at_their_install_paths() {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            return;
        }
        let dir = std::env::temp_dir().join(format!("atlas-debian-{}", std::process::id()));
        let folder = dir.join("files");
        let files = ["atlas", "README.md", "LICENSE-MIT", "man/atlas.1", "completions/_atlas"];
        for name in files {
            let path = folder.join(name);
            assert!(std::fs::create_dir_all(path.parent().unwrap_or(&folder)).is_ok());
            assert!(std::fs::write(&path, name).is_ok());
        }
        let made = package(&folder, &dir, "0.2.0", "x86_64-unknown-linux-musl", "1700000000");
        let listed = match &made {
            Ok(Some(path)) => output(Command::new("dpkg-deb").arg("--contents").arg(path)).unwrap_or_default(),
            other => format!("{other:?}"),
        };
        assert!(std::fs::remove_dir_all(&dir).is_ok());
        for place in ["./usr/bin/atlas", "./usr/share/man/man1/atlas.1", "./usr/share/zsh/vendor-completions/_atlas"] {
            assert!(listed.contains(place), "{place}: {listed}");
        }
    }
}
