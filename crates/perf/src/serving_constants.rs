//! Coefficients of the serving model: each physical, with unit, range and origin. Values marked *fitted* are moved by a
//! fit on published measurements (`validate::serving_fit`) and judged on sources it did not see
//! (`validate::serving_validation`); fixed ones stand as counted or as the literature has them.

use crate::constant_set;

constant_set! {
    /// Constants of prefill, decode and the scheduler.
    ServingConstants {
        // -- arithmetic -----------------------------------------------------------------------------------------
        /// Share of the dense 16-bit peak that the linear layers of a serving engine sustain on many tokens.
        /// Origin: fitted; library maxima are 0.78-0.86 (MAMF table, stas00/ml-engineering).
        gemm_fraction: 0.659, "1", 0.3, 0.95, fitted;
        /// The same for 8-bit formats, relative to the 16-bit share (casts, scales, epilogues).
        /// Origin: fitted.
        narrow8_fraction: 0.849, "1", 0.3, 1.0, fitted;
        /// The same for 4-bit formats with block scales. Origin: fitted.
        narrow4_fraction: 0.675, "1", 0.2, 1.0, fitted;
        /// Share of the 16-bit rate left when weights are unpacked inside the GEMM (W4A16, W8A16).
        /// Origin: fitted; Marlin (arXiv 2408.11743) reports 0.8-0.9 at large batches.
        unpack_fraction: 0.649, "1", 0.2, 1.0, fitted;
        /// Width of a rank's slice of a layer's weights at which a GEMM reaches half its rate (tiles, waves).
        /// Origin: fixed; free fits wander between 800 and 2,000 without gain.
        slice_half: 1500.0, "elements", 0.0, 2.0e4, fixed;
        /// Share of the rate that grouped GEMMs over experts keep relative to one dense GEMM. Origin: fitted.
        grouped_fraction: 0.561, "1", 0.1, 1.0, fitted;
        /// Share of the large-GEMM rate that fused attention sustains in prefill.
        /// Origin: fixed; free fits find 0.65-0.78, FlashAttention-2/3 (arXiv 2307.08691, 2407.08608): 0.5-0.75 of peak.
        attention_fraction: 0.68, "1", 0.1, 1.0, fixed;
        /// Rows to which a matrix multiplication's tile pads a few tokens: what it computes no less than.
        /// Origin: fixed; the shape of the instruction, 64 rows on Hopper (`wgmma.m64`), CUTLASS's and cuBLAS's least
        /// tiles elsewhere.
        tile_rows: 64.0, "tokens", 1.0, 256.0, fixed;
        /// Part of the shorter of arithmetic and traffic that is not hidden behind the longer one.
        /// Origin: fitted; a perfect roofline has 0.
        overlap_loss: 0.313, "1", 0.0, 1.0, fitted;
        // -- memory ---------------------------------------------------------------------------------------------
        /// Share of the datasheet's bandwidth at which weights stream. Origin: fitted; BabelStream reaches 0.88-0.93.
        weight_fraction: 0.817, "1", 0.3, 1.0, fitted;
        /// Bytes per second that one core of the accelerator streams in a native runtime's matrix-vector kernels.
        /// Origin: fitted; 8 GB/s is an A100's 54 tokens/s on an 8B model in 16 bit (llama.cpp) over its 108 cores.
        core_bw: 8.82e9, "bytes/s", 1e9, 1e11, fitted;
        /// Share of the bandwidth at which paged keys and values are read. Origin: fitted.
        kv_fraction: 0.723, "1", 0.1, 1.0, fitted;
        /// Bytes of keys and values per second that one core passes where every query head reads them for itself.
        /// Origin: fitted; a quarter of the 64 bytes a clock that an SM takes from its caches.
        head_bw: 2.21e10, "bytes/s", 2e9, 2e11, fitted;
        /// Bytes of weights per second that one core passes for every row where products are not tuned for few rows.
        /// Origin: fixed; AMD CDNA 3 white paper: L2 reads of 2 KB a clock on a die of 38 cores at 2.1 GHz.
        row_bw: 1.13e11, "bytes/s", 1e9, 1e12, fixed;
        /// Times that a layer's hidden vector is read or written outside GEMMs and attention
        /// (norms, rotary, residuals, activation, quantisation). Origin: fixed; counting kernels gives 15-30,
        /// free fits 19-27.
        activation_passes: 20.0, "passes", 0.0, 100.0, fixed;
        // -- launch and host ------------------------------------------------------------------------------------
        /// Gap and ramp of one kernel in a captured graph. Origin: fitted; traces show 1-3 us.
        kernel_graph: 4.13e-6, "s", 0.2e-6, 20e-6, fitted;
        /// Kernels that a Python engine launches for a mixture's layer beyond those of 16-bit weights where experts multiply
        /// 8-bit formats: activations are quantised block by block before each product. Origin: fitted.
        scaling_kernels: 4.84, "kernels", 0.0, 60.0, fitted;
        /// Host time to launch one kernel of a prompt chunk, which no captured graph covers. Origin: fitted; 5 us a
        /// bare CUDA launch, 10-30 us with Python between.
        kernel_prefill: 1.34e-5, "s", 1e-6, 200e-6, fitted;
        /// Host time to launch one kernel from compiled code under CUDA. Origin: fixed; CUDA's documentation and traces have
        /// 2.5-5 us, and graphs, which save it, gained llama.cpp up to a fifth (NVIDIA's note on its CUDA graphs, 2024).
        kernel_native: 5.0e-6, "s", 1e-6, 50e-6, fixed;
        /// The same as `kernel_graph` where a Python framework launches every kernel. Origin: fitted; 5-20 us a launch
        /// with Python between them, and more, smaller kernels than an engine's.
        kernel_eager: 5.42e-5, "s", 4e-6, 300e-6, fitted;
        /// Host time between two steps of a compiled runtime. Origin: fitted.
        step_compiled: 8.95e-4, "s", 0.0, 10e-3, fitted;
        /// Host time between two steps of a Python engine: scheduling, input preparation, sampling.
        /// Origin: fitted; vLLM v0.6 blog: up to 5 ms before, under 1 ms after its rewrite.
        step_python: 2.82e-3, "s", 0.0, 20e-3, fitted;
        /// Host time per running sequence and step (sampling, detokenisation, streaming). Origin: fitted.
        host_per_sequence: 3.76e-5, "s", 0.0, 200e-6, fitted;
        /// The same for the answers of a server that streams them from the process that schedules. Origin: fixed; vLLM v0.6
        /// blog: 33 % of the time went to the HTTP server where 38 % was the accelerator's, about 10 ms for 100 sequences.
        stream_per_sequence: 100.0e-6, "s", 0.0, 1e-3, fixed;
        /// Share of that host time that remains where the next step is scheduled while the accelerator computes.
        /// Origin: fitted.
        host_exposed: 0.33, "1", 0.0, 1.0, fitted;
        /// Serial work of a Python engine's front end per request: HTTP, tokenising, detokenising. Origin: fitted.
        front_end: 4.55e-3, "s", 0.0, 30e-3, fitted;
        /// Time to accept, tokenise and schedule one request before its prefill. Origin: fixed; free fits on measured
        /// TTFT find 10-17 ms.
        request_overhead: 15.0e-3, "s", 0.0, 300e-3, fixed;
        // -- fabric ---------------------------------------------------------------------------------------------
        /// Latency of one all-reduce or all-to-all inside a scale-up domain with direct loads and stores.
        /// Origin: fitted; one-shot kernels measure 5-10 us.
        link_latency: 8.54e-6, "s", 1e-6, 100e-6, fitted;
        /// The same over PCIe through the host bridge. Origin: fitted.
        pcie_latency: 3.17e-5, "s", 2e-6, 300e-6, fitted;
        /// The same per rank of a ring or torus (NeuronLink, ICI). Origin: fixed; free fits find 3.7-4.8 us.
        hop_latency: 4.0e-6, "s", 0.1e-6, 50e-6, fixed;
        /// The same across nodes. Origin: fixed; NCCL tuning tables (14 us a step) and two steps.
        nic_latency: 30.0e-6, "s", 5e-6, 300e-6, fixed;
        /// Share of a link's rate that collectives reach at a step's message sizes. Origin: fixed; free fits find
        /// 0.65-0.75, nccl-tests reach 0.75-0.82 on large messages.
        link_fraction: 0.65, "1", 0.1, 1.0, fixed;
        // -- experts --------------------------------------------------------------------------------------------
        /// Excess of the busiest rank's experts over the mean for each doubling of the ranks that hold whole experts.
        /// Origin: fitted; 0.08 is a load of 1.25 on the busiest of eight.
        expert_excess: 0.0454, "1", 0.0, 0.5, fitted;
        /// Excess of the busiest attention group's step over the mean for each doubling of the groups: all wait for the one
        /// with most prompt tokens and keys before they exchange tokens. Origin: fitted.
        group_excess: 0.0349, "1", 0.0, 0.5, fitted;
        /// Tokens of a batch resemble one another, so T tokens touch as many experts as T^x independent ones would.
        /// Origin: fixed; free fits find 0.85-0.97, on all sources 0.90-0.93.
        routing_exponent: 0.92, "1", 0.5, 1.0, fixed;
        // -- software maturity ----------------------------------------------------------------------------------
        /// Share of both rooflines that inference stacks on AMD's CDNA reach relative to CUDA's. Origin: fitted.
        cdna_fraction: 0.796, "1", 0.2, 1.2, fitted;
        /// The same for all other accelerators. Origin: fitted.
        other_stack_fraction: 0.59, "1", 0.2, 1.2, fitted;
        /// Share of that arithmetic which Neuron's compiled graphs reach, whose prompts keep 14-25 % of the peak busy. Origin:
        /// fitted on two sources, one of which is always left out where it is judged.
        neuron_fraction: 0.463, "1", 0.1, 1.2, fitted;
        // -- memory capacity ------------------------------------------------------------------------------------
        /// Memory per accelerator outside weights and KV cache: context, graphs. Origin: fixed; vLLM and TensorRT-LLM
        /// start-up logs print 1.5-5 GB in all, less on smaller devices, whose step budgets are smaller.
        reserve_bytes: 1.0e9, "bytes", 0.0, 2.0e10, fixed;
        /// The same as a share of the device's memory: workspace and activations of the largest step. Origin: fixed.
        reserve_share: 0.02, "1", 0.0, 0.5, fixed;
        // -- latency --------------------------------------------------------------------------------------------
        /// Share of the closed-loop population that arrives in a burst rather than spread over the cycle.
        /// Origin: fitted on measured TTFT.
        burst_share: 0.16, "1", 0.0, 1.0, fitted;
        /// The same where prefill runs in steps of its own. Origin: fitted on measured TTFT.
        burst_share_separate: 0.258, "1", 0.0, 1.0, fitted;
        /// Decode steps that pass between a request's arrival and its first chunk: the step in flight, the steps that a
        /// scheduler has queued ahead. Origin: fixed; half a step in flight and one queued by an overlapping scheduler.
        boundary_steps: 1.5, "steps", 0.0, 20.0, fixed;
        /// Steps by which batched admission and streaming delay a first token. Origin: fitted; published configurations
        /// set `stream_interval` to 10-20.
        batched_steps: 6.42, "steps", 0.0, 40.0, fitted;
        /// Time by which polled admission and streaming delay a first token. Origin: fitted; published configurations
        /// set `scheduler_recv_interval` to 10-30 steps.
        polled_seconds: 0.172, "s", 0.0, 1.0, fitted;
        /// Arrival and service variability entering Allen-Cunneen, (ca^2 + cs^2) / 2. Origin: fixed; Poisson arrivals,
        /// nearly deterministic prefill.
        variability: 0.6, "1", 0.0, 4.0, fixed;
    }
}

impl ServingConstants {
    /// Starting point of every fit and centre of its pull: round values from the literature or from counting, never
    /// from a fit, so that cross-validation starts from the same knowledge in every fold.
    pub fn literature() -> Self {
        ServingConstants {
            gemm_fraction: 0.70,
            narrow8_fraction: 0.80,
            narrow4_fraction: 0.60,
            unpack_fraction: 0.75,
            slice_half: 1500.0,
            grouped_fraction: 0.6,
            attention_fraction: 0.68,
            tile_rows: 64.0,
            overlap_loss: 0.25,
            weight_fraction: 0.82,
            core_bw: 8.5e9,
            kv_fraction: 0.65,
            head_bw: 2.2e10,
            row_bw: 1.13e11,
            activation_passes: 20.0,
            kernel_graph: 2.0e-6,
            scaling_kernels: 4.0,
            kernel_prefill: 15.0e-6,
            kernel_native: 5.0e-6,
            kernel_eager: 40.0e-6,
            step_compiled: 0.3e-3,
            step_python: 2.0e-3,
            host_per_sequence: 10.0e-6,
            stream_per_sequence: 100.0e-6,
            host_exposed: 0.4,
            front_end: 2.0e-3,
            request_overhead: 15.0e-3,
            link_latency: 8.0e-6,
            pcie_latency: 30.0e-6,
            hop_latency: 4.0e-6,
            nic_latency: 30.0e-6,
            link_fraction: 0.65,
            expert_excess: 0.08,
            group_excess: 0.06,
            routing_exponent: 0.92,
            cdna_fraction: 0.85,
            other_stack_fraction: 0.7,
            neuron_fraction: 0.6,
            reserve_bytes: 1.0e9,
            reserve_share: 0.02,
            burst_share: 0.3,
            burst_share_separate: 0.3,
            boundary_steps: 1.5,
            batched_steps: 6.0,
            polled_seconds: 0.2,
            variability: 0.6,
        }
    }
}
