//! Numbers from documents, and counts, that are the same for all devices and software: nothing here is fitted, and
//! efficiency factors do not change it.

/// Share of the peak matrix rate that the best large GEMMs sustain at the design power, since power limits the clock there
/// (measured matmul rates in the catalog, 0.6 to 0.8 of the peak).
pub const FLOP_SHARE_AT_TDP: f64 = 0.70;
/// Share of the memory bandwidth that a large GEMM uses at that rate. A wave of 132 tiles of 128 × 256 covers about
/// 1,536 × 2,816 outputs and, if its operands are shared through the cache, computes 1,000 FLOPs per byte read: 690
/// TFLOP/s of an H100 (0.7 of its peak) read 0.7 TB/s, 0.2 of its bandwidth; the outputs add the rest.
pub const GEMM_TRAFFIC: f64 = 0.25;
/// FLOPs of the backward pass of fused attention relative to its forward pass: five products instead of two (arXiv
/// 2307.08691, section 4). The scan of a linear mixer, which recomputes the states of its chunks, is counted alike.
pub const ATTENTION_BACKWARD_FLOPS: f64 = 2.5;
/// Traffic of the backward pass of an element-wise operator relative to its forward pass, which reads and writes: it
/// reads what the forward pass wrote, and the gradient, and writes the input's.
pub const ELEMENTWISE_BACKWARD_TRAFFIC: f64 = 1.5;
/// Rows that a matrix instruction of synchronous matrix units multiplies (PTX ISA, `mma.m16n8k16`).
pub const SYNCHRONOUS_TILE_ROWS: f64 = 16.0;
/// Bytes of one value with an 8-bit scale per 16 values in 4 bit (NVIDIA, *Introducing NVFP4*, 2025).
pub const NVFP4_BYTES: f64 = 0.5 + 1.0 / 16.0;
/// Bytes of one value in 4 bit with an 8-bit scale per 32 values, rounded (OCP Microscaling Formats specification 1.0,
/// section 5.2).
pub const MX_4_BIT_BYTES: f64 = 0.53;
/// As [`MX_4_BIT_BYTES`], in 6 bit.
pub const MX_6_BIT_BYTES: f64 = 0.78;
/// Bytes of one value in 8 bit with a 16-bit scale per 32 values, the 8-bit format of native runtimes.
pub const SCALED_8_BIT_BYTES: f64 = 1.0625;
/// Narrow side of an expert's matrix to which [`grouped_gemm`](super::Constants::grouped_gemm) applies.
pub const EXPERT_WIDTH: f64 = 2048.0;
/// Chunk size of a state-space scan, tokens; kernels use 128 or 256.
pub const SCAN_CHUNK: f64 = 128.0;
/// Chunk size of the delta rule in flash-linear-attention, tokens.
pub const DELTA_CHUNK: f64 = 64.0;
/// Number of cores that exchange tokens in prefill while the others compute (arXiv 2412.19437, section 3.2.2: 20 of
/// 132). In decode, NICs need no cores (section 3.4.2).
pub const EXCHANGE_CORES: f64 = 20.0;
/// Bytes of a key that an indexer reads, relative to those that attention reads: 132 of 1,152 (arXiv 2512.02556: 128
/// values in 8 bit with a scale, against 576 in 16 bit).
pub const INDEXED_KEY_SHARE: f64 = 0.115;
/// Number of kernels per kernel of an engine if nothing is fused: 23 operators per layer.
pub const UNFUSED_KERNELS: f64 = 3.0;
/// Batch size above which there is a graph for every multiple of it, and below which for every power of two
/// (`find_bucket` in `hpu_model_runner.py`).
pub const BATCH_BUCKET: f64 = 32.0;
/// Number of turns after which equal requests of a closed loop no longer start and end together. Without an end they
/// would forever, but clients of real services come and go.
pub const TURNS_IN_STEP: f64 = 4.0;
/// Share of the first turn in the runs to which the constants were fitted: benchmarks that send ten requests per
/// concurrent request, so that the first tenth is a burst.
pub const FITTED_FIRST_TURN: f64 = 0.1;
/// Maximum clock of an A100, Hz (NVIDIA A100 datasheet), to which constants per core refer.
pub const A100_CLOCK: f64 = 1.41e9;
