"""check: what the command says, as plain objects."""

import json
import subprocess
import warnings

import levelhead
import numpy as np
import pytest

CAPTURES = ["minilm-l6-qkv.safetensors", "smollm2-135m-qkv.safetensors"]


@pytest.fixture
def capture(root):
    return lambda name: root / "data" / name


def read_safetensors(path):
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    metadata = header.pop("__metadata__")
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}[entry["dtype"]]
        arrays[name] = (entry["dtype"], np.frombuffer(raw[begin:end], dtype).reshape(entry["shape"]))
    return arrays, metadata


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, []),
        ({"scale": 1}, ["--scale", "1"]),
        ({"causal": False}, ["--causal=false"]),
        ({"fresh": True, "threads": 1}, ["--fresh"]),
        ({"layer": 3, "head": 2}, ["--layer", "3", "--head", "2"]),
    ],
)
def test_is_what_the_command_says(capture, command, name, options, arguments):
    ran = subprocess.run([command, "check", capture(name), "--json", "-", *arguments], check=True, capture_output=True)
    assert levelhead.check(capture(name), **options) == json.loads(ran.stdout)


def test_names(capture):
    judged = levelhead.check(str(capture(CAPTURES[1])))
    assert list(judged) == ["file", "model", "scale", "scale_is", "verdict", "kernel", "layers"]
    assert judged["verdict"]["name"] == "level" and judged["verdict"]["limits"] == [0.48, 0.9]
    assert abs(judged["verdict"]["h75"] - 0.621) < 5e-4
    head = judged["layers"][0]["heads"][0]
    assert head["head"] == 0 and head["rows"] == 128 and isinstance(head["flags"], list)


def as_array(kind, x, bfloat16):
    return x.view(bfloat16) if kind == "BF16" else x


def test_arrays_are_judged_like_their_file(capture, bfloat16):
    path = capture(CAPTURES[1])
    arrays, metadata = read_safetensors(path)
    of_file = levelhead.check(path)
    named = {name: as_array(*pair, bfloat16) for name, pair in arrays.items()}
    said = {"model": metadata["model"], "layers_of_model": int(metadata["layers_of_model"])}
    if "d_model" in metadata:
        said["d_model"] = int(metadata["d_model"])
    judged = levelhead.check(named, scale=float(metadata["scale"]), causal=metadata["causal"].lower() == "true", **said)
    assert judged.pop("file") is None
    of_file.pop("file")
    assert judged == of_file
    layers = {int(name.split(".")[1]) for name in named}
    pairs = {n: [named[f"layers.{n}.q"], named[f"layers.{n}.k"][::-1].copy()[::-1]] for n in layers}
    assert levelhead.check(pairs, scale=float(metadata["scale"]), causal=True)["layers"] == of_file["layers"]


def test_torch_layers(torch, rng):
    q = rng.standard_normal((4, 32, 16)).astype(np.float32)
    judged = levelhead.check({0: (torch.from_numpy(q), torch.from_numpy(q), None)}, scale=0.25, causal=True)
    assert judged == levelhead.check({0: (q, q)}, scale=0.25, causal=True)


def test_other_tensors_are_said(rng):
    q = rng.standard_normal((2, 8, 4)).astype(np.float32)
    with pytest.warns(UserWarning, match=r"^1 tensor is no layers\.N\.q, \.k or \.v and left alone: q$"):
        levelhead.check({"layers.0.q": q, "layers.0.k": q, "q": q}, scale=1, causal=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        levelhead.check({0: (q, q)}, scale=1, causal=False)


def test_nan_is_none(rng):
    q = rng.standard_normal((2, 8, 4)).astype(np.float32)
    q[0, 3] = np.nan
    judged = levelhead.check({0: (q, q)}, scale=1, causal=True)
    assert judged["verdict"]["name"] == "broken"
    assert judged["layers"][0]["heads"][0]["entropy"] is None and judged["layers"][0]["heads"][1]["entropy"] > 0


@pytest.mark.parametrize(
    ("layers", "options", "error", "sentence"),
    [
        ({}, {}, ValueError, "the arrays: no tensor layers.N.q is there, so there is nothing to judge"),
        ({0: "qk"}, {}, ValueError, "the arrays: metadata scale is missing: give scale=X, and causal=True or causal=False"),
        ({0: "qk"}, {"scale": 1}, ValueError, "the arrays: metadata causal is missing: give causal=True or causal=False"),
        (
            {0: "qshort"},
            {"scale": 1, "causal": True},
            ValueError,
            "the arrays: layers.0 has 8 queries and 5 keys, so causal needs align='top-left', align='bottom-right' or align=OFFSET",
        ),
        ({0: "q"}, {}, TypeError, "layer 0 is of type tuple but layers are given as {layer: (q, k)}, {layer: (q, k, v)} or {'layers.N.q': array, ...}"),
        ({-1: "qk"}, {}, ValueError, "a layer is -1 but must be >= 0"),
        ({0: "qk"}, {"scale": "1"}, TypeError, "scale is of type str but must be a number"),
        ({0: "qk"}, {"scale": 1, "causal": True, "layer": 7}, ValueError, "the arrays: there is no layer 7, only 0"),
        ({0: "qk"}, {"scale": 1, "causal": True, "align": "top"}, ValueError, "align is 'top' but must be top-left, bottom-right or a whole number"),
    ],
)
def test_wrong_use(layers, options, error, sentence):
    known = {"q": np.zeros((2, 8, 4), np.float32), "k": np.zeros((2, 8, 4), np.float32), "s": np.zeros((2, 5, 4), np.float32)}
    given = {number: tuple(known[part] for part in parts.replace("short", "s")) for number, parts in layers.items()}
    with pytest.raises(error) as raised:
        levelhead.check(given, **options)
    assert str(raised.value) == sentence


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        levelhead.check(tmp_path / "nothing.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"12345")
    with pytest.raises(ValueError, match="broken.safetensors"):
        levelhead.check(tmp_path / "broken.safetensors")
    with pytest.raises(TypeError, match="^capture is of type list but must be a path or layers as "):
        levelhead.check([tmp_path])
    with pytest.raises(ValueError, match="^model is given with a file, whose metadata says it$"):
        levelhead.check(tmp_path / "broken.safetensors", model="mine")
