//! The table of constants: hardware first, which training and serving share; then what their software adds.

use crate::constant_set;

constant_set! {
    /// Constants of hardware, of training and of serving.
    Constants {
        // -- matrix multiplication ------------------------------------------------------------------------------
        /// Share of the dense peak that a large GEMM sustains on NVIDIA Ampere (and Volta, workstation cards) under
        /// load. Origin: fitted; micro-benchmarks reach 0.86 (stas00/ml-engineering, MAMF table).
        gemm_ampere: 0.7852, "1", 0.5, 1.0, fitted 0.85;
        /// The same on Hopper, which the power limit throttles. Origin: fitted; micro-benchmarks reach 0.80.
        gemm_hopper: 0.7514, "1", 0.4, 1.0, fitted 0.75;
        /// The same on Blackwell. Origin: fitted; micro-benchmarks reach 0.78.
        gemm_blackwell: 0.6442, "1", 0.4, 1.0, fitted 0.70;
        /// The same on GPUs whose kernel libraries are younger: AMD CDNA, Huawei Ascend, AWS Trainium. Origin: fitted;
        /// micro-benchmarks reach 0.51 (MI300X) and 0.63 (MI355X).
        gemm_young: 0.6288, "1", 0.2, 1.0, fitted 0.50;
        /// The same on systolic arrays driven by a whole-program compiler (TPU). Origin: set by hand on all rows (the
        /// best GEMMs of TPUs run at their peak; block re-reads are counted apart).
        gemm_systolic: 0.99, "1", 0.3, 1.0, fixed;
        /// The same on Intel Max and Gaudi. Origin: fitted.
        gemm_other: 0.3222, "1", 0.2, 1.0, fitted 0.60;
        /// The same on families that no row measures in training: consumer GPUs of other vendors, Apple, dataflow devices.
        /// Origin: set by hand to what the others reach on average; their intervals are stated priors.
        gemm_unmeasured: 0.60, "1", 0.2, 1.0, fixed;
        /// Inner dimension at which a GEMM's main loop takes half of the time (prologue, epilogue). Origin: fitted.
        gemm_k_half: 57.35, "elements", 1.0, 2000.0, fitted 64.0;
        /// FLOPs per byte of device memory that a GEMM's blocking reaches; its re-reads add to the arithmetic, so that
        /// devices with little bandwidth for their FLOP/s sustain a smaller share. Origin: fitted.
        block_intensity: 1612.1, "FLOP/byte", 200.0, 20000.0, fitted 1500.0;
        /// Rate of experts' GEMMs relative to single ones of the same shape, where the narrow side of an expert's matrix is
        /// 2048 wide; the loss is inverse to that side. Origin: fitted.
        grouped_gemm: 0.7989, "1", 0.2, 1.0, fitted 0.80;
        /// How much of the loss by wave quantization remains after the library's choice of tiles (0 none, 1 all).
        /// Origin: by hand, on all rows, where the error is flat.
        wave_loss: 0.5, "1", 0.0, 1.0, fixed;
        /// Share of the peak that fused attention sustains relative to a large GEMM, forward. Origin: by hand, on all
        /// rows, where the error is flat; FlashAttention-2 (arXiv 2307.08691) reports 0.5-0.7 of peak on A100.
        attention_fraction: 0.85, "1", 0.1, 1.0, fixed;
        /// Rate of second-generation fused attention on devices whose matrix units work asynchronously (Hopper and newer)
        /// relative to kernels written for them. Origin: FlashAttention-3 (arXiv 2407.08608): 35 % of H100's peak before,
        /// up to 75 % after; fixed at the middle of its figure 5 (0.55-0.7).
        attention_carried: 0.62, "1", 0.3, 1.0, fixed;
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
        /// Time of a narrow-format (fp8, fp4) GEMM spent in quantizing and scaling, relative to the same GEMM's
        /// operand traffic. Origin: fitted.
        cast_traffic: 1.531, "1", 0.0, 10.0, fitted 2.0;
        // -- memory ---------------------------------------------------------------------------------------------
        /// Share of the datasheet's memory bandwidth that streaming kernels reach. Origin: fixed; BabelStream on A100
        /// and H100 reaches 0.88-0.93.
        memory_fraction: 0.85, "1", 0.3, 1.0, fixed;
        /// Traffic of element-wise operators over one read and one write per operand, plain modules: casts,
        /// copies and one kernel for every step. Origin: by hand, on all rows, where the error is flat.
        eager_traffic: 1.5, "1", 0.5, 8.0, fixed;
        /// The same where the framework or a compiler fuses them (training frameworks with kernels of their own, whole-program compilers). Origin: fitted.
        fused_traffic: 1.145, "1", 0.3, 5.0, fitted 1.0;
        /// Traffic of routing and permutation where they are not fused, relative to fused. Origin: fitted.
        dispatch_unfused: 1.209, "1", 1.0, 20.0, fitted 3.0;
        // -- host -----------------------------------------------------------------------------------------------
        /// Host time that an eager framework spends on each operator of our list (Python, autograd, several launches).
        /// Origin: by hand, on all rows, where the error is flat (vTrain's small single-node runs fit 65 us).
        issue: 65.0e-6, "s", 2e-6, 300e-6, fixed;
        /// Host time of routing and dispatch in a MoE layer's forward pass, in units of an operator's, where the number of
        /// tokens per expert must come back to the host. Origin: by hand, on all rows, where the error is
        /// flat.
        routing_issue: 120.0, "1", 0.0, 200.0, fixed;
        /// Share of those launches that is left in a compiled graph. Origin: fixed.
        compiled_kernels: 0.1, "1", 0.0, 1.0, fixed;
        /// Time of a step that no overlap hides: data, gradient norm, logging, synchronization. Origin: by hand, on
        /// all rows, where the error is flat.
        step_overhead: 0.015, "s", 0.0, 0.2, fixed;
        // -- overlap -----------------------------------------------------------------------------------------------
        /// Share of tensor-parallel communication that stays visible alongside overlapped GEMMs. Origin: fitted.
        tensor_exposed: 0.5883, "1", 0.0, 1.0, fitted 0.7;
        /// Share of expert all-to-all that stays visible. Origin: fitted; dispatchers overlap it with shared experts and
        /// other micro-batches only where asked to.
        expert_exposed: 0.1900, "1", 0.0, 1.0, fitted 0.3;
        /// Share of pipeline transfers that stays visible. Origin: fixed.
        pipeline_exposed: 0.3, "1", 0.0, 2.0, fixed;
        /// Share of a micro-batch's compute alongside which data-parallel traffic can run. Origin: by hand, on all rows,
        /// where the error is flat.
        overlap_share: 0.8, "1", 0.0, 1.0, fixed;
        /// Slow-down of compute per second of hidden traffic (SMs and memory bandwidth that it takes). Origin: by
        /// hand, on all rows, where the error is flat.
        overlap_slowdown: 0.5, "1", 0.0, 1.0, fixed;
        // -- memory of a training step ---------------------------------------------------------------------------
        /// Share of transient memory that fragmentation wastes as a rule; the upper bound has three times as much. Origin:
        /// fixed; a caching allocator's blocks.
        fragmentation: 0.05, "1", 0.0, 0.5, fixed;
        /// Workspaces of libraries (cuBLAS, NCCL). Origin: fixed.
        workspace: 0.5e9, "bytes", 0.0, 8e9, fixed;
        /// Driver context and what frameworks keep outside the allocator. Origin: fixed.
        reserve: 2.0e9, "bytes", 0.0, 1e10, fixed;
        /// Device time lost around each operator: ramp-up, tail, and the gap to the next one. Origin: fitted.
        kernel_gap: 2.524e-6, "s", 0.5e-6, 60e-6, fitted 6.0e-6;
        // -- fabric ---------------------------------------------------------------------------------------------
        /// Latency of one step inside the scale-up domain. Origin: NCCL tuning tables (src/graph/tuning.cc),
        /// LL/Simple.
        link_latency: 1.5e-6, "s", 0.1e-6, 50e-6, fixed;
        /// Latency of one step between nodes. Origin: NCCL tuning tables, network latency of the Simple protocol.
        nic_latency: 10.0e-6, "s", 1e-6, 100e-6, fixed;
        /// Share of the scale-up link's rate that a large collective reaches. Origin: nccl-tests, 0.75-0.82 on
        /// NVSwitch.
        link_fraction: 0.8, "1", 0.2, 1.0, fixed;
        /// The same over PCIe, where headers, host bridges and sockets take their share. Origin: fitted; nccl-tests on
        /// PCIe 4.0 x16 show 18 to 24 of 32 GB/s inside a socket, and less across sockets.
        pcie_fraction: 0.5348, "1", 0.1, 1.0, fitted 0.65;
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

        // == serving ============================================================================================
        // -- arithmetic -----------------------------------------------------------------------------------------
        /// Share of a large product's rate that an engine's linear layers reach on many tokens. Origin: fitted; a step
        /// mixes products of many shapes, launched without waiting for a full device.
        serving_products: 0.7668, "1", 0.4, 1.2, fitted 0.90;
        /// The same for 8-bit formats, relative to the 16-bit share (casts, scales, epilogues).
        /// Origin: fitted.
        narrow8_fraction: 0.9375, "1", 0.3, 1.0, fitted 0.80;
        /// The same for 4-bit formats with block scales. Origin: fitted.
        narrow4_fraction: 0.8348, "1", 0.2, 1.0, fitted 0.60;
        /// Share of the 16-bit rate left when weights are unpacked inside the GEMM (W4A16, W8A16).
        /// Origin: fitted; Marlin (arXiv 2408.11743) reports 0.8-0.9 at large batches.
        unpack_fraction: 0.5443, "1", 0.2, 1.0, fitted 0.75;
        /// Share of the rate that grouped GEMMs over experts keep relative to one dense GEMM. Origin: fitted.
        grouped_fraction: 0.5838, "1", 0.1, 1.0, fitted 0.6;
        /// Rows to which a matrix multiplication's tile pads a few tokens: what it computes no less than.
        /// Origin: fixed; the shape of the instruction, 64 rows on Hopper (`wgmma.m64`), CUTLASS's and cuBLAS's least
        /// tiles elsewhere.
        tile_rows: 64.0, "tokens", 1.0, 256.0, fixed;
        /// Part of the shorter of arithmetic and traffic that is not hidden behind the longer one.
        /// Origin: fitted; a perfect roofline has 0.
        overlap_loss: 0.3531, "1", 0.0, 1.0, fitted 0.25;
        // -- memory ---------------------------------------------------------------------------------------------
        /// Bytes per second that one core of the accelerator streams in a native runtime's matrix-vector kernels.
        /// Origin: fitted; 8 GB/s is an A100's 54 tokens/s on an 8B model in 16 bit (a native runtime) over its 108 cores.
        core_bw: 7.066e9, "bytes/s", 1e9, 1e11, fitted 8.5e9;
        /// Share of the bandwidth at which paged keys and values are read. Origin: fitted.
        kv_fraction: 0.7929, "1", 0.1, 1.0, fitted 0.65;
        /// Bytes of keys and values per second that one core passes where every query head reads them for itself.
        /// Origin: fitted; a quarter of the 64 bytes a clock that an SM takes from its caches.
        head_bw: 1.952e10, "bytes/s", 2e9, 2e11, fitted 2.2e10;
        /// Bytes of weights per second that one core passes for every row where products are not tuned for few rows.
        /// Origin: fixed; AMD CDNA 3 white paper: L2 reads of 2 KB a clock on a die of 38 cores at 2.1 GHz.
        row_bw: 1.13e11, "bytes/s", 1e9, 1e12, fixed;
        /// Times that a layer's hidden vector is read or written outside GEMMs and attention
        /// (norms, rotary, residuals, activation, quantization). Origin: fixed; counting kernels gives 15-30,
        /// free fits 19-27.
        activation_passes: 20.0, "passes", 0.0, 100.0, fixed;
        // -- launch and host ------------------------------------------------------------------------------------
        /// Gap and ramp of one kernel in a captured graph. Origin: fitted; traces show 1-3 us.
        kernel_graph: 3.957e-6, "s", 0.2e-6, 20e-6, fitted 2.0e-6;
        /// Kernels that a Python engine launches for a mixture's layer beyond those of 16-bit weights where experts multiply
        /// 8-bit formats: activations are quantized block by block before each product. Origin: fitted.
        scaling_kernels: 9.007, "kernels", 0.0, 60.0, fitted 4.0;
        /// Host time to launch one kernel of a prompt chunk, which no captured graph covers. Origin: fitted; 5 us a
        /// bare CUDA launch, 10-30 us with Python between.
        kernel_prefill: 1.221e-5, "s", 1e-6, 200e-6, fitted 15.0e-6;
        /// Host time to launch one kernel from compiled code under CUDA. Origin: fixed; CUDA's documentation and traces have
        /// 2.5-5 us, and graphs, which save it, gained a native runtime up to a fifth (NVIDIA's note on its CUDA graphs, 2024).
        kernel_native: 5.0e-6, "s", 1e-6, 50e-6, fixed;
        /// The same as `kernel_graph` where a Python framework launches every kernel. Origin: fitted; 5-20 us a launch
        /// with Python between them, and more, smaller kernels than an engine's.
        kernel_eager: 6.970e-5, "s", 4e-6, 300e-6, fitted 40.0e-6;
        /// Host time between two steps of a compiled runtime. Origin: fitted.
        step_compiled: 7.466e-4, "s", 0.0, 10e-3, fitted 0.3e-3;
        /// Host time between two steps of a Python engine: scheduling, input preparation, sampling.
        /// Origin: fitted; an engine measured up to 5 ms before and under 1 ms after its rewrite.
        step_python: 5.061e-3, "s", 0.0, 20e-3, fitted 2.0e-3;
        /// The same where only what changed since the step before is prepared anew. Origin: fitted; under 1 ms by the authors
        /// of such an engine.
        step_incremental: 1.076e-3, "s", 0.0, 20e-3, fitted 1.0e-3;
        /// Host time per running sequence and step (sampling, detokenization, streaming). Origin: fitted.
        host_per_sequence: 2.151e-5, "s", 0.0, 200e-6, fitted 10.0e-6;
        /// The same for the answers of a server that streams them from the process that schedules. Origin: fixed; an
        /// engine of that kind: 33 % of the time went to the HTTP server where 38 % was the accelerator's, about 10 ms for 100 sequences.
        stream_per_sequence: 100.0e-6, "s", 0.0, 1e-3, fixed;
        /// Share of that host time that remains where the next step is scheduled while the accelerator computes.
        /// Origin: fitted.
        host_exposed: 0.4141, "1", 0.0, 1.0, fitted 0.4;
        /// Serial work of a Python engine's front end per request: HTTP, tokenizing, detokenizing. Origin: fitted.
        front_end: 4.097e-3, "s", 0.0, 30e-3, fitted 2.0e-3;
        /// Time to accept, tokenize and schedule one request before its prefill. Origin: fixed; free fits on measured
        /// TTFT find 10-17 ms.
        request_overhead: 15.0e-3, "s", 0.0, 300e-3, fixed;
        // -- fabric ---------------------------------------------------------------------------------------------
        /// Latency of one collective of a step inside a scale-up domain, with direct loads and stores: launch, flags and
        /// barrier included. Origin: fitted; one-shot kernels measure 5-10 us.
        one_shot_latency: 9.091e-6, "s", 1e-6, 100e-6, fitted 8.0e-6;
        /// The same over PCIe through the host bridge. Origin: fitted.
        pcie_latency: 4.534e-5, "s", 2e-6, 300e-6, fitted 30.0e-6;
        /// The same by a collective library: launch, its protocol's steps around the ring. Origin: fitted; nccl-tests and
        /// rccl-tests show 15-45 us for a few kilobytes on eight devices.
        library_latency: 3.052e-5, "s", 5e-6, 100e-6, fitted 25.0e-6;
        // -- experts --------------------------------------------------------------------------------------------
        /// Excess of the busiest rank's experts over the mean for each doubling of the ranks that hold whole experts.
        /// Origin: fitted; 0.08 is a load of 1.25 on the busiest of eight.
        expert_excess: 0.06153, "1", 0.0, 0.5, fitted 0.08;
        /// Excess of the busiest attention group's step over the mean for each doubling of the groups: all wait for the one
        /// with most prompt tokens and keys before they exchange tokens. Origin: fitted.
        group_excess: 0.08471, "1", 0.0, 0.5, fitted 0.06;
        /// Tokens of a batch resemble one another, so T tokens touch as many experts as T^x independent ones would.
        /// Origin: fixed; free fits find 0.85-0.97, on all sources 0.90-0.93.
        routing_exponent: 0.92, "1", 0.5, 1.0, fixed;
        // -- software maturity ----------------------------------------------------------------------------------
        /// Share of both rooflines that inference stacks on AMD's CDNA reach relative to CUDA's. Origin: fitted.
        cdna_fraction: 0.6880, "1", 0.2, 1.2, fitted 0.85;
        /// The same with kernels that the vendor writes for inference (AITER). Origin: fitted; its authors state 2 to 17 times
        /// the rate of the kernels before for some operators.
        cdna_vendor_fraction: 0.7618, "1", 0.2, 1.2, fitted 0.85;
        /// The same for all other accelerators. Origin: fitted.
        other_stack_fraction: 0.5618, "1", 0.2, 1.2, fitted 0.7;
        /// Share of that arithmetic which Neuron's compiled graphs reach, whose prompts keep 14-25 % of the peak busy. Origin:
        /// fitted on two sources, one of which is always left out where it is judged.
        neuron_fraction: 0.5600, "1", 0.1, 1.2, fitted 0.6;
        // -- memory capacity ------------------------------------------------------------------------------------
        /// Memory per accelerator outside weights and KV cache: context, graphs. Origin: fixed; start-up
        /// logs of serving engines print 1.5-5 GB in all, less on smaller devices, whose step budgets are smaller.
        reserve_bytes: 1.0e9, "bytes", 0.0, 2.0e10, fixed;
        /// The same as a share of the device's memory: workspace and activations of the largest step. Origin: fixed.
        reserve_share: 0.02, "1", 0.0, 0.5, fixed;
        // -- latency --------------------------------------------------------------------------------------------
        /// Share of the closed-loop population that arrives in a burst rather than spread over the cycle.
        /// Origin: fitted on measured TTFT.
        burst_share: 0.1312, "1", 0.0, 1.0, fitted 0.1;
        /// The same where prefill runs in steps of its own. Origin: fitted on measured TTFT.
        burst_share_separate: 0.2431, "1", 0.0, 1.0, fitted 0.2;
        /// Decode steps that pass between a request's arrival and its first chunk: the step in flight, the steps that a
        /// scheduler has queued ahead. Origin: fixed; half a step in flight and one queued by an overlapping scheduler.
        boundary_steps: 1.5, "steps", 0.0, 20.0, fixed;
        /// Steps by which batched admission and streaming delay a first token. Origin: fitted; published configurations
        /// set `stream_interval` to 10-20.
        batched_steps: 6.913, "steps", 0.0, 40.0, fitted 6.0;
        /// Arrival and service variability entering Allen-Cunneen, (ca^2 + cs^2) / 2. Origin: fixed; Poisson arrivals,
        /// nearly deterministic prefill.
        variability: 0.6, "1", 0.0, 4.0, fixed;
    }
}
