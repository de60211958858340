//! Output of tools that measure interconnects and devices.

use std::fmt::Write as _;

use super::Draw;

pub(super) fn nccl_tests(d: &mut Draw) -> String {
    let mut out = String::new();
    for op in ["all_gather", "all_reduce"] {
        lines!(out;
            "# Collective test starting: {op}_perf";
            "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 1 iters: 20 validation: 1 graph: 0";
            "# Using devices";
            "#  Rank  0 Group  0 Pid   4711 on     node-0 device  0 [0000:8d:00] NVIDIA H200";
            "#  Rank  1 Group  0 Pid   4712 on     node-0 device  1 [0000:91:00] NVIDIA H200";
            "#                                                              out-of-place                       in-place          ";
            "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong";
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       ";
        );
        for size in [1_048_576, 2_097_152, 4_194_304] {
            lines!(out; "{size:12} {:13}     float     sum      -1 {:8.2} {:7.2} {:7.2}      0 {:8.2} {:7.2} {:7.2}      0", size / 4, d.real(10.0, 900.0), d.real(10.0, 200.0), d.real(10.0, 400.0), d.real(10.0, 900.0), d.real(10.0, 200.0), d.real(10.0, 400.0););
        }
        lines!(out; "# Out of bounds values : 0 OK"; "# Avg bus bandwidth    : {:.4}", d.real(10.0, 400.0); "#";);
    }
    out
}

pub(super) fn all_reduce_bench(d: &mut Draw) -> String {
    let mut out = format!(
        "The average bandwidth of all_reduce over {} ranks (5 warmups / 20 trials):\n\n| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n",
        8 * d.whole(1, 99)
    );
    for payload in ["32KB", "1MB", "16GB"] {
        lines!(out; "| {payload:>7} | {:6.2}GBps | {:6.2}GBps |", d.real(1.0, 480.0), d.real(1.0, 270.0););
    }
    out
}

pub(super) fn nvidia_smi(d: &mut Draw) -> String {
    let mut out = String::from("timestamp, index, power.draw [W], utilization.gpu [%], memory.used [MiB]\n");
    for second in 0..4 {
        for gpu in 0..2 {
            lines!(out; "2025/06/10 20:05:4{second}.274, {gpu}, {:.2} W, {} %, {} MiB", d.real(70.0, 700.0), d.whole(1, 100), d.whole(1000, 80_000););
        }
    }
    out
}

pub(super) fn nvidia_smi_table(d: &mut Draw) -> String {
    let mut out = String::from(
        "+-----------------------------------------------------------------------------------------+\n| NVIDIA-SMI 550.90.12              Driver Version: 550.90.12      CUDA Version: 12.4     |\n|-----------------------------------------+------------------------+----------------------+\n",
    );
    for gpu in 0..2 {
        lines!(out;
            "|   {gpu}  NVIDIA H100 80GB HBM3          On  |   00000000:{gpu}1:00.0 Off |                    0 |";
            "| N/A   {}C    P0            {}W /  700W |   {}MiB /  81559MiB |     {}%      Default |", d.whole(30, 80), d.whole(70, 700), d.whole(1000, 80_000), d.whole(1, 100);
            "+-----------------------------------------+------------------------+----------------------+";
        );
    }
    out
}

pub(super) fn dmon(d: &mut Draw) -> String {
    let mut out = String::from(
        "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec\n# Idx      W      C      C      %      %      %      %\n",
    );
    for _ in 0..3 {
        lines!(out; "    0    {}     {}      -    {}     {}      0      0", d.whole(70, 700), d.whole(30, 80), d.whole(1, 100), d.whole(1, 100););
    }
    out
}

pub(super) fn rocm_smi(d: &mut Draw) -> String {
    let mut out = String::from(
        "======================= ROCm System Management Interface =======================\n================================= Concise Info =================================\nDevice  Node  IDs              Temp        Power     Partitions          SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%  \n",
    );
    for gpu in 0..2 {
        lines!(out; "{gpu}       {}     0x74a1,   60024  {}.0°C      {}.0W    NPS1, SPX, 0        132Mhz  900Mhz  0%   auto  750.0W  {}%    {}%     ", gpu + 2, d.whole(30, 80), d.whole(70, 700), d.whole(1, 100), d.whole(1, 100););
    }
    out + "============================= End of ROCm SMI Log ==============================\n"
}

pub(super) fn amd_smi(d: &mut Draw) -> String {
    let mut out = String::from("GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  MEM_UTIL  MEM_CLOCK\n");
    for gpu in 0..2 {
        lines!(out; "  {gpu}  {} W     {} °C     {} °C      {} %   1308 MHz       {} %    900 MHz", d.whole(70, 700), d.whole(30, 80), d.whole(30, 80), d.whole(1, 100), d.whole(1, 100););
    }
    out
}

pub(super) fn dcgm(d: &mut Draw) -> String {
    let mut out =
        String::from("# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n");
    for gpu in 0..2 {
        lines!(out;
            "DCGM_FI_DEV_POWER_USAGE{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",modelName=\"NVIDIA H100\",Hostname=\"a\"}} {:.3}", d.real(70.0, 700.0);
            "DCGM_FI_DEV_GPU_UTIL{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",modelName=\"NVIDIA H100\",Hostname=\"a\"}} {}", d.whole(1, 100);
        );
    }
    out
}
