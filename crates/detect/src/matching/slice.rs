//! Parts of devices.

/// A part of a device (MIG).
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Profile, such as `1g.10gb`.
    pub profile: String,
    /// Compute slices of the device that the profile has; an NVIDIA device has seven.
    pub compute: u32,
    /// Memory of the profile, GB.
    pub memory_gb: f64,
}
