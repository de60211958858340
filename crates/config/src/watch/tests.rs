#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::mpsc::Receiver as Changes;

use tempfile::TempDir;

use super::*;

/// Timeout, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

struct Scene {
    root: TempDir,
    watch: FileWatch,
    changes: Changes<Vec<PathBuf>>,
}

impl Scene {
    /// Watches a directory `data` with two files.
    fn new(mode: WatchMode) -> Scene {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("a.yaml"), "a: 1\n").unwrap();
        fs::write(data.join("b.yaml"), "b: 1\n").unwrap();
        Scene::watching(root, &["data"], mode)
    }

    fn watching(root: TempDir, paths: &[&str], mode: WatchMode) -> Scene {
        let paths: Vec<PathBuf> = paths.iter().map(|path| root.path().join(path)).collect();
        let (sender, changes) = channel();
        let mut watch = FileWatch::new(&paths, mode, move |changed| drop(sender.send(changed)));
        watch.start().unwrap();
        Scene { root, watch, changes }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Waits until `name` and all earlier changes have been reported; returns all reports.
    fn expect(&self, name: &str) -> Vec<PathBuf> {
        let mut described = self.next(name);
        described.extend(self.settle());
        described
    }

    /// Waits until `name` has been reported; returns the reports until then.
    fn next(&self, name: &str) -> Vec<PathBuf> {
        let wanted = self.path(name);
        let until = Instant::now() + PATIENCE;
        let mut described = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let changed = self.changes.recv_timeout(left).unwrap_or_else(|_| unreachable!("{name} was not reported"));
            described.extend(changed);
            if described.contains(&wanted) {
                return described;
            }
        }
    }

    /// Returns further reports of earlier changes: on a busy machine, one write can be reported twice.
    fn settle(&self) -> Vec<PathBuf> {
        std::iter::from_fn(|| self.changes.recv_timeout(Duration::from_millis(150)).ok()).flatten().collect()
    }

    fn expect_nothing(&self) {
        assert_eq!(self.changes.recv_timeout(Duration::from_millis(250)).ok(), None);
    }
}

/// Changes files in all ways that editors and tools use.
fn every_way(scene: &Scene) {
    scene.write("data/a.yaml", "a: 2\n");
    scene.expect("data/a.yaml");
    // Replaced by a rename, as by most editors.
    scene.write("data/.a.tmp", "a: 3\n");
    fs::rename(scene.path("data/.a.tmp"), scene.path("data/a.yaml")).unwrap();
    scene.expect("data/a.yaml");
    fs::remove_file(scene.path("data/a.yaml")).unwrap();
    scene.expect("data/a.yaml");
    scene.write("data/a.yaml", "a: 4\n");
    scene.expect("data/a.yaml");
    scene.write("data/new.yaml", "new: 1\n");
    scene.expect("data/new.yaml");
    // The directory is replaced by another one with older files.
    fs::create_dir(scene.path("next")).unwrap();
    scene.write("next/a.yaml", "a: 5\n");
    fs::rename(scene.path("data"), scene.path("previous")).unwrap();
    scene.expect("data/a.yaml");
    fs::rename(scene.path("next"), scene.path("data")).unwrap();
    scene.expect("data/a.yaml");
    scene.write("data/a.yaml", "a: 6\n");
    scene.expect("data/a.yaml");
    // Files that were moved away are not watched any more.
    scene.write("previous/a.yaml", "a: 7\n");
    scene.expect_nothing();
    // Deleted with its directory and created again.
    fs::remove_dir_all(scene.path("data")).unwrap();
    scene.expect("data/a.yaml");
    fs::create_dir(scene.path("data")).unwrap();
    scene.write("data/a.yaml", "a: 8\n");
    scene.expect("data/a.yaml");
    scene.write("data/a.yaml", "a: 9\n");
    scene.expect("data/a.yaml");
}

#[test]
fn change_before_the_watch_thread_starts_is_reported() {
    let root = TempDir::new().unwrap();
    let path = root.path().join("a.yaml");
    fs::write(&path, "a: 1\n").unwrap();
    let (sender, changes) = channel();
    let mut watch =
        FileWatch::new(std::slice::from_ref(&path), WatchMode::Auto, move |changed| drop(sender.send(changed)));
    fs::write(&path, "a: 22\n").unwrap();
    watch.start().unwrap();
    assert_eq!(changes.recv_timeout(PATIENCE).unwrap(), [path]);
    watch.start().unwrap();
}

#[test]
fn every_kind_of_file_change_is_reported_by_events() {
    let scene = Scene::new(WatchMode::Auto);
    every_way(&scene);
}

#[test]
fn every_kind_of_file_change_is_reported_by_polling() {
    let scene = Scene::new(WatchMode::Poll(Duration::from_millis(50)));
    every_way(&scene);
}

#[test]
fn burst_of_writes_is_coalesced_and_reads_are_ignored() {
    let scene = Scene::new(WatchMode::Auto);
    scene.write("data/b.yaml", "b: 2\n");
    scene.expect("data/b.yaml");
    let mut file = fs::File::create(scene.path("data/a.yaml")).unwrap();
    for line in 0..50 {
        writeln!(file, "line{line}: 1").unwrap();
        file.flush().unwrap();
    }
    scene.write("data/b.yaml", "b: 3\n");
    let described = scene.expect("data/b.yaml");
    assert!(described.len() <= 20, "50 writes are not 50 changes: {described:?}");
    let _ = fs::read(scene.path("data/a.yaml")).unwrap();
    let _ = fs::read_dir(scene.path("data")).unwrap().count();
    scene.write("data/.hidden.swp", "x");
    scene.write("data/backup~", "x");
    scene.write("elsewhere.yaml", "x");
    scene.expect_nothing();
}

#[test]
fn a_change_is_reported_within_a_tenth_of_a_second() {
    let scene = Scene::new(WatchMode::Auto);
    scene.write("data/a.yaml", "a: 2\n");
    scene.expect("data/a.yaml");
    let fastest = (0..10)
        .map(|round| {
            let start = Instant::now();
            scene.write("data/a.yaml", &format!("a: {round}\n"));
            scene.next("data/a.yaml");
            let elapsed = start.elapsed();
            scene.settle();
            elapsed
        })
        .min()
        .unwrap();
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

#[test]
fn missing_paths_are_reported_once_they_appear() {
    let root = tempfile::tempdir().unwrap();
    let scene = Scene::watching(root, &["config/atlas/themes", "config/settings.yaml"], WatchMode::Auto);
    scene.expect_nothing();
    fs::create_dir_all(scene.path("config/atlas/themes")).unwrap();
    scene.write("config/atlas/themes/mine.yaml", "name: mine\n");
    scene.expect("config/atlas/themes/mine.yaml");
    scene.write("config/settings.yaml", "x: 1\n");
    scene.expect("config/settings.yaml");
}

#[test]
fn symlinks_are_followed_and_their_replacement_is_reported() {
    let root = tempfile::tempdir().unwrap();
    for (directory, text) in [("v1", "a: 1\n"), ("v2", "a: 2\n")] {
        fs::create_dir(root.path().join(directory)).unwrap();
        fs::write(root.path().join(directory).join("a.yaml"), text).unwrap();
    }
    fs::create_dir(root.path().join("dots")).unwrap();
    fs::write(root.path().join("dots/b.yaml"), "b: 1\n").unwrap();
    symlink(root.path().join("v1"), root.path().join("current")).unwrap();
    symlink(root.path().join("dots/b.yaml"), root.path().join("v2/b.yaml")).unwrap();
    let scene = Scene::watching(root, &["current"], WatchMode::Auto);
    symlink(scene.path("v2"), scene.path("next")).unwrap();
    fs::rename(scene.path("next"), scene.path("current")).unwrap();
    scene.expect("current/a.yaml");
    scene.write("dots/b.yaml", "b: 2\n");
    scene.expect("current/b.yaml");
}

#[test]
fn set_paths_replaces_watched_paths_without_losing_changes() {
    let scene = Scene::new(WatchMode::Auto);
    fs::create_dir(scene.path("more")).unwrap();
    scene.write("more/c.yaml", "c: 1\n");
    scene.write("data/a.yaml", "a: 2\n");
    scene.watch.set_paths(&[scene.path("data"), scene.path("more")]);
    scene.expect("data/a.yaml");
    scene.write("more/c.yaml", "c: 2\n");
    let described = scene.expect("more/c.yaml");
    assert!(!described.contains(&scene.path("data/a.yaml")));
    scene.watch.set_paths(&[scene.path("more/c.yaml")]);
    scene.write("more/c.yaml", "c: 3\n");
    scene.expect("more/c.yaml");
    scene.write("data/a.yaml", "a: 3\n");
    scene.expect_nothing();
}
