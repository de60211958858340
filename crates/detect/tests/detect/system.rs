//! A fake `/sys` and `/proc`.

use std::fs;
use std::path::Path;

use atlas_detect::Options;
use tempfile::TempDir;

pub(crate) struct FakeSystem {
    folder: TempDir,
}

impl FakeSystem {
    pub(crate) fn new(host: &str) -> FakeSystem {
        let system = FakeSystem { folder: TempDir::new().unwrap() };
        system.write("proc/sys/kernel/hostname", &format!("{host}\n"));
        system.write("proc/meminfo", "MemTotal:       2097152000 kB\nMemFree: 1 kB\n");
        system.write("proc/cpuinfo", &"processor\t: 0\nmodel name\t: x\n\n".repeat(4));
        system
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn port(&self, device: &str, port: u32, rate: &str, layer: &str, state: &str) {
        for (file, text) in [("rate", rate), ("link_layer", layer), ("state", state)] {
            self.write(&format!("sys/class/infiniband/{device}/ports/{port}/{file}"), &format!("{text}\n"));
        }
    }

    pub(crate) fn pci(&self, address: &str, vendor: &str, device: &str, class: &str) {
        for (file, text) in [("vendor", vendor), ("device", device), ("class", class)] {
            self.write(&format!("sys/bus/pci/devices/{address}/{file}"), &format!("{text}\n"));
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn options(&self) -> Options {
        Options { sysfs: self.folder.path().join("sys"), procfs: self.folder.path().join("proc"), ..Options::default() }
    }
}
