//! File systems that do not report all changes.

use std::path::Path;

/// Magic numbers of file systems that can be changed by other machines or a server. inotify does not report such
/// changes.
#[cfg(target_os = "linux")]
const UNREPORTED_FILE_SYSTEMS: [u32; 20] = [
    0x0000_6969, // NFS
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS, Spectrum Scale
    0x1983_0326, // BeeGFS
    0x0000_517b, // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x00c3_6400, // Ceph
    0x6573_5546, // FUSE: sshfs, s3fs, WekaFS and others
    0x5346_414f, // OpenAFS
    0x6b41_4653, // AFS of the Linux kernel
    0x0102_1997, // 9p: WSL, virtual machines
    0x7375_7245, // Coda
    0x2003_0528, // OrangeFS, PVFS2
    0xaad7_aaea, // PanFS
    0x7461_636f, // OCFS2
    0x0116_1970, // GFS2
    0x786f_4256, // VirtualBox shared folders
    0xbacb_acbc, // VMware shared folders
    0x0000_564c, // NCP
];

/// Whether the file system at `path` does not report all changes, so that it must be polled. `false` if it cannot be
/// determined.
#[cfg(target_os = "linux")]
#[must_use]
pub fn needs_polling(path: &Path) -> bool {
    // The type of the field differs between platforms in width and sign; magic numbers have 32 bits.
    rustix::fs::statfs(path)
        .is_ok_and(|found| UNREPORTED_FILE_SYSTEMS.contains(&((found.f_type as u64 & 0xffff_ffff) as u32)))
}

/// On other platforms, `notify` polls where necessary.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn needs_polling(_: &Path) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn local_and_missing_paths_are_not_silent_file_systems() {
        assert!(!needs_polling(Path::new("/proc")));
        assert!(!needs_polling(Path::new("/no/such/place")));
    }
}
