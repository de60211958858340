//! Sequence mixers whose cost is linear in the sequence length: state-space layers and linear attention.

use crate::constants::documented::DELTA_CHUNK;
use crate::constants::documented::SCAN_CHUNK;
use atlas_core::count::Count;

/// Kind of recurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinearKind {
    /// Selective scan, one state per channel (Mamba, arXiv 2312.00752).
    Mamba1,
    /// State-space duality: chunks of matrix multiplications (Mamba-2, arXiv 2405.21060, section 6).
    #[default]
    Mamba2,
    /// Gated delta rule (arXiv 2412.06464), chunked.
    GatedDelta,
}

/// A linear mixer as plain numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// Kind of recurrence.
    pub kind: LinearKind,
    /// Share of the layers that have it.
    pub share: f64,
    /// Heads (delta rule: value heads).
    pub heads: Count,
    /// Width of a head.
    pub head_dim: Count,
    /// Width of a head's state (delta rule: of a key).
    pub state: Count,
    /// Groups of heads that share their input and output projections of the state (delta rule: key heads).
    pub groups: Count,
    /// Taps of the short convolution before the recurrence.
    pub taps: Count,
}

impl Linear {
    /// Bytes per sequence that a layer keeps instead of a KV cache and rewrites for every token: the states of its
    /// heads, in 32 bit as in the published kernels.
    pub fn state_bytes(&self) -> f64 {
        4.0 * self.inner_width() * self.state
    }

    /// Width of all heads together.
    pub fn inner_width(&self) -> f64 {
        self.heads * self.head_dim
    }

    /// Channels of the short convolution.
    pub fn convolution_channels(&self) -> f64 {
        match self.kind {
            LinearKind::Mamba1 => self.inner_width(),
            LinearKind::Mamba2 | LinearKind::GatedDelta => self.inner_width() + 2.0 * self.groups * self.state,
        }
    }

    /// Columns of the input projection: values, gate, the vectors that read and write the state, and the step sizes.
    pub fn input_projection_width(&self) -> f64 {
        match self.kind {
            LinearKind::Mamba1 => 2.0 * self.inner_width(),
            LinearKind::Mamba2 => self.inner_width() + self.convolution_channels() + self.heads,
            LinearKind::GatedDelta => self.inner_width() + self.convolution_channels() + 2.0 * self.heads,
        }
    }

    /// Weights of the low-rank projection of the step size in Mamba-1 (default rank: hidden size over 16), and of its
    /// input.
    fn step_size_params(&self, hidden: f64) -> f64 {
        match self.kind {
            LinearKind::Mamba1 => {
                let rank = (hidden / 16.0).ceil();
                self.inner_width() * (rank + 2.0 * self.state) + rank * self.inner_width()
            }
            LinearKind::Mamba2 | LinearKind::GatedDelta => 0.0,
        }
    }

    /// Weights of one layer.
    pub fn params(&self, hidden: f64) -> f64 {
        let inner = self.inner_width();
        let decay = match self.kind {
            LinearKind::Mamba1 => inner * (self.state + 2.0),
            LinearKind::Mamba2 => 3.0 * self.heads + inner,
            LinearKind::GatedDelta => 2.0 * self.heads + self.head_dim,
        };
        hidden * (self.input_projection_width() + inner)
            + self.step_size_params(hidden)
            + self.convolution_channels() * (self.taps + 1.0)
            + decay
    }

    /// Model FLOPs of the state per token, forward and backward: 3 × 7 per element of the state, as in the frameworks'
    /// counts for Mamba layers (`num_floating_point_operations`).
    pub fn model_flops(&self) -> f64 {
        21.0 * self.inner_width() * self.state
    }

    /// FLOPs on matrix units per token, forward. For chunks of `q` tokens: scores within a chunk, their multiplication
    /// by the values, and reading and writing the states (arXiv 2405.21060, section 6; the delta rule adds the inverse
    /// of a triangular matrix, arXiv 2412.06464, section 3.3). Mamba-1 has none: its scan runs on vector units.
    pub fn matrix_flops(&self) -> f64 {
        let state = self.heads * self.head_dim * self.state;
        match self.kind {
            LinearKind::Mamba1 => 0.0,
            LinearKind::Mamba2 => {
                let q = SCAN_CHUNK;
                2.0 * (q * self.groups * self.state + q * self.inner_width() + 2.0 * state)
            }
            LinearKind::GatedDelta => {
                let q = DELTA_CHUNK;
                2.0 * (q * self.heads * (3.0 * self.state + 2.0 * self.head_dim) + 3.0 * state)
            }
        }
    }

    /// Number of kernels of a mixer in a decode step. All: norm, input projection, convolution, update of the state,
    /// output projection. Mamba-1 adds the projections to the state's vectors and to the step size, Mamba-2 a gated norm
    /// (vLLM's `mamba_mixer2.py`), and the delta rule a second input projection, the split of its output, gates and a
    /// gated norm.
    pub fn step_kernels(&self) -> f64 {
        match self.kind {
            LinearKind::Mamba1 => 7.0,
            LinearKind::Mamba2 => 6.0,
            LinearKind::GatedDelta => 9.0,
        }
    }

    /// Number of kernels of a prefill, beyond the one that advances the state by a token. Origin: the kernels launched
    /// by `mamba_chunk_scan_combined` of mamba_ssm (cumulative sum, chunk states, passing, products, scan) and by
    /// `chunk_gated_delta_rule` of flash-linear-attention (two norms, cumulative sum, scaled products, triangular
    /// solve, recomputation, states, outputs).
    pub fn chunk_kernels(&self) -> f64 {
        match self.kind {
            LinearKind::Mamba1 => 0.0,
            LinearKind::Mamba2 => 4.0,
            LinearKind::GatedDelta => 7.0,
        }
    }

    /// FLOPs on vector units per token, forward: the scan of Mamba-1 (discretize, multiply, add, read out).
    pub fn vector_flops(&self) -> f64 {
        match self.kind {
            LinearKind::Mamba1 => 9.0 * self.inner_width() * self.state,
            LinearKind::Mamba2 | LinearKind::GatedDelta => 0.0,
        }
    }

    /// Number of 16-bit elements read and written per token, forward. The convolution and the scan each read their
    /// input and write their output; a gated norm follows. The kernels of a chunked scan also exchange fp32 states
    /// (written, passed on chunk by chunk, read: two writes, two reads) and, in Mamba-2, the fp32 scores of a chunk
    /// (mamba_ssm's `mamba_chunk_scan_combined`).
    pub fn scan_elements(&self) -> f64 {
        let fp32 = 2.0;
        let state = self.inner_width() * self.state;
        let between = match self.kind {
            LinearKind::Mamba1 => 0.0,
            LinearKind::Mamba2 => fp32 * (4.0 * state / SCAN_CHUNK + 2.0 * self.groups * SCAN_CHUNK),
            LinearKind::GatedDelta => fp32 * 4.0 * state / DELTA_CHUNK,
        };
        2.0 * self.convolution_channels()
            + (self.convolution_channels() + self.inner_width())
            + 3.0 * self.inner_width()
            + between
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mamba_2_has_its_published_parameters() {
        // mamba2-2.7b: 64 layers of width 2560, expansion 2, heads of 64, states of 128, a tied vocabulary of 50,288.
        let l = Linear {
            kind: LinearKind::Mamba2,
            share: 1.0,
            heads: Count::new(80),
            head_dim: Count::new(64),
            state: Count::new(128),
            groups: Count::ONE,
            taps: Count::new(4),
        };
        let all = 64.0 * (l.params(2560.0) + 2560.0) + 50_288.0 * 2560.0;
        assert!((all / 2.70e9 - 1.0).abs() < 0.01, "{all}");
    }
}
