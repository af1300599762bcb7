#!/usr/bin/env python3
"""Times our forward against PyTorch's on the same tensors, alternating in one process.

Each side runs for 20 ms at least (one call, if that is longer) before the other has its turn, the first call of a turn
untimed: the threads of either spin for a while after a call and would sit on the other's cores.

Needs torch (CPU) and build/bench/bench/levelhead_shim.so:
    cmake --preset release -B build/bench -DLEVELHEAD_BUILD_BENCH=ON && cmake --build build/bench --target levelhead_shim
    python3 bench/peers/torch_forward.py --json bench/results/CPU/forward.json

Prints one line a case: medians in TFLOP/s (4 D FLOP per visible pair), the ratio torch time / our time, the same ratio
of torch's materialised path (math) up to 1024 tokens, and what it costs us to leave each row's maximum beside o, its
entropy too, or all statistics. Only ratios of alternating runs mean anything on a shared machine.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

TYPES = {"f32": (0, torch.float32), "bf16": (1, torch.bfloat16), "f16": (2, torch.float16)}


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def pairs(n: int, causal: bool) -> int:
    return n * (n + 1) // 2 if causal else n * n


def materialised(q, k, v, causal):
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def turn(call) -> list[float]:
    """Times of the calls of one turn, in seconds."""
    call()
    times = []
    while not times or sum(times) < 0.02:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--shim", type=Path, default=root / "build/bench/bench/levelhead_shim.so")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--types", default="f32,bf16,f16")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--tokens", default="16,64,256,1024,4096,8192")
    parser.add_argument("--kernel", default="", help="ours, forced by name")
    parser.add_argument("--seconds", type=float, default=3.0, help="a case, both sides together")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    shim = ctypes.CDLL(str(args.shim))
    shim.shim_context.restype = ctypes.c_void_p
    context = ctypes.c_void_p(shim.shim_context(args.threads))

    def ours(kind, heads, n, dim, causal, level, q, k, v, o, state):
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (q, k, v, o)]
        status = shim.shim_forward(context, kind, *(ctypes.c_int64(x) for x in (heads, heads, n, dim)), int(causal),
                                   level, args.kernel.encode(), *pointers, ctypes.c_void_p(state))
        if status != 0:
            raise SystemExit(status)

    rows = []
    for name in args.types.split(","):
        kind, dtype = TYPES[name]
        for dim in map(int, args.dims.split(",")):
            for n in map(int, args.tokens.split(",")):
                heads = 8 if n <= 1024 else 2
                for causal in (False, True):
                    q, k, v = (torch.randn(1, heads, n, dim).to(dtype) for _ in range(3))
                    o = torch.empty_like(q)
                    state = torch.empty(heads * n * 256, dtype=torch.uint8)  # more than a RowState a row
                    sides = {
                        "torch": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
                        "ours": lambda: ours(kind, heads, n, dim, causal, 0, q, k, v, o, None),
                        "ours_max": lambda: ours(kind, heads, n, dim, causal, 0, q, k, v, o, state.data_ptr()),
                        "ours_entropy": lambda: ours(kind, heads, n, dim, causal, 1, q, k, v, o, state.data_ptr()),
                        "ours_all": lambda: ours(kind, heads, n, dim, causal, 2, q, k, v, o, state.data_ptr()),
                    }
                    if n <= 1024:
                        sides["math"] = lambda: materialised(q, k, v, causal)
                    times = {side: [] for side in sides}
                    with torch.no_grad():
                        for side in sides.values():
                            side()
                        start = time.perf_counter()
                        while time.perf_counter() - start < args.seconds or len(times["ours"]) < 7:
                            for side, call in sides.items():
                                times[side] += turn(call)
                        sides["ours"]()
                        error = (o.double() - F.scaled_dot_product_attention(
                            q.double(), k.double(), v.double(), is_causal=causal)).abs().max().item()
                    flops = 4 * dim * pairs(n, causal) * heads
                    median = {side: statistics.median(t) for side, t in times.items()}
                    row = {"pass": "forward", "type": name, "D": dim, "n": n, "H": heads, "causal": causal,
                           "threads": args.threads, "runs": len(times["ours"]), "max_error": error,
                           "tflops": {side: flops / t / 1e12 for side, t in median.items()},
                           "ratio": median["torch"] / median["ours"],
                           "ratio_math": median["math"] / median["ours"] if "math" in median else None,
                           "statistics_cost": {level: median["ours_" + level] / median["ours"] - 1
                                               for level in ("max", "entropy", "all")}}
                    rows.append(row)
                    math = f"math {row['ratio_math']:5.2f}" if row["ratio_math"] else " " * 10
                    cost = "  ".join(f"{level} {100 * x:+.0f} %" for level, x in row["statistics_cost"].items())
                    print(f"{name:4} D {dim:3} n {n:5} {'causal' if causal else 'full  '}  ours "
                          f"{row['tflops']['ours']:.3f}  torch {row['tflops']['torch']:.3f}  ratio {row['ratio']:5.2f}  "
                          f"{math}  {cost}", flush=True)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        commit = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        result = {"cpu": cpu_name(), "torch": torch.__version__, "commit": commit.stdout.strip(),
                  "command": "bench/peers/torch_forward.py", "rows": rows}
        partial = args.json.with_suffix(".partial")
        partial.write_text(json.dumps(result, indent=1) + "\n")
        partial.replace(args.json)


if __name__ == "__main__":
    main()
