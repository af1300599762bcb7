"""Statistics of rows and heads: names, values, levels."""

import json
import subprocess

import levelhead
import naive
import numpy as np
import pytest

ALL = [
    "count",
    "mean",
    "variance",
    "max",
    "min",
    "absmax",
    "absmax_uncapped",
    "lse",
    "entropy",
    "entropy_sink",
    "effective_keys",
    "perplexity",
    "top1",
    "trace_gain",
    "frobenius_gain",
    "first_key_mass",
    "sink_mass",
    "saturated",
]
LEVELS = {
    "lse_max": ["count", "max", "lse"],
    "entropy": ["count", "max", "lse", "entropy", "entropy_sink", "perplexity", "top1", "sink_mass", "saturated"],
    "all": ALL,
}


@pytest.mark.parametrize("level", [*LEVELS, True])
def test_names_of_each_level(make, level):
    statistics = levelhead.attention(*make(), statistics=level).statistics
    names = ALL if level is True else LEVELS[level]
    assert list(statistics) == names and len(statistics) == len(names)
    assert set(names) <= set(dir(statistics))
    for name in names:
        assert statistics[name] is getattr(statistics, name)
        assert statistics[name].shape == (2, 4, 9)
        assert statistics[name].dtype == {"count": np.int64, "saturated": np.bool_}.get(name, np.float32)
    assert repr(statistics) == f"Statistics({', '.join(names)})"


def test_what_is_not_measured_is_not_there(make):
    statistics = levelhead.attention(*make(), statistics="lse_max").statistics
    assert "entropy" not in statistics
    with pytest.raises(AttributeError, match="^there is no statistic 'entropy' here, only count, max, lse and heads$"):
        _ = statistics.entropy
    with pytest.raises(KeyError):
        _ = statistics["entropy"]
    assert "entropy" not in statistics.heads[0] and "lse" in statistics.heads[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(make, dtype):
    q, k, v = make(dtype=dtype)
    see = naive.visible(9, 13, right=0, offset=4)
    result = levelhead.attention(q, k, v, causal=True, align=4, statistics=True)
    wanted = naive.statistics(naive.logits_of(q, k, see=see))
    assert list(wanted) == ALL
    tolerance = 1e-11 if dtype is np.float64 else 1e-4
    for name, x in wanted.items():
        np.testing.assert_allclose(result.statistics[name], x, rtol=tolerance, atol=tolerance, err_msg=name)
    assert result.statistics.entropy.dtype == dtype
    np.testing.assert_array_equal(result.statistics.lse, result.lse)


def test_sinks(make, rng):
    q, k, v = make()
    sinks = rng.standard_normal(4).astype(np.float32)
    statistics = levelhead.attention(q, k, v, sinks=sinks, statistics=True).statistics
    lse = naive.attention(q, k, v, sinks=sinks)[1]
    np.testing.assert_allclose(statistics.sink_mass, np.exp(sinks[None, :, None] - lse), atol=1e-6)
    assert (statistics.entropy_sink != statistics.entropy).all()


def test_empty_rows(make):
    q, k, v = make()
    statistics = levelhead.attention(q, k, v, mask=np.zeros((1, 13), bool), statistics=True).statistics
    assert not statistics.count.any() and not statistics.entropy.any() and np.isnan(statistics.mean).all()
    assert (statistics.max == -np.inf).all() and (statistics.min == np.inf).all()
    assert statistics.heads[0]["empty_rows"] == statistics.heads[0]["rows"] == 18
    assert statistics.heads[0]["flags"] == ["empty"]


def test_exact(make, bfloat16):
    inputs = [x.astype(bfloat16) for x in make(Nq=64, Nk=200)]
    wanted = naive.statistics(naive.logits_of(inputs[0], inputs[1]))
    exact = levelhead.attention(*inputs, statistics=True, exact=True).statistics
    np.testing.assert_allclose(exact.entropy, wanted["entropy"], rtol=1e-5, atol=1e-4)
    fast = levelhead.attention(*inputs, statistics=True).statistics
    np.testing.assert_allclose(fast.entropy, wanted["entropy"], rtol=2e-3, atol=2e-3)


def test_heads_are_the_commands(make, tmp_path, command):
    q, k, v = make(Nq=20, Nk=20)
    write_safetensors(tmp_path / "in.safetensors", {"q": q, "k": k, "v": v})
    ran = subprocess.run(
        [command, "attend", "--input", tmp_path / "in.safetensors", "--output", tmp_path / "out.safetensors"]
        + ["--causal", "--stats", "--json"],
        check=True,
        capture_output=True,
    )
    said = json.loads(ran.stdout)
    result = levelhead.attention(q, k, v, causal=True, statistics=True)
    assert result.statistics.heads == said["heads"]
    assert result.info.kernel == said["kernel"] and result.info.flops == said["flops"]


def write_safetensors(path, arrays):
    header, data = {}, b""
    for name, x in arrays.items():
        raw = x.tobytes()
        header[name] = {"dtype": "F32", "shape": x.shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
