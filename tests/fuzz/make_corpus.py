#!/usr/bin/env python3
"""Writes the seeds of the fuzzers below tests/fuzz/corpus: python3 tests/fuzz/make_corpus.py

Files whose name starts with "found-" were found by a fuzzer; they stay as they are.
"""
import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"

VALID = ('{"__metadata__":{"format":"pt","scale":"0.125"},'
         '"one":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},'
         '"scalar":{"dtype":"I64","shape":[],"data_offsets":[29,37]},'
         '"flags":{"dtype":"BOOL","shape":[5],"data_offsets":[24,29]},'
         '"empty":{"dtype":"F64","shape":[0,7],"data_offsets":[29,29]}}')
DATA = bytes(i % 2 for i in range(37))

# Faults of other readers, as in tests/io/safetensors_faults_test.cpp: name, what stands there, what stands instead.
FAULTS = [
    ("name-twice", '"scalar"', '"flags"'),
    ("name-twice-by-escape", '"scalar"', '"fl\\u0061gs"'),
    ("name-for-a-terminal", "scalar", "\\u001b[2J\\u202ex"),
    ("lone-surrogate", "scalar", "\\ud800"),
    ("field-unknown", '"shape":[]', '"shape":[],"more":1'),
    ("metadata-number", '"0.125"', "0.125"),
    ("metadata-object", '"0.125"', "{}"),
    ("shape-text", "[2,3]", '"2,3"'),
    ("shape-float", "[2,3]", "[2,3.0]"),
    ("shape-negative", "[2,3]", "[-2,-3]"),
    ("shape-minus-zero", "[0,7]", "[-0,7]"),
    ("nine-dimensions", "[2,3]", "[2,3,1,1,1,1,1,1,1]"),
    ("shape-above-64-bits", "[2,3]", "[18446744073709551616]"),
    ("count-times-size-wraps", "[2,3]", "[4611686018427387910]"),
    ("product-wraps-beside-zero", "[0,7]", "[0,4294967296,4294967296]"),
    ("size-narrows-to-32-bits", "[2,3]", "[2,4294967299]"),
    ("offsets-backwards", "[0,24]", "[24,0]"),
    ("offsets-near-64-bits", "[29,37]", "[18446744073709551607,18446744073709551615]"),
    ("number-overflows-double", "[2,3]", "[2,1e999]"),
    ("deep", "[2,3]", "[" * 200),
    ("type-f16", '"F32","shape":[2,3]', '"F16","shape":[2,6]'),
    ("type-bf16", '"F32","shape":[2,3]', '"BF16","shape":[12]'),
    ("type-u8", '"F32","shape":[2,3]', '"U8","shape":[3,2,2,2]'),
    ("type-i32", '"F32","shape":[2,3]', '"I32","shape":[1,1,1,1,1,1,2,3]'),
]


def file_of(header, data, length=None):
    header = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def capture(metadata, layers=2, heads=(2, 1), tokens=(4, 4), dim=3, v=True, dtype="F32"):
    header, data = {"__metadata__": metadata}, b""
    width = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8}[dtype]
    for layer in range(layers):
        for part in "qkv" if v else "qk":
            shape = [heads[0] if part == "q" else heads[1], tokens[0] if part == "q" else tokens[1], dim]
            count = shape[0] * shape[1] * shape[2]
            begin = len(data)
            data += b"".join(struct.pack("<f", (i * 7 % 5) - 2)[-width:].rjust(width, b"\0") for i in range(count))
            header[f"layers.{layer}.{part}"] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
    return file_of(json.dumps(header, separators=(",", ":")), data)


def captures():
    plain = {"scale": "0.5", "causal": "false"}
    yield "plain", capture(plain)
    yield "causal", capture({"scale": "0.5", "causal": "true", "model": "a\u202eb", "d_model": "12"})
    yield "tokens", capture({"scale": "1e-3", "causal": "False", "tokens": '["a","\\u001b[2J","\u2192",""]'})
    yield "of-a-larger-model", capture({"scale": "1", "causal": "true", "layers_of_model": "30", "yarn_mscale": "1.3"})
    yield "more-keys", capture({"scale": "-1", "causal": "true"}, tokens=(2, 5))
    yield "without-v", capture(plain, v=False)
    yield "f16", capture(plain, dtype="F16")
    yield "bf16", capture(plain, dtype="BF16")
    yield "many-heads", capture(plain, layers=1, heads=(18, 2), tokens=(2, 17), dim=1)
    yield "no-tokens", capture(plain, tokens=(0, 0))
    yield "no-heads", capture(plain, heads=(0, 0))
    yield "dim-0", capture(plain, dim=0)
    yield "scale-missing", capture({"causal": "true"})
    yield "scale-inf", capture({"scale": "inf", "causal": "true"})
    yield "causal-wrong", capture({"scale": "1", "causal": "yes"})
    yield "tokens-wrong", capture({**plain, "tokens": '["a",1]'})
    yield "name-padded", capture(plain).replace(b"layers.1.", b"layers.01")
    yield "part-unknown", capture(plain).replace(b"layers.1.v", b"layers.1.o")


ATTEND = {
    "plain": "\nq F32 1,2,3,4 ~1\nk F32 1,1,3,4 ~2\nv F32 1,1,3,2 ~3",
    "rank-3": "--stats\nq F32 2,3,4 ~1\nk F32 2,3,4 ~2\nv F32 2,3,5 ~3",
    "f64-all-gradients": "--stats --exact\nq F64 1,2,3,4 ~1\nk F64 1,2,5,4 ~2\nv F64 1,2,5,3 ~3\n"
                         "dout F64 1,2,3,3 ~4\ndlse F64 1,2,3 ~5\ndentropy F64 1,2,3 ~6\nsinks F64 2 0.5",
    "bf16-causal": "--causal --align bottom-right --stats\nq BF16 1,2,3,4 ~1\nk BF16 1,1,5,4 ~2\nv BF16 1,1,5,4 ~3",
    "f16-window": "--window 1,inf --align top-left\nq F16 1,1,4,2 ~1\nk F16 1,1,6,2 ~2\nv F16 1,1,6,2 ~3",
    "offset": "--causal --align -3\nq F32 1,1,4,2 ~1\nk F32 1,1,4,2 ~2\nv F32 1,1,4,2 ~3\ndout F32 1,1,4,2 ~4",
    "far-offset": "--window 9223372036854775807,0 --align -9223372036854775808\n"
                  "q F32 1,1,4,2 ~1\nk F32 1,1,4,2 ~2\nv F32 1,1,4,2 ~3\nalibi_slopes F32 1 0.5",
    "mask": "--stats\nq F32 1,2,3,4 ~1\nk F32 1,2,3,4 ~2\nv F32 1,2,3,4 ~3\nmask BOOL 3,3 1 0 0 1\nbias F32 1,1,1,3 -inf 0 1",
    "mask-hides-all": "--stats\nq F32 1,1,3,4 ~1\nk F32 1,1,3,4 ~2\nv F32 1,1,3,4 ~3\nmask BOOL 3,3 0\n"
                      "dout F32 1,1,3,4 ~4\nsinks F32 1 0.5",
    "lengths": "--causal --align bottom-right\nq F32 2,1,3,4 ~1\nk F32 2,1,5,4 ~2\nv F32 2,1,5,4 ~3\n"
               "q_lengths I64 2 2 3\nk_lengths I32 2 0 5\ndout F32 2,1,3,4 ~4",
    "documents": "--causal --stats\nq F32 1,1,6,4 ~1\nk F32 1,1,6,4 ~2\nv F32 1,1,6,4 ~3\n"
                 "q_offsets I32 3 0 2 6\nk_offsets I64 3 0 2 6\nalibi_slopes F32 1 -0.5",
    "scale-per-head": "--stats\nq F32 1,2,3,4 ~1\nk F32 1,2,3,4 ~2\nv F32 1,2,3,4 ~3\nscale F32 2 0.1 2\ndout F32 1,2,3,4 ~4",
    "scale-per-row": "\nq F32 2,3,4 ~1\nk F32 2,3,4 ~2\nv F32 2,3,4 ~3\nscale F32 2,3 0.5 -1\ndout F32 2,3,4 ~4",
    "ssmax": "--scale ssmax\nq F32 1,2,3,4 ~1\nk F32 1,2,3,4 ~2\nv F32 1,2,3,4 ~3\nssmax_s F32 2 0.4\ndlse F32 1,2,3 ~4",
    "yarn": "--scale yarn:4,1.5\nq F32 1,1,3,4 ~1\nk F32 1,1,3,4 ~2\nv F32 1,1,3,4 ~3",
    "log-keys": "--scale log-keys:512 --causal\nq F32 1,1,3,4 ~1\nk F32 1,1,3,4 ~2\nv F32 1,1,3,4 ~3\ndout F32 1,1,3,4 ~4",
    "inv-dim": "--scale inv-dim:64 --kernel reference\nq F32 1,1,3,4 ~1\nk F32 1,1,3,4 ~2\nv F32 1,1,3,4 ~3",
    "scale-number": "--scale -0.25 --softcap 2\nq F32 1,1,3,4 ~1\nk F32 1,1,3,4 ~2\nv F32 1,1,3,4 ~3\ndout F32 1,1,3,4 ~4",
    "qk-norm": "--qk-norm rms --stats\nq F32 1,2,3,4 ~1\nk F32 1,2,3,4 ~2\nv F32 1,2,3,4 ~3\nqk_gain F32 2 1.5\ndout F32 1,2,3,4 ~4",
    "nan-and-inf": "--stats\nq F32 1,1,3,2 1 nan\nk F32 1,1,3,2 inf 1\nv F32 1,1,3,2 -inf nan 1\ndout F32 1,1,3,2 1",
    "overflow": "--stats --softcap 1e-300\nq F32 1,1,2,2 3e38\nk F32 1,1,2,2 3e38 -3e38\nv F32 1,1,2,2 3e38\ndout F32 1,1,2,2 1",
    "no-queries": "--stats\nq F32 1,1,0,4\nk F32 1,1,3,4 ~2\nv F32 1,1,3,4 ~3\ndout F32 1,1,0,4",
    "no-keys": "--stats\nq F32 1,1,3,4 ~1\nk F32 1,1,0,4\nv F32 1,1,0,4\ndout F32 1,1,3,4 ~4",
    "dim-0": "--stats\nq F32 1,1,3,0\nk F32 1,1,3,0\nv F32 1,1,3,0\ndout F32 1,1,3,0",
    "no-batch": "--stats\nq F32 0,1,3,4\nk F32 0,1,3,4\nv F32 0,1,3,4",
    "wrong-options": "--scale  --causal=maybe --threads 0 --align left --window 1 --kernel x --more\nq F32 1 0",
    "threads": "--threads 2 --json --causal true\nq F32 1,2,9,4 ~1\nk F32 1,2,9,4 ~2\nv F32 1,2,9,4 ~3",
    "wrong-types": "\nq F32 1,1,3,4 ~1\nk F64 1,1,3,4 ~2\nv I32 1,1,3,4 3\nmask U8 3,3 1\nq_lengths F32 1 3",
    "wrong-names": "\nQ F32 1 0\nq F32 5,1,1,1,3,4 ~1\n\"\\ F32 -1 0\nk BOOL 3 2",
}


def write(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def main():
    write("safetensors", "valid", file_of(VALID, DATA))
    for name, old, new in FAULTS:
        assert VALID.count(old) == 1, name
        write("safetensors", name, file_of(VALID.replace(old, new), DATA))
    write("safetensors", "empty", b"")
    write("safetensors", "no-tensors", file_of("{}", b""))
    write("safetensors", "length-of-64-bits", file_of(VALID, DATA, 2**64 - 8))
    write("safetensors", "utf8-surrogate", file_of(VALID.encode().replace(b"scalar", b"\xed\xa0\x80"), DATA))
    write("safetensors", "zero-in-header", file_of(VALID.encode().replace(b"scalar", b"sca\0ar"), DATA))
    write("safetensors", "flag-of-2", file_of(VALID, DATA[:24] + b"\2" + DATA[25:]))
    write("safetensors", "data-cut-off", file_of(VALID, DATA[:-1]))
    for name, content in captures():
        write("capture", name, content)
    for name, text in ATTEND.items():
        write("attend", name, text.encode())


if __name__ == "__main__":
    main()
