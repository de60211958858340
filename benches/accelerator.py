#!/usr/bin/env python3
"""Measures on a GPU what the table of constants states: usage: accelerator.py [OUT.json] [SECTION ...]

Needs PyTorch 2.8 or later and one CUDA device. Inputs are random; times are medians of CUDA events after a warm-up, and inputs rotate
where they would fit in the cache. Sections: memory, launch, products, narrow, experts, attention, decode, step,
prefill, generate, train.
"""
import json, statistics, sys, time
import torch
import torch.nn.functional as F

DEVICE = torch.device("cuda")
BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn


def seconds(work, repeat=20, warm=5, budget=0.6):
    """Median time of one call of `work` on the device."""
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    times, begin = [], time.time()
    while len(times) < repeat and (time.time() - begin < budget or len(times) < 5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)


def graphed(work, times=1):
    """`work` captured `times` in a row as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            work()
    return graph.replay


def memory():
    """Bytes per second of copies and of reductions by size."""
    rows = []
    for mb in (16, 64, 256, 1024, 4096):
        n = mb * 2**20 // 2
        copies = max(1, 512 // mb)
        sources = [torch.randn(n, device=DEVICE, dtype=BF16) for _ in range(copies)]
        target = torch.empty(n, device=DEVICE, dtype=BF16)
        state = {"i": 0}

        def copy():
            state["i"] = (state["i"] + 1) % copies
            target.copy_(sources[state["i"]])

        def total():
            state["i"] = (state["i"] + 1) % copies
            torch.sum(sources[state["i"]])

        rows.append({"mb": mb, "copy": 2 * 2 * n / seconds(copy), "read": 2 * n / seconds(total)})
    return rows


def launch():
    """Seconds of a small kernel: one after the other from Python, and inside a CUDA graph; and of a chain that depends on itself."""
    x = torch.randn(1, 4096, device=DEVICE, dtype=BF16)
    w = torch.randn(4096, device=DEVICE, dtype=BF16)

    def norm():
        F.rms_norm(x, (4096,), w)

    def add():
        x.add_(0.0)

    def many(work, n):
        def run():
            for _ in range(n):
                work()
        return run

    rows = {}
    for name, work in (("add", add), ("rms_norm", norm)):
        rows[name] = {"eager": seconds(many(work, 200)) / 200, "graph": seconds(graphed(work, 1000)) / 1000}
    linear = torch.randn(4096, 4096, device=DEVICE, dtype=BF16)
    rows["gemv_32mb"] = {"graph": seconds(graphed(lambda: F.linear(x, linear), 200)) / 200}
    return rows


SHAPES = {  # (output, input) of one rank's matrices
    "8b qkv": (6144, 4096), "8b gate+up": (28672, 4096), "8b down": (4096, 14336),
    "70b/8 qkv": (1280, 8192), "70b/8 gate+up": (7168, 8192), "70b/8 down": (8192, 3584), "70b/8 out": (8192, 1024),
    "70b gate+up": (57344, 8192), "70b down": (8192, 28672), "head": (128256, 4096),
}
TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


def products():
    """16-bit products: seconds by shape and tokens."""
    rows = []
    for name, (n, k) in SHAPES.items():
        copies = max(1, int(300e6 // (2 * n * k)) + 1)
        weights = [torch.randn(n, k, device=DEVICE, dtype=BF16) for _ in range(copies)]
        for m in TOKENS:
            x = torch.randn(m, k, device=DEVICE, dtype=BF16)

            def all_copies():
                for w in weights:
                    F.linear(x, w)

            t = seconds(graphed(all_copies), repeat=12, warm=2, budget=0.25) / copies
            rows.append({"shape": name, "n": n, "k": k, "m": m, "s": t, "flops": 2 * m * n * k / t, "bytes": 2 * (n * k + m * k + m * n) / t})
    return rows


def narrow():
    """8-bit products with scales by row, and the quantization of their input: seconds by shape and tokens."""
    rows = []
    for name, (n, k) in SHAPES.items():
        copies = max(1, int(300e6 // (n * k)) + 1)
        weights = [torch.randn(n, k, device=DEVICE, dtype=BF16).to(FP8) for _ in range(copies)]
        scale = torch.ones(1, n, device=DEVICE)
        for m in (16, 64, 256, 1024, 4096, 8192):
            x = torch.randn(m, k, device=DEVICE, dtype=BF16)
            x8, x_scale = x.to(FP8), torch.ones(m, 1, device=DEVICE)

            def all_copies():
                for w in weights:
                    torch._scaled_mm(x8, w.t(), scale_a=x_scale, scale_b=scale, out_dtype=BF16, use_fast_accum=True)

            t = seconds(graphed(all_copies), repeat=12, warm=2, budget=0.25) / copies
            rows.append({"shape": name, "n": n, "k": k, "m": m, "s": t, "flops": 2 * m * n * k / t})
    return rows


def experts():
    """Grouped products over experts: (experts, width, hidden) as in Mixtral, DeepSeek-V3 (a rank of 8) and Qwen3-30B."""
    rows = []
    for name, count, width, hidden in (("mixtral", 8, 14336, 4096), ("dsv3/8", 32, 2048, 7168), ("qwen3-30b", 128, 768, 2048)):
        w = torch.randn(count, hidden, 2 * width, device=DEVICE, dtype=BF16)
        w = w.transpose(1, 2).contiguous().transpose(1, 2)
        for per in (1, 4, 16, 64, 256, 1024):
            m = per * count
            if m * 2 * width > 4e9:
                continue
            x = torch.randn(m, hidden, device=DEVICE, dtype=BF16)
            offsets = torch.arange(1, count + 1, device=DEVICE, dtype=torch.int32) * per
            t = seconds(lambda: torch._grouped_mm(x, w, offs=offsets), repeat=12, budget=0.3)
            rows.append({"shape": name, "per_expert": per, "s": t, "flops": 2 * m * hidden * 2 * width / t, "bytes": 2 * w.numel() / t})
    return rows


def attention():
    """Causal attention forward and backward: FLOP/s (causal, half of the square) by length, heads of 128 and 64."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    rows = []
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        for head in (128, 64):
            for length in (1024, 2048, 4096, 8192, 16384, 32768):
                heads, batch = 4096 // head, max(1, 16384 // length)
                q, k, v = (torch.randn(batch, heads, length, head, device=DEVICE, dtype=BF16, requires_grad=True) for _ in range(3))
                try:
                    with sdpa_kernel(backend):
                        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                        grad = torch.randn_like(out)
                        forward = seconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), repeat=8, budget=0.4)
                        backward = seconds(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True), repeat=8, budget=0.4)
                except RuntimeError as error:
                    rows.append({"backend": backend.name, "head": head, "length": length, "error": str(error)[:80]})
                    continue
                flops = 2 * 2 * batch * heads * length * length * head / 2
                rows.append({"backend": backend.name, "head": head, "length": length, "forward": flops / forward, "backward": 2.5 * flops / backward,
                             "backward_over_forward_per_flop": (backward / 2.5) / forward})
    return rows


class Model(torch.nn.Module):
    """A Llama-like decoder with random weights."""

    def __init__(self, layers, hidden, heads, kv_heads, width, vocabulary):
        super().__init__()
        self.layers, self.hidden, self.heads, self.kv, self.width = layers, hidden, heads, kv_heads, width
        self.head = hidden // heads
        make = lambda n, k: torch.nn.Parameter(torch.randn(n, k, device=DEVICE, dtype=BF16) * 0.02)
        self.embedding = make(vocabulary, hidden)
        self.output = make(vocabulary, hidden)
        self.final = torch.nn.Parameter(torch.ones(hidden, device=DEVICE, dtype=BF16))
        self.blocks = torch.nn.ModuleList()
        for _ in range(layers):
            block = torch.nn.Module()
            block.norm1 = torch.nn.Parameter(torch.ones(hidden, device=DEVICE, dtype=BF16))
            block.norm2 = torch.nn.Parameter(torch.ones(hidden, device=DEVICE, dtype=BF16))
            block.qkv = make((heads + 2 * kv_heads) * self.head, hidden)
            block.out = make(hidden, hidden)
            block.up = make(2 * width, hidden)
            block.down = make(hidden, width)
            self.blocks.append(block)

    def split(self, block, x):
        b, t, _ = x.shape
        q, k, v = F.linear(x, block.qkv).split([self.heads * self.head, self.kv * self.head, self.kv * self.head], dim=-1)
        return (y.view(b, t, -1, self.head).transpose(1, 2) for y in (q, k, v))

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def mlp(self, block, x):
        gate, up = F.linear(x, block.up).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * up, block.down)

    def forward(self, tokens, cos, sin, labels=None):
        x = F.embedding(tokens, self.embedding)
        for block in self.blocks:
            x = self.layer(block, x, cos, sin)
        x = F.rms_norm(x, (self.hidden,), self.final)
        logits = F.linear(x, self.output)
        if labels is None:
            return logits
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())

    def read(self, tokens, cos, sin):
        x = F.embedding(tokens, self.embedding)
        for block in self.blocks:
            x = self.layer(block, x, cos, sin)
        x = F.rms_norm(x[:, -1], (self.hidden,), self.final)
        return F.linear(x, self.output).argmax(-1)

    def layer(self, block, x, cos, sin):
        y = F.rms_norm(x, (self.hidden,), block.norm1)
        q, k, v = self.split(block, y)
        y = F.scaled_dot_product_attention(self.rotate(q, cos, sin), self.rotate(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + F.linear(y.transpose(1, 2).flatten(2), block.out)
        return x + self.mlp(block, F.rms_norm(x, (self.hidden,), block.norm2))

    def decode(self, tokens, keys, values, cos, sin):
        x = F.embedding(tokens, self.embedding)[:, None]
        for index, block in enumerate(self.blocks):
            y = F.rms_norm(x, (self.hidden,), block.norm1)
            q, k, v = self.split(block, y)
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
            keys[index][:, :, -1:] = k
            values[index][:, :, -1:] = v
            y = F.scaled_dot_product_attention(q, keys[index], values[index], enable_gqa=True)
            x = x + F.linear(y.transpose(1, 2).flatten(2), block.out)
            x = x + self.mlp(block, F.rms_norm(x, (self.hidden,), block.norm2))
        x = F.rms_norm(x, (self.hidden,), self.final)
        return F.linear(x[:, 0], self.output).argmax(-1)


def angles(length, head):
    a = torch.outer(torch.arange(length, device=DEVICE, dtype=torch.float32), 1e4 ** (-torch.arange(0, head // 2, device=DEVICE) * 2 / head))
    return a.cos().to(BF16), a.sin().to(BF16)


@torch.no_grad()
def decode():
    """Seconds of attention over keys and values of running sequences (one new token each), 32 query and 8 key heads of 128."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    rows = []
    for batch, length in ((1, 1024), (1, 8192), (1, 32768), (8, 4096), (32, 1024), (32, 4096), (128, 1024), (128, 4096), (256, 2048)):
        q = torch.randn(batch, 32, 1, 128, device=DEVICE, dtype=BF16)
        k, v = (torch.randn(batch, 8, length, 128, device=DEVICE, dtype=BF16) for _ in range(2))
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
            t = seconds(graphed(lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), 4)) / 4
        rows.append({"batch": batch, "length": length, "s": t, "bytes": 2 * 2 * k.numel() / t})
    return rows


@torch.no_grad()
def step():
    """Seconds of one decoding step of Llama 3.1 8B (random weights), compiled and in a CUDA graph, and launched from Python."""
    model = Model(32, 4096, 32, 8, 14336, 128256)
    cos, sin = angles(1, 128)
    rows = []
    for batch, length in ((1, 1024), (8, 1024), (32, 1024), (64, 1024), (128, 1024), (256, 1024), (32, 4096)):
        keys = [torch.randn(batch, 8, length, 128, device=DEVICE, dtype=BF16) for _ in range(32)]
        values = [torch.randn(batch, 8, length, 128, device=DEVICE, dtype=BF16) for _ in range(32)]
        tokens = torch.randint(0, 128256, (batch,), device=DEVICE)
        run = lambda: model.decode(tokens, keys, values, cos, sin)
        row = {"batch": batch, "length": length, "eager": seconds(run), "eager_graph": seconds(graphed(run))}
        torch._dynamo.reset()
        compiled = torch.compile(model.decode, dynamic=False)
        fused = lambda: compiled(tokens, keys, values, cos, sin)
        fused()
        row["compiled_graph"] = seconds(graphed(fused))
        rows.append(row)
        print(row, flush=True)
        del keys, values
    weights = sum(p.numel() for p in model.parameters())
    return {"rows": rows, "parameters": weights}


@torch.no_grad()
def prefill():
    """Seconds in which Llama 3.1 8B (random weights) reads prompts and answers one token: compiled, and launched kernel by kernel."""
    model = Model(32, 4096, 32, 8, 14336, 128256)
    rows = []
    for batch, length in ((1, 128), (1, 512), (1, 1024), (1, 2048), (1, 4096), (1, 8192), (1, 16384), (1, 32768), (8, 1024)):
        cos, sin = angles(length, 128)
        tokens = torch.randint(0, 128256, (batch, length), device=DEVICE)
        row = {"batch": batch, "length": length, "eager": seconds(lambda: model.read(tokens, cos, sin), repeat=8, budget=1.5)}
        if length in (512, 2048, 8192):
            torch._dynamo.reset()
            compiled = torch.compile(model.read, dynamic=False)
            row["compiled"] = seconds(lambda: compiled(tokens, cos, sin), repeat=8, budget=1.5)
        rows.append(row)
        print(row, flush=True)
    return rows


@torch.no_grad()
def generate():
    """Seconds of static batches in Hugging Face transformers (`generate`, greedy): Llama 3.1 8B with random weights."""
    import transformers
    config = transformers.LlamaConfig(
        vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, max_position_embeddings=131072, rope_theta=5e5, dtype="bfloat16", eos_token_id=None, pad_token_id=0)
    with torch.device(DEVICE):
        torch.set_default_dtype(BF16)
        model = transformers.LlamaForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
    rows = []
    for batch, prompt, output in ((1, 512, 128), (8, 512, 128), (32, 512, 128), (128, 512, 128), (32, 2048, 64)):
        tokens = torch.randint(1, 128256, (batch, prompt), device=DEVICE)
        times = {}
        for count in (1, output):
            call = lambda: model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=count, min_new_tokens=count, do_sample=False)
            times[count] = seconds(call, repeat=3, warm=1, budget=1)
        total, first = times[output], times[1]
        rows.append({"batch": batch, "prompt": prompt, "output": output, "ttft": first, "tpot": (total - first) / (output - 1), "tokens_per_sec": batch * output / total})
        print(rows[-1], flush=True)
    return {"transformers": transformers.__version__, "rows": rows}


def train():
    """Seconds of forward and backward passes in 16 bit, compiled and plain, and of AdamW on weights, gradients and states in 32 bit:
    shapes of Llama 3.2 1B and 3B, without recomputation."""
    rows = []
    for name, shape in (("llama3.2-1b", (16, 2048, 32, 8, 8192, 128256)), ("llama3.2-3b", (28, 3072, 24, 8, 8192, 128256))):
        for batch, length in ((4, 2048), (2, 4096), (1, 8192)):
            torch._dynamo.reset()
            torch.cuda.empty_cache()
            model = Model(*shape)
            cos, sin = angles(length, model.head)
            tokens = torch.randint(0, 128256, (batch, length), device=DEVICE)
            row = {"model": name, "batch": batch, "length": length}
            for mode in ("plain", "compiled"):
                call = torch.compile(model) if mode == "compiled" else model

                def passes():
                    call(tokens, cos, sin, tokens).backward()
                    for parameter in model.parameters():
                        parameter.grad = None

                row[mode] = seconds(passes, repeat=8, warm=3, budget=4)
            if length == 8192:
                copies = [torch.nn.Parameter(p.detach().float()) for p in model.parameters()]
                for copy in copies:
                    copy.grad = torch.randn_like(copy)
                optimizer = torch.optim.AdamW(copies, lr=1e-5, fused=True)
                row["optimizer"] = seconds(optimizer.step, repeat=8, warm=3, budget=2)
                row["parameters"] = sum(copy.numel() for copy in copies)
                del copies, optimizer
            rows.append(row)
            print(row, flush=True)
            del model, call
    return rows


def main():
    arguments = sys.argv[1:]
    out = arguments.pop(0) if arguments and arguments[0].endswith(".json") else None
    sections = arguments or ["memory", "launch", "products", "narrow", "experts", "attention", "decode", "step", "prefill", "generate", "train"]
    properties = torch.cuda.get_device_properties(0)
    result = {"device": properties.name, "multiprocessors": properties.multi_processor_count, "torch": torch.__version__, "cuda": torch.version.cuda}
    for section in sections:
        begin = time.time()
        try:
            result[section] = globals()[section]()
        except Exception as error:  # one section that a release lacks leaves the others
            result[section] = {"error": f"{type(error).__name__}: {error}"[:300]}
        torch.cuda.empty_cache()
        print(section, round(time.time() - begin, 1), "s", flush=True)
        if out:
            json.dump(result, open(out, "w"), indent=1)
    if not out:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
