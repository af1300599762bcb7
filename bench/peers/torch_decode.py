#!/usr/bin/env python3
"""Times one step of decoding (append a token, attend to the cache) beside a plain read of as many bytes and PyTorch.

Turns of 20 ms at least alternate in one process, the first call of each untimed, as in torch_forward.py. The plain read
is torch's sum of the same memory as int64. PyTorch's step is scaled_dot_product_attention over the same tensors, without
the append.

Needs torch (CPU) and build/bench/bench/levelhead_shim.so:
    cmake --preset release -B build/bench -DLEVELHEAD_BUILD_BENCH=ON && cmake --build build/bench --target levelhead_shim
    python3 bench/peers/torch_decode.py --json bench/results/CPU/decode.json

Prints one line a case: medians in GB/s of keys and values, our share of the plain read, and the ratio torch time / our
time. Only ratios of alternating runs mean anything on a shared machine.
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

from torch_forward import TYPES, cpu_name, turn


def pointers(*tensors):
    return [ctypes.c_void_p(t.data_ptr()) for t in tensors]


class Case:
    """Keys and values of n tokens, and three ways to go through them."""

    def __init__(self, shim, context, kind, dtype, group, kv_heads, n, dim, kernel):
        self.k, self.v = (torch.randn(1, kv_heads, n, dim).to(dtype) for _ in range(2))
        self.q = torch.randn(1, kv_heads * group, 1, dim).to(dtype)
        self.o = torch.empty_like(self.q)
        self.group, self.bytes = group, 2 * self.k.numel() * self.k.element_size()
        last = [t[:, :, -1:].contiguous() for t in (self.k, self.v)]
        sizes = [ctypes.c_int64(x) for x in (kv_heads, n, dim)]
        self.shim, self.cache = shim, ctypes.c_void_p(shim.shim_cache(kind, *sizes, *pointers(self.k, self.v)))
        heads = [ctypes.c_int64(x) for x in (kv_heads * group, kv_heads, dim)]
        self.last = last
        self.arguments = [context, self.cache, kind, *heads, kernel.encode(), *pointers(self.q, *last, self.o)]

    def ours(self):
        if self.shim.shim_decode(*self.arguments) != 0:
            raise SystemExit(1)

    def torch(self):
        return F.scaled_dot_product_attention(self.q, self.k, self.v, enable_gqa=self.group > 1)

    def read(self):
        return self.k.view(torch.int64).sum() + self.v.view(torch.int64).sum()

    def error(self):
        exact = F.scaled_dot_product_attention(*(t.double() for t in (self.q, self.k, self.v)), enable_gqa=self.group > 1)
        return (self.o.double() - exact).abs().max().item()

    def close(self):
        self.shim.shim_free_cache(self.cache)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--shim", type=Path, default=root / "build/bench/bench/levelhead_shim.so")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--types", default="bf16,f16,f32")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--heads", type=int, default=8, help="of keys and values")
    parser.add_argument("--groups", default="1,4", help="query heads for each of them")
    parser.add_argument("--tokens", default="64,1024,4096,32768")
    parser.add_argument("--kernel", default="", help="ours, forced by name")
    parser.add_argument("--seconds", type=float, default=4.0, help="a case, all sides together")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    shim = ctypes.CDLL(str(args.shim))
    shim.shim_context.restype = shim.shim_cache.restype = ctypes.c_void_p
    context = ctypes.c_void_p(shim.shim_context(args.threads))

    rows = []
    for name in args.types.split(","):
        for group in map(int, args.groups.split(",")):
            for n in map(int, args.tokens.split(",")):
                case = Case(shim, context, *TYPES[name], group, args.heads, n, args.dim, args.kernel)
                sides = {"ours": case.ours, "read": case.read, "torch": case.torch}
                times = {side: [] for side in sides}
                with torch.no_grad():
                    start = time.perf_counter()
                    while time.perf_counter() - start < args.seconds or len(times["torch"]) < 5:
                        for side, call in sides.items():
                            times[side] += turn(call)
                    error = case.error()
                case.close()
                median = {side: statistics.median(t) for side, t in times.items()}
                row = {"pass": "decode", "type": name, "D": args.dim, "n": n, "Hk": args.heads, "G": group,
                       "threads": args.threads, "runs": len(times["ours"]), "max_error": error,
                       "us": {side: 1e6 * t for side, t in median.items()},
                       "gb_per_s": {side: case.bytes / t / 1e9 for side, t in median.items()},
                       "share_of_read": median["read"] / median["ours"], "ratio": median["torch"] / median["ours"]}
                rows.append(row)
                print(f"{name:4} G {group} n {n:5}  ours {row['us']['ours']:8.1f} us {row['gb_per_s']['ours']:6.1f} GB/s  "
                      f"{row['share_of_read']:.2f} of a plain read at {row['gb_per_s']['read']:.1f}  torch / ours "
                      f"{row['ratio']:.1f}", flush=True)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        commit = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        result = {"cpu": cpu_name(), "torch": torch.__version__, "commit": commit.stdout.strip(),
                  "command": "bench/peers/torch_decode.py", "rows": rows}
        partial = args.json.with_suffix(".partial")
        partial.write_text(json.dumps(result, indent=1) + "\n")
        partial.replace(args.json)


if __name__ == "__main__":
    main()
