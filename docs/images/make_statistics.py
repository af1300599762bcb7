#!/usr/bin/env python3
"""Draws docs/images/statistics.svg: python3 docs/images/make_statistics.py [COMMAND]

What `levelhead attend --stats` (COMMAND, build/release/bin/levelhead if absent) says about rows of 1024 Gaussian logits
whose spread grows from 0.1 to 30: means over 64 rows for each spread. q is 1, a head's k are unit normals, and the scale
of a row is its spread.
"""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEYS, ROWS, POINTS, LOW, HIGH = 1024, 64, 61, 0.1, 30.0
SPREADS = [LOW * (HIGH / LOW) ** (i / (POINTS - 1)) for i in range(POINTS)]
PANELS = [
    ("How many keys share the weight",
     [("entropy / ln n", "entropy", math.log(KEYS), "#2f7fc1"),
      ("perplexity / n", "perplexity", KEYS, "#c4622d"),
      ("effective_keys / n", "effective_keys", KEYS, "#3b9b61")]),
    ("How sharp the row is",
     [("top1", "top1", 1, "#2f7fc1"),
      ("saturated", "saturated", 1, "#c4622d"),
      ("trace_gain", "trace_gain", 1, "#3b9b61"),
      ("frobenius_gain", "frobenius_gain", 1, "#9a6fb8")]),
]


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}d", *values)
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    for name, entry in json.loads(content[8:8 + length]).items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        letter = {"F64": "d", "I64": "q", "BOOL": "?"}[entry["dtype"]]
        yield name, struct.unpack(f"<{(end - begin) // struct.calcsize(letter)}{letter}", content[begin:end])


def measure(command):
    numbers = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        given, got = pathlib.Path(folder, "in"), pathlib.Path(folder, "out")
        keys = [numbers.gauss(0, 1) for _ in range(ROWS * KEYS)]
        write_safetensors(given, {
            "q": ([ROWS, POINTS, 1], [1.0] * (ROWS * POINTS)),
            "k": ([ROWS, KEYS, 1], keys),
            "v": ([ROWS, KEYS, 0], []),
            "scale": ([ROWS, POINTS], SPREADS * ROWS),
        })
        subprocess.run([command, "attend", "--stats", "--input", given, "--output", got], check=True,
                       stdout=subprocess.DEVNULL)
        rows = {name.removeprefix("stats."): values for name, values in read_safetensors(got)}
    return {name: [sum(values[i::POINTS]) / ROWS for i in range(POINTS)] for name, values in rows.items() if values}


def panel(title, lines, means, left):
    top, width, height = 52, 330, 220
    x = lambda share: left + share * width
    y = lambda value: top + (1 - value) * height
    at = lambda spread: math.log(spread / LOW) / math.log(HIGH / LOW)
    out = [f'<text x="{left}" y="20" class="title">{title}</text>']
    for value in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<path class="grid" d="M{left} {y(value):.1f}h{width}"/>'
                   f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for spread in (0.1, 0.3, 1, 3, 10, 30):
        out.append(f'<text x="{x(at(spread)):.1f}" y="{top + height + 18}" text-anchor="middle">{spread:g}</text>')
    frozen = math.sqrt(2 * math.log(KEYS))
    out.append(f'<path class="mark" d="M{x(at(frozen)):.1f} {top}v{height}"/>'
               f'<text x="{x(at(frozen)) + 4:.1f}" y="{top + 12}">z = 1</text>')
    for n, (label, name, unit, colour) in enumerate(lines):
        points = " ".join(f"{x(at(s)):.1f},{y(m / unit):.1f}" for s, m in zip(SPREADS, means[name]))
        out.append(f'<polyline stroke="{colour}" points="{points}"/>'
                   f'<text x="{left + n * width / len(lines):.1f}" y="39" fill="{colour}" class="label">{label}</text>')
    return "\n".join(out)


def main():
    means = measure(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/bin/levelhead")
    panels = "\n".join(panel(title, lines, means, 40 + 400 * n) for n, (title, lines) in enumerate(PANELS))
    (ROOT / "docs/images/statistics.svg").write_text(f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 790 318" \
font-family="sans-serif" font-size="12">
<title>Statistics of rows of {KEYS} Gaussian logits against their spread</title>
<style>text{{fill:#333}}.title{{font-size:14px}}.label{{font-weight:bold}}.grid{{stroke:#8884;fill:none}}
.mark{{stroke:#888;stroke-dasharray:4 3}}polyline{{fill:none;stroke-width:2}}
@media(prefers-color-scheme:dark){{text:not(.label){{fill:#ccc}}}}
{chr(10).join(f'.label[fill="{c}"]{{fill:{c}}}' for c in sorted({line[3] for _, lines in PANELS for line in lines}))}</style>
{panels}
<text x="400" y="310" text-anchor="middle">standard deviation of the logits</text>
</svg>
""")


if __name__ == "__main__":
    main()
