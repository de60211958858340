//! The table of constants: hardware first, which training and serving share; then what their software adds.

use crate::constant_set;

constant_set! {
    /// Constants of hardware, of training and of serving.
    Constants {
        // -- matrix multiplication ------------------------------------------------------------------------------
        /// Share of the dense peak that a large GEMM sustains on NVIDIA Ampere (and Volta, workstation cards) under
        /// load. Origin: fitted; micro-benchmarks reach 0.86 (stas00/ml-engineering, MAMF table).
        gemm_ampere: 0.7876, "1", 0.5, 1.0, fitted 0.85;
        /// Share of the dense peak that a large GEMM sustains on NVIDIA Hopper, whose clocks drop at the power limit.
        /// Origin: fitted; micro-benchmarks reach 0.80 (stas00/ml-engineering, MAMF table).
        gemm_hopper: 0.7649, "1", 0.4, 1.0, fitted 0.75;
        /// Share of the dense peak that a large GEMM sustains on NVIDIA Blackwell, whose clocks drop at the power
        /// limit. Origin: fitted; micro-benchmarks reach 0.78 (stas00/ml-engineering, MAMF table).
        gemm_blackwell: 0.6502, "1", 0.4, 1.0, fitted 0.70;
        /// Share of the dense peak that a large GEMM sustains on AMD CDNA, Huawei Ascend and AWS Trainium, whose kernel
        /// libraries are less mature. Origin: fitted; micro-benchmarks reach 0.51 (MI300X) and 0.63 (MI355X).
        gemm_young: 0.6191, "1", 0.2, 1.0, fitted 0.50;
        /// Share of the dense peak that a large GEMM sustains on systolic arrays with a whole-program compiler (TPU).
        /// Origin: set by hand on all rows; the best GEMMs of TPUs run at their peak, and repeated reads of blocks are
        /// counted separately.
        gemm_systolic: 0.99, "1", 0.3, 1.0, fixed;
        /// Share of the dense peak that a large GEMM sustains on Intel Data Center GPU Max and Gaudi. Origin: fitted.
        gemm_other: 0.3102, "1", 0.2, 1.0, fitted 0.60;
        /// Share of the dense peak that a large GEMM sustains on families without training measurements: consumer GPUs
        /// of other vendors, Apple, dataflow accelerators. Origin: set by hand to the average of the other families;
        /// the intervals of these families are stated priors.
        gemm_unmeasured: 0.60, "1", 0.2, 1.0, fixed;
        /// Inner dimension at which the main loop of a GEMM takes half of its time; prologue and epilogue take the
        /// rest. Origin: fitted.
        gemm_k_half: 62.07, "elements", 1.0, 2000.0, fitted 64.0;
        /// Arithmetic intensity, in FLOPs per byte of device memory, that a GEMM reaches by blocking. The time of the
        /// repeated reads adds to the arithmetic, so devices with little bandwidth for their FLOP/s sustain a smaller
        /// share. Origin: fitted.
        block_intensity: 1561.0, "FLOP/byte", 200.0, 20000.0, fitted 1500.0;
        /// Rate of the GEMMs of experts relative to a single GEMM of the same shape, for an expert matrix whose narrow
        /// side is 2048; the loss is inversely proportional to that side. Origin: fitted.
        grouped_gemm: 0.8692, "1", 0.2, 1.0, fitted 0.80;
        /// Share of the wave quantization loss that remains after the library's choice of tiles (0 none, 1 all).
        /// Origin: set by hand on all rows; the error hardly depends on it.
        wave_loss: 0.5, "1", 0.0, 1.0, fixed;
        /// Rate of the forward pass of fused attention relative to a large GEMM, as shares of the peak. Origin: set by
        /// hand on all rows; the error hardly depends on it. FlashAttention-2 (arXiv 2307.08691) reports 0.5-0.7 of
        /// peak on A100.
        attention_fraction: 0.85, "1", 0.1, 1.0, fixed;
        /// Rate of second-generation fused attention kernels on devices with asynchronous matrix units (Hopper and
        /// newer), relative to kernels written for these devices. Origin: FlashAttention-3 (arXiv 2407.08608): 35 % of
        /// H100's peak before, up to 75 % after; fixed at the middle of its figure 5 (0.55-0.7).
        attention_carried: 0.62, "1", 0.3, 1.0, fixed;
        /// Rate of the first generation of fused attention kernels (FlashAttention-1, Triton) relative to the second.
        /// Origin: fixed; arXiv 2307.08691, figures 4-6: about 0.4 of A100's peak, where the second generation reaches
        /// 0.65.
        attention_first: 0.6, "1", 0.3, 1.0, fixed;
        /// Head width at which fused attention runs at half of the rate of an infinitely wide head. Origin: set by hand
        /// on all rows; the error hardly depends on it. Heads of 64 reach about 0.8 of the rate of heads of 128
        /// (FlashAttention-2, figure 5).
        attention_head_half: 16.0, "elements", 0.0, 256.0, fixed;
        /// Time per FLOP of the backward pass of fused attention relative to its forward pass. Origin: FlashAttention-2
        /// (arXiv 2307.08691, figures 5 and 6) has 1.2-1.4.
        attention_backward: 1.25, "1", 1.0, 2.5, fixed;
        /// Memory traffic of quantizing and scaling the operands of a narrow-format (fp8, fp4) GEMM, relative to one
        /// read of its 16-bit activations. Origin: fitted.
        cast_traffic: 1.914, "1", 0.0, 10.0, fitted 2.0;
        // -- memory ---------------------------------------------------------------------------------------------
        /// Share of the datasheet's memory bandwidth that streaming kernels reach. Origin: fixed; BabelStream on A100
        /// and H100 reaches 0.88-0.93.
        memory_fraction: 0.85, "1", 0.3, 1.0, fixed;
        /// Memory traffic of element-wise operators without fusion (one kernel for every step, with casts and copies),
        /// relative to one read and one write per operand. Origin: set by hand on all rows; the error hardly depends on
        /// it.
        eager_traffic: 1.5, "1", 0.5, 8.0, fixed;
        /// Memory traffic of element-wise operators that the framework or a compiler fuses (training frameworks with
        /// their own kernels, whole-program compilers), relative to one read and one write per operand. Origin: fitted.
        fused_traffic: 1.079, "1", 0.3, 5.0, fitted 1.0;
        /// Memory traffic of unfused routing and permutation of tokens relative to fused kernels. Origin: fitted.
        dispatch_unfused: 1.419, "1", 1.0, 20.0, fitted 3.0;
        // -- host -----------------------------------------------------------------------------------------------
        /// Host time that an eager framework spends on each operator of the performance model (Python, autograd,
        /// several launches). Origin: set by hand on all rows; the error hardly depends on it. Small single-node runs
        /// of vTrain fit 65 us.
        issue: 65.0e-6, "s", 2e-6, 300e-6, fixed;
        /// Host time for routing and dispatch in the forward pass of an MoE layer, in units of the host time of one
        /// operator (`issue`), if the host must read the number of tokens per expert back. Origin: set by hand on all
        /// rows; the error hardly depends on it.
        routing_issue: 120.0, "1", 0.0, 200.0, fixed;
        /// Share of kernel launches that the host still issues in a compiled graph, relative to an eager framework.
        /// Origin: fixed.
        compiled_kernels: 0.1, "1", 0.0, 1.0, fixed;
        /// Time of a training step that does not overlap with computation: data loading, gradient norm, logging,
        /// synchronization. Origin: set by hand on all rows; the error hardly depends on it.
        step_overhead: 0.015, "s", 0.0, 0.2, fixed;
        // -- overlap -----------------------------------------------------------------------------------------------
        /// Share of tensor-parallel communication that remains exposed when it is overlapped with GEMMs. Origin:
        /// fitted.
        tensor_exposed: 0.6112, "1", 0.0, 1.0, fitted 0.7;
        /// Share of expert-parallel all-to-all that remains exposed. Origin: fitted; dispatchers overlap it with shared
        /// experts and other micro-batches only if configured to.
        expert_exposed: 0.01412, "1", 0.0, 1.0, fitted 0.3;
        /// Share of pipeline-parallel transfers that remains exposed. Origin: fixed.
        pipeline_exposed: 0.3, "1", 0.0, 2.0, fixed;
        /// Share of the computation of a micro-batch that data-parallel communication can overlap with. Origin: set by
        /// hand on all rows; the error hardly depends on it.
        overlap_share: 0.8, "1", 0.0, 1.0, fixed;
        /// Slow-down of computation, in seconds per second of overlapped communication, which takes SMs and memory
        /// bandwidth. Origin: set by hand on all rows; the error hardly depends on it.
        overlap_slowdown: 0.5, "1", 0.0, 1.0, fixed;
        // -- memory of a training step ---------------------------------------------------------------------------
        /// Share of transient memory that is typically lost to fragmentation; the upper bound uses three times this
        /// share. Origin: fixed; block sizes of a caching allocator.
        fragmentation: 0.05, "1", 0.0, 0.5, fixed;
        /// Memory of library workspaces (cuBLAS, NCCL) per accelerator. Origin: fixed.
        workspace: 0.5e9, "bytes", 0.0, 8e9, fixed;
        /// Memory per accelerator for the driver context and for allocations of frameworks outside the allocator.
        /// Origin: fixed.
        reserve: 2.0e9, "bytes", 0.0, 1e10, fixed;
        /// Device time lost around each operator: ramp-up, tail, and the gap to the next operator. Origin: fitted.
        kernel_gap: 2.617e-6, "s", 0.5e-6, 60e-6, fitted 6.0e-6;
        // -- fabric ---------------------------------------------------------------------------------------------
        /// Latency of one step of a collective inside the scale-up domain. Origin: NCCL tuning tables
        /// (src/graph/tuning.cc), LL/Simple.
        link_latency: 1.5e-6, "s", 0.1e-6, 50e-6, fixed;
        /// Latency of one step of a collective between nodes. Origin: NCCL tuning tables, network latency of the Simple
        /// protocol.
        nic_latency: 10.0e-6, "s", 1e-6, 100e-6, fixed;
        /// Share of the scale-up link bandwidth that a large collective reaches. Origin: nccl-tests, 0.75-0.82 on
        /// NVSwitch.
        link_fraction: 0.8, "1", 0.2, 1.0, fixed;
        /// Share of the PCIe bandwidth that a large collective reaches; headers, host bridges and links between sockets
        /// take the rest. Origin: fitted; nccl-tests on PCIe 4.0 x16 show 18 to 24 of 32 GB/s inside a socket, and less
        /// across sockets.
        pcie_fraction: 0.5167, "1", 0.1, 1.0, fitted 0.65;
        /// Share of the NIC bandwidth that a large collective reaches. Origin: nccl-tests, 0.8-0.95 on InfiniBand.
        nic_fraction: 0.85, "1", 0.1, 1.0, fixed;
        /// Loss of scale-out bandwidth per doubling of the number of scale-up domains (routing conflicts,
        /// oversubscription). Origin: set by hand on all rows; the error hardly depends on it.
        congestion: 0.05, "1", 0.0, 1.0, fixed;
        /// Cost of a collective's ramp-up, as a number of additional bytes; a message costs at most as much as three
        /// times its size. Origin: nccl-tests curves (half the rate at about half a megabyte per rank).
        message_ramp: 0.5e6, "bytes", 1e4, 1e8, fixed;
        /// Bandwidth of in-switch reduction (NVLS, SHARP) relative to a ring, for large messages. Origin: NVIDIA,
        /// "NVLink SHARP" (bus bandwidth 360 to 480 GB/s on 8 H100).
        in_switch_gain: 1.3, "1", 1.0, 2.0, fixed;

        // == serving ============================================================================================
        // -- arithmetic -----------------------------------------------------------------------------------------
        /// Rate of the linear layers of a serving engine with many tokens, relative to a large GEMM. Origin: fitted; a
        /// step mixes GEMMs of many shapes, which do not always fill the device.
        serving_products: 0.7613, "1", 0.4, 1.2, fitted 0.90;
        /// Share of the peak that GEMMs of a serving engine reach in 8-bit formats, relative to the share in 16-bit
        /// formats (casts, scales, epilogues). Origin: fitted.
        narrow8_fraction: 0.9320, "1", 0.3, 1.0, fitted 0.80;
        /// Share of the peak that GEMMs of a serving engine reach in 4-bit formats with block scales, relative to the
        /// share in 16-bit formats. Origin: fitted.
        narrow4_fraction: 0.8379, "1", 0.2, 1.0, fitted 0.60;
        /// Rate of a 16-bit GEMM that unpacks quantized weights in its kernel (W4A16, W8A16), relative to one with
        /// 16-bit weights. Origin: fitted; Marlin (arXiv 2408.11743) reports 0.8-0.9 at large batches.
        unpack_fraction: 0.5249, "1", 0.2, 1.0, fitted 0.75;
        /// Rate of grouped GEMMs over experts in a serving engine, relative to one dense GEMM. Origin: fitted.
        grouped_fraction: 0.5938, "1", 0.1, 1.0, fitted 0.6;
        /// Rate of a grouped GEMM over experts written in Triton relative to one of a compiled library. Origin: fitted.
        triton_fraction: 0.7876, "1", 0.3, 1.2, fitted 0.8;
        /// Minimum number of rows that a matrix multiplication computes: smaller batches are padded to one tile.
        /// Origin: fixed; the shape of the instruction, 64 rows on Hopper (`wgmma.m64`), and the smallest tiles of
        /// CUTLASS and cuBLAS elsewhere.
        tile_rows: 64.0, "tokens", 1.0, 256.0, fixed;
        /// Share of the shorter of arithmetic and memory traffic that does not overlap with the longer one. Origin:
        /// fitted; a perfect roofline has 0.
        overlap_loss: 0.3334, "1", 0.0, 1.0, fitted 0.25;
        // -- memory ---------------------------------------------------------------------------------------------
        /// Rate at which one core of the accelerator streams weights in the matrix-vector kernels of a native runtime,
        /// at the clock of an A100, to which it is proportional. Origin: fitted; 8 GB/s per core follows from 54 tokens/s
        /// of an A100 (108 cores) on an 8B model in 16 bit with a native runtime.
        core_bw: 6.468e9, "bytes/s", 1e9, 1e11, fitted 8.5e9;
        /// Share of the memory bandwidth at which a paged KV cache is read. Origin: fitted.
        kv_fraction: 0.7895, "1", 0.1, 1.0, fitted 0.65;
        /// Rate at which one core reads the KV cache from its caches if every query head reads it separately, at the clock
        /// of an A100, to which it is proportional. Origin: fitted; a quarter of the 64 bytes per clock that an SM reads
        /// from its caches.
        head_bw: 1.745e10, "bytes/s", 2e9, 2e11, fitted 2.2e10;
        /// Rate at which one core processes the bytes of weights for each row of a batch, in GEMM kernels that are not
        /// tuned for few rows. Origin: fixed; AMD CDNA 3 white paper: L2 reads of 2 KB per clock on a die of 38 cores
        /// at 2.1 GHz.
        row_bw: 1.13e11, "bytes/s", 1e9, 1e12, fixed;
        /// Number of times that the hidden vector is read or written in a layer outside of GEMMs and attention (norms,
        /// rotary embedding, residuals, activation, quantization). Origin: fixed; counting kernels gives 15-30,
        /// unconstrained fits 19-27.
        activation_passes: 20.0, "passes", 0.0, 100.0, fixed;
        // -- launch and host ------------------------------------------------------------------------------------
        /// Device time lost around each kernel in a captured graph: gap and ramp-up. Origin: fitted; traces show 1-3
        /// us.
        kernel_graph: 3.912e-6, "s", 0.2e-6, 20e-6, fitted 2.0e-6;
        /// Share of the kernel gaps and launches that remains if a compiler turns a step or a layer into one program, relative
        /// to a program that launches every kernel. Origin: fixed; an assumption.
        kernel_program: 0.1, "1", 0.0, 1.0, fixed;
        /// Additional kernels per MoE layer that a Python engine launches if experts multiply in 8-bit formats rather
        /// than in 16 bit: activations are quantized block by block before each GEMM. Origin: fitted.
        scaling_kernels: 8.940, "kernels", 0.0, 60.0, fitted 4.0;
        /// Host time to launch one kernel of a prefill chunk, which no captured graph covers. Origin: fitted; 5 us for
        /// a bare CUDA launch, 10-30 us for a launch from Python.
        kernel_prefill: 1.547e-5, "s", 1e-6, 200e-6, fitted 15.0e-6;
        /// Host time to launch one kernel from compiled code under CUDA. Origin: fixed; 2.5-5 us in CUDA's
        /// documentation and in traces. CUDA graphs, which save this time, made a native runtime up to a fifth faster
        /// (NVIDIA's note on its CUDA graphs, 2024).
        kernel_native: 5.0e-6, "s", 1e-6, 50e-6, fixed;
        /// Host time to launch one kernel if a Python framework launches every kernel separately, without captured
        /// graphs. Origin: fitted; 5-20 us for a launch from Python, with more and smaller kernels than in a serving
        /// engine.
        kernel_eager: 7.484e-5, "s", 4e-6, 300e-6, fitted 40.0e-6;
        /// Host time between two steps of a compiled serving runtime. Origin: fitted.
        step_compiled: 7.987e-4, "s", 0.0, 10e-3, fitted 0.3e-3;
        /// Host time between two steps of a Python serving engine: scheduling, input preparation, sampling. Origin:
        /// fitted; an engine measured up to 5 ms before and under 1 ms after it was rewritten.
        step_python: 4.625e-3, "s", 0.0, 20e-3, fitted 2.0e-3;
        /// Host time between two steps of a Python serving engine that prepares only the inputs that changed since the
        /// previous step. Origin: fitted; under 1 ms according to the authors of such an engine.
        step_incremental: 9.394e-4, "s", 0.0, 20e-3, fitted 1.0e-3;
        /// Host time per running sequence and step of a serving engine: sampling, detokenization, streaming. Origin:
        /// fitted.
        host_per_sequence: 2.372e-5, "s", 0.0, 200e-6, fitted 10.0e-6;
        /// Host time per running sequence and step of a serving engine in compiled code, relative to one in Python. Origin:
        /// fixed; an assumption.
        native_per_sequence: 0.1, "1", 0.0, 1.0, fixed;
        /// Additional host time per running sequence and step if the scheduler's process also streams the responses.
        /// Origin: fixed; in an engine of that kind, the HTTP server took 33 % of the time and the accelerator 38 %,
        /// about 10 ms for 100 sequences.
        stream_per_sequence: 100.0e-6, "s", 0.0, 1e-3, fixed;
        /// Share of the host time between steps that remains exposed if the next step is scheduled while the
        /// accelerator computes. Origin: fitted.
        host_exposed: 0.3915, "1", 0.0, 1.0, fitted 0.4;
        /// Serial host time per request in the front end of a Python serving engine: HTTP, tokenization,
        /// detokenization. Origin: fitted.
        front_end: 4.659e-3, "s", 0.0, 30e-3, fitted 2.0e-3;
        /// Time to accept, tokenize and schedule one request before its prefill. Origin: fixed; unconstrained fits on
        /// measured TTFT find 10-17 ms.
        request_overhead: 15.0e-3, "s", 0.0, 300e-3, fixed;
        // -- fabric ---------------------------------------------------------------------------------------------
        /// Latency of one collective of a serving step inside a scale-up domain, with direct loads and stores between
        /// accelerators: launch, flags and barrier. Origin: fitted; one-shot kernels measure 5-10 us.
        one_shot_latency: 1.013e-5, "s", 1e-6, 100e-6, fitted 8.0e-6;
        /// Latency of one collective of a serving step over PCIe through the host bridge. Origin: fitted.
        pcie_latency: 3.001e-5, "s", 2e-6, 300e-6, fitted 30.0e-6;
        /// Latency of one collective of a serving step that uses a collective library: launch and the steps of its ring
        /// protocol. Origin: fitted; nccl-tests and rccl-tests show 15-45 us for a few kilobytes on eight devices.
        library_latency: 3.485e-5, "s", 5e-6, 100e-6, fitted 25.0e-6;
        // -- experts --------------------------------------------------------------------------------------------
        /// Excess load of the rank with the busiest experts over the mean, for each doubling of the number of
        /// expert-parallel ranks. Origin: fitted; 0.08 is a load of 1.25 on the busiest of eight ranks.
        expert_excess: 0.04944, "1", 0.0, 0.5, fitted 0.08;
        /// Excess time of a step of the busiest data-parallel attention group over the mean, for each doubling of the
        /// number of groups. All groups wait for the one with the most prompt tokens and KV cache before they exchange
        /// tokens. Origin: fitted.
        group_excess: 0.08306, "1", 0.0, 0.5, fitted 0.06;
        /// Exponent x for the correlation of the routing of tokens: T tokens of a batch activate as many different
        /// experts as T^x independent tokens. Origin: fixed; unconstrained fits find 0.85-0.97, on all sources
        /// 0.90-0.93.
        routing_exponent: 0.92, "1", 0.5, 1.0, fixed;
        // -- software maturity ----------------------------------------------------------------------------------
        /// Share of the CUDA stacks' efficiency, in compute and memory bandwidth, that serving engines reach on AMD
        /// CDNA. Origin: fitted.
        cdna_fraction: 0.7321, "1", 0.2, 1.2, fitted 0.85;
        /// Share of the CUDA stacks' efficiency, in compute and memory bandwidth, that serving engines reach on AMD
        /// CDNA with the vendor's kernels for inference (AITER). Origin: fitted; the authors of these kernels state 2
        /// to 17 times the rate of the previous ones for some operators.
        cdna_vendor_fraction: 0.7939, "1", 0.2, 1.2, fitted 0.85;
        /// Share of the CUDA stacks' efficiency, in compute and memory bandwidth, that serving engines reach on
        /// accelerators other than NVIDIA's and AMD's. Origin: fitted.
        other_stack_fraction: 0.5978, "1", 0.2, 1.2, fitted 0.7;
        /// Additional factor on the compute rate of serving with AWS Neuron, whose compiled graphs keep 14-25 % of the
        /// peak busy in prefill. Origin: fitted on two sources; the error on each source is evaluated with a fit that
        /// excludes it.
        neuron_fraction: 0.5925, "1", 0.1, 1.2, fitted 0.6;
        // -- memory capacity ------------------------------------------------------------------------------------
        /// Fixed part of the memory per accelerator outside of weights and KV cache: driver context, captured graphs.
        /// Origin: fixed; start-up logs of serving engines print 1.5-5 GB in total, less on smaller devices, whose step
        /// budgets are smaller.
        reserve_bytes: 1.0e9, "bytes", 0.0, 2.0e10, fixed;
        /// Variable part of the memory per accelerator outside of weights and KV cache, as a share of the device's
        /// memory: workspace and activations of the largest step. Origin: fixed.
        reserve_share: 0.02, "1", 0.0, 0.5, fixed;
        // -- latency --------------------------------------------------------------------------------------------
        /// Share of the requests in a closed loop that arrive in a burst rather than spread over the cycle, with
        /// chunked prefill. Origin: fitted on measured TTFT.
        burst_share: 0.1369, "1", 0.0, 1.0, fitted 0.1;
        /// Share of the requests in a closed loop that arrive in a burst rather than spread over the cycle, if prefill
        /// runs in separate steps. Origin: fitted on measured TTFT.
        burst_share_separate: 0.2285, "1", 0.0, 1.0, fitted 0.2;
        /// Decode steps between the arrival of a request and its first prefill chunk: the step in flight and the steps
        /// that the scheduler has queued. Origin: fixed; half a step in flight, and one queued by an overlapping
        /// scheduler.
        boundary_steps: 1.5, "steps", 0.0, 20.0, fixed;
        /// Decode steps by which batched admission and streaming delay a first token. Origin: fitted; published
        /// configurations set `stream_interval` to 10-20.
        batched_steps: 6.803, "steps", 0.0, 40.0, fitted 6.0;
        /// Lowest 95th percentile of the time per output token under random arrivals, relative to its mean. Origin: fixed; an
        /// assumption.
        tpot_least_p95: 1.1, "1", 1.0, 2.0, fixed;
        /// Lowest 99th percentile of the time per output token under random arrivals, relative to its mean. Origin: fixed; an
        /// assumption.
        tpot_least_p99: 1.2, "1", 1.0, 2.0, fixed;
        /// Variability of arrivals and service times in the Allen-Cunneen formula, (ca^2 + cs^2) / 2. Origin: fixed;
        /// Poisson arrivals and nearly deterministic prefill.
        variability: 0.6, "1", 0.0, 4.0, fixed;
    }
}
