//! Every coefficient that is neither a datasheet's figure nor a count: fitted or fixed, each with unit, meaning and
//! origin. They live in one struct so that they can be fitted, perturbed and listed.
//!
//! *fitted* ones are refitted without each source in turn when errors are quoted; those set *by hand, on all rows*
//! are not, which makes the quoted errors a little too kind: moving any of them by a fifth changes the
//! leave-one-source-out median by less than half a point.

/// One constant's description, for listing and for fitting.
pub struct Field<T> {
    /// Identifier.
    pub name: &'static str,
    /// Unit; "1" where there is none.
    pub unit: &'static str,
    /// Range that is physically sensible; a fit stays inside.
    pub low: f64,
    /// Upper end of the range.
    pub high: f64,
    /// What it is and where its value comes from.
    pub origin: &'static str,
    /// Whether a fit may move it; a fixed one has its origin in the doc comment.
    pub fitted: bool,
    /// Reads the value.
    pub get: fn(&T) -> f64,
    /// Writes the value.
    pub set: fn(&mut T, f64),
}

/// A constant as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Listed {
    /// Identifier.
    pub name: &'static str,
    /// Value in force.
    pub value: f64,
    /// Unit; "1" where there is none.
    pub unit: &'static str,
    /// Whether its value came from a fit.
    pub fitted: bool,
    /// What it is and where its value comes from.
    pub origin: &'static str,
}

/// Declares a struct of constants with its defaults and the table that a fit walks.
#[macro_export]
macro_rules! constant_set {
    ($(#[$outer:meta])* $name:ident { $( $(#[doc = $doc:literal])* $field:ident : $value:expr, $unit:literal, $low:expr, $high:expr, $kind:ident; )* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name { $( $(#[doc = $doc])* pub $field: f64, )* }

        impl Default for $name {
            fn default() -> Self { $name { $( $field: $value, )* } }
        }

        impl $name {
            /// Name, unit, range, and access of every constant, in order of declaration.
            pub const FIELDS: &'static [$crate::constants::Field<$name>] = &[
                $( $crate::constants::Field {
                    name: stringify!($field), unit: $unit, low: $low, high: $high, origin: concat!($($doc),*),
                    fitted: $crate::constant_set!(@$kind),
                    get: |c| c.$field, set: |c, v| c.$field = v,
                }, )*
            ];

            /// Name, value, unit and origin of every constant, in order of declaration.
            pub fn table(&self) -> impl Iterator<Item = $crate::constants::Listed> {
                Self::FIELDS.iter().map(|field| $crate::constants::Listed {
                    name: field.name,
                    value: (field.get)(self),
                    unit: field.unit,
                    fitted: field.fitted,
                    origin: field.origin.trim(),
                })
            }
        }
    };
    (@fitted) => { true };
    (@fixed) => { false };
}

constant_set! {
    /// Constants of compute, memory, fabric and training.
    Constants {
        // -- matrix multiplication ------------------------------------------------------------------------------
        /// Share of the dense peak that a large GEMM sustains on NVIDIA Ampere (and Volta, workstation cards) under
        /// load. Origin: fitted; micro-benchmarks reach 0.86 (stas00/ml-engineering, MAMF table).
        gemm_ampere: 0.8259, "1", 0.5, 1.0, fitted;
        /// The same on Hopper, which the power limit throttles. Origin: fitted; micro-benchmarks reach 0.80.
        gemm_hopper: 0.7366, "1", 0.4, 1.0, fitted;
        /// The same on Blackwell. Origin: fitted; micro-benchmarks reach 0.78.
        gemm_blackwell: 0.6010, "1", 0.4, 1.0, fitted;
        /// The same on GPUs whose kernel libraries are younger: AMD CDNA, Huawei Ascend, AWS Trainium. Origin: fitted;
        /// micro-benchmarks reach 0.51 (MI300X) and 0.63 (MI355X).
        gemm_young: 0.5559, "1", 0.2, 1.0, fitted;
        /// The same on systolic arrays driven by a whole-program compiler (TPU). Origin: set by hand on all rows (the
        /// best GEMMs of TPUs run at their peak; block re-reads are counted apart).
        gemm_systolic: 0.99, "1", 0.3, 1.0, fixed;
        /// The same on everything else: Intel Max and Gaudi. Origin: fitted.
        gemm_other: 0.3488, "1", 0.2, 1.0, fitted;
        /// Inner dimension at which a GEMM's main loop takes half of the time (prologue, epilogue). Origin: fitted.
        gemm_k_half: 50.93, "elements", 1.0, 2000.0, fitted;
        /// FLOPs per byte of device memory that a GEMM's blocking reaches; its re-reads add to the arithmetic, so that
        /// devices with little bandwidth for their FLOP/s sustain a smaller share. Origin: fitted.
        block_intensity: 1712.0, "FLOP/byte", 200.0, 20000.0, fitted;
        /// Rate of experts' GEMMs relative to single ones of the same shape, where the narrow side of an expert's matrix is
        /// 2048 wide; the loss is inverse to that side. Origin: fitted.
        grouped_gemm: 0.6205, "1", 0.2, 1.0, fitted;
        /// How much of the loss by wave quantisation remains after the library's choice of tiles (0 none, 1 all).
        /// Origin: by hand, on all rows, where the error is flat.
        wave_loss: 0.5, "1", 0.0, 1.0, fixed;
        /// Share of the peak that fused attention sustains relative to a large GEMM, forward. Origin: by hand, on all
        /// rows, where the error is flat; FlashAttention-2 (arXiv 2307.08691) reports 0.5-0.7 of peak on A100.
        attention_fraction: 0.85, "1", 0.1, 1.0, fixed;
        /// Rate of the first fused attention kernels (FlashAttention-1, Triton) relative to the second generation.
        /// Origin: fixed; arXiv 2307.08691, figures 4-6: about 0.4 of A100's peak where the second reaches 0.65.
        attention_first: 0.6, "1", 0.3, 1.0, fixed;
        /// Width of a head at which fused attention loses half of its rate, against an infinitely wide one. Origin: by
        /// hand, on all rows, where the error is flat; heads of 64 reach about 0.8 of what heads of 128 reach
        /// (FlashAttention-2, figure 5).
        attention_head_half: 16.0, "elements", 0.0, 256.0, fixed;
        /// Time per FLOP of fused attention's backward pass over its forward pass. Origin: FlashAttention-2 (arXiv
        /// 2307.08691, figures 5 and 6) has 1.2-1.4.
        attention_backward: 1.25, "1", 1.0, 2.5, fixed;
        /// Time of a narrow-format (fp8, fp4) GEMM spent in quantising and scaling, relative to the same GEMM's
        /// operand traffic. Origin: fitted.
        cast_traffic: 0.2959, "1", 0.0, 10.0, fitted;
        // -- memory ---------------------------------------------------------------------------------------------
        /// Share of the datasheet's memory bandwidth that streaming kernels reach. Origin: fixed; BabelStream on A100
        /// and H100 reaches 0.88-0.93.
        memory_fraction: 0.85, "1", 0.3, 1.0, fixed;
        /// Traffic of element-wise operators over one read and one write per operand, plain PyTorch modules: casts,
        /// copies and one kernel for every step. Origin: by hand, on all rows, where the error is flat.
        eager_traffic: 1.5, "1", 0.5, 8.0, fixed;
        /// The same where the framework or a compiler fuses them (Megatron, Transformer Engine, XLA). Origin: fitted.
        fused_traffic: 1.124, "1", 0.3, 5.0, fitted;
        /// Traffic of routing and permutation where they are not fused, relative to fused. Origin: fitted.
        dispatch_unfused: 2.823, "1", 1.0, 20.0, fitted;
        // -- host -----------------------------------------------------------------------------------------------
        /// Time from one kernel's end to the next one's start on a busy queue. Origin: fixed; 3-5 us measured by
        /// launch-latency micro-benchmarks on CUDA without graphs.
        launch: 4.0e-6, "s", 0.0, 50e-6, fixed;
        /// Host time that an eager framework spends on each operator of our list (Python, autograd, several launches).
        /// Origin: by hand, on all rows, where the error is flat (vTrain's small single-node runs ask for 65 us).
        issue: 65.0e-6, "s", 2e-6, 300e-6, fixed;
        /// Host time of routing and dispatch in a MoE layer's forward pass, in units of an operator's, where the number of
        /// tokens per expert must come back to the host. Origin: by hand, on all rows, where the error is
        /// flat.
        routing_issue: 120.0, "1", 0.0, 200.0, fixed;
        /// Share of those launches that is left in a compiled graph. Origin: fixed.
        compiled_kernels: 0.1, "1", 0.0, 1.0, fixed;
        /// Time of a step that no overlap hides: data, gradient norm, logging, synchronisation. Origin: by hand, on
        /// all rows, where the error is flat.
        step_overhead: 0.015, "s", 0.0, 0.2, fixed;
        // -- overlap -----------------------------------------------------------------------------------------------
        /// Share of tensor-parallel communication that stays visible beside overlapped GEMMs. Origin: fitted.
        tensor_exposed: 0.5685, "1", 0.0, 1.0, fitted;
        /// Share of expert all-to-all that stays visible. Origin: set by hand on all rows; a fit drives it to 0, which
        /// no dispatcher can reach.
        expert_exposed: 0.05, "1", 0.0, 2.0, fixed;
        /// Share of pipeline transfers that stays visible. Origin: fixed.
        pipeline_exposed: 0.3, "1", 0.0, 2.0, fixed;
        /// Share of a micro-batch's compute beside which data-parallel traffic can run. Origin: by hand, on all rows,
        /// where the error is flat.
        overlap_share: 0.8, "1", 0.0, 1.0, fixed;
        /// Slow-down of compute per second of hidden traffic (SMs and memory bandwidth that it takes). Origin: by
        /// hand, on all rows, where the error is flat.
        overlap_slowdown: 0.5, "1", 0.0, 1.0, fixed;
        // -- memory of a training step ---------------------------------------------------------------------------
        /// Share of transient memory that fragmentation wastes as a rule; the upper bound has three times as much. Origin:
        /// fixed; PyTorch's caching allocator.
        fragmentation: 0.05, "1", 0.0, 0.5, fixed;
        /// Workspaces of libraries (cuBLAS, NCCL). Origin: fixed.
        workspace: 0.5e9, "bytes", 0.0, 8e9, fixed;
        /// Driver context and what frameworks keep outside the allocator. Origin: fixed.
        reserve: 2.0e9, "bytes", 0.0, 1e10, fixed;
        /// Device time lost around each operator: ramp-up, tail, and the gap to the next one. Origin: fitted.
        kernel_gap: 6.006e-6, "s", 0.5e-6, 60e-6, fitted;
        // -- fabric ---------------------------------------------------------------------------------------------
        /// Latency of one step inside the scale-up domain. Origin: NCCL tuning tables (src/graph/tuning.cc),
        /// LL/Simple.
        link_latency: 1.5e-6, "s", 0.1e-6, 50e-6, fixed;
        /// Latency of one step between nodes. Origin: NCCL tuning tables, network latency of the Simple protocol.
        nic_latency: 10.0e-6, "s", 1e-6, 100e-6, fixed;
        /// Share of the scale-up link's rate that a large collective reaches. Origin: nccl-tests, 0.75-0.82 on
        /// NVSwitch.
        link_fraction: 0.8, "1", 0.2, 1.0, fixed;
        /// Share of the NIC's rate that a large collective reaches. Origin: nccl-tests, 0.8-0.95 on InfiniBand.
        nic_fraction: 0.85, "1", 0.1, 1.0, fixed;
        /// Loss of scale-out bandwidth per doubling of the number of domains (routing conflicts, oversubscription).
        /// Origin: by hand, on all rows, where the error is flat.
        congestion: 0.05, "1", 0.0, 1.0, fixed;
        /// Bytes that a collective's ramp-up costs; a message never costs more than three times its size. Origin:
        /// nccl-tests curves (half the rate at about half a megabyte per rank).
        message_ramp: 0.5e6, "bytes", 1e4, 1e8, fixed;
        /// Gain of in-switch reduction (NVLS, SHARP) over a ring at large sizes. Origin: NVIDIA, "NVLink SHARP" (bus
        /// bandwidth 360 to 480 GB/s on 8 H100).
        in_switch_gain: 1.3, "1", 1.0, 2.0, fixed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_lie_in_their_ranges_and_names_are_unique() {
        let c = Constants::default();
        for f in Constants::FIELDS {
            let v = (f.get)(&c);
            assert!(v >= f.low && v <= f.high, "{} = {v}", f.name);
            assert_eq!(Constants::FIELDS.iter().filter(|g| g.name == f.name).count(), 1);
        }
        for listed in c.table() {
            assert!(listed.origin.contains("Origin:"), "{}: {}", listed.name, listed.origin);
        }
    }
}
