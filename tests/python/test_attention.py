"""Values: every option against f64 with everything materialised."""

import levelhead
import naive
import numpy as np
import pytest

TOLERANCE = {np.float64: 1e-12, np.float32: 3e-6, np.float16: 2e-3}


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values_and_types(make, dtype):
    q, k, v = make(dtype=dtype)
    result = levelhead.attention(q, k, v)
    o, lse = naive.attention(q, k, v)
    assert result.o.dtype == dtype and result.o.shape == (2, 4, 9, 8)
    assert result.lse.dtype == (np.float64 if dtype is np.float64 else np.float32) and result.lse.shape == (2, 4, 9)
    np.testing.assert_allclose(result.o, o, rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(result.lse, lse, rtol=0, atol=min(TOLERANCE[dtype], 1e-5))
    assert result.statistics is None


def test_bf16_of_ml_dtypes(make, bfloat16):
    q, k, v = (x.astype(bfloat16) for x in make())
    result = levelhead.attention(q, k, v)
    assert result.o.dtype == bfloat16
    np.testing.assert_allclose(result.o.astype(np.float64), naive.attention(q, k, v)[0], rtol=0, atol=2e-2)
    o32 = levelhead.attention(*(x.astype(np.float32) for x in (q, k, v))).o
    np.testing.assert_allclose(result.o.astype(np.float32), o32, rtol=2**-7, atol=2**-9)


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({"scale": 0.5}, {"scale": 0.5}),
        ({"scale": np.float32(0.5)}, {"scale": 0.5}),
        ({"scale": np.array(0.5)}, {"scale": 0.5}),
        ({"scale": -1}, {"scale": -1}),
        ({"scale": "none"}, {"scale": 1}),
        ({"scale": "inv-sqrt-dim"}, {}),
        ({"scale": "inv-dim"}, {"scale": 1 / 16}),
        ({"scale": "inv-dim:64"}, {"scale": 8 / 16}),
        ({"scale": "log-keys:512"}, {"scale": np.log(13) / np.log(512) / 4}),
        ({"scale": "yarn:4"}, {"scale": (0.1 * np.log(4) + 1) ** 2 / 4}),
        ({"scale": "yarn:4,0.5"}, {"scale": (0.05 * np.log(4) + 1) ** 2 / 4}),
        ({"scale": "0.25"}, {"scale": 0.25}),
        ({"softcap": 2.0}, {"softcap": 2.0}),
        ({"softcap": 0}, {}),
        ({"causal": True, "align": "bottom-right"}, {"see": naive.visible(9, 13, right=0, offset=4)}),
        ({"causal": True, "align": "top-left"}, {"see": naive.visible(9, 13, right=0)}),
        ({"causal": True, "align": "bottom_right"}, {"see": naive.visible(9, 13, right=0, offset=4)}),
        ({"causal": True, "align": 2}, {"see": naive.visible(9, 13, right=0, offset=2)}),
        ({"causal": True, "align": np.int32(2)}, {"see": naive.visible(9, 13, right=0, offset=2)}),
        ({"window": (3, 1), "align": 2}, {"see": naive.visible(9, 13, left=3, right=1, offset=2)}),
        ({"window": (None, 1), "align": 2}, {"see": naive.visible(9, 13, right=1, offset=2)}),
        ({"window": [3, None], "align": 2}, {"see": naive.visible(9, 13, left=3, offset=2)}),
        ({"window": (3, 5), "causal": True, "align": 2}, {"see": naive.visible(9, 13, left=3, right=0, offset=2)}),
        ({"window": (None, None)}, {}),
        ({"threads": 1}, {}),
        ({"threads": 3}, {}),
        ({"kernel": "reference"}, {}),
    ],
)
def test_options(make, options, same):
    q, k, v = make()
    result = levelhead.attention(q, k, v, **options)
    o, lse = naive.attention(q, k, v, **same)
    np.testing.assert_allclose(result.o, o, rtol=0, atol=1e-5)
    np.testing.assert_allclose(result.lse, lse, rtol=1e-6, atol=1e-5)


def test_mask_bias_sinks(make, rng):
    q, k, v = make()
    mask = rng.random((9, 13)) < 0.6
    mask[:, 0] = True
    bias = rng.standard_normal((2, 1, 9, 13)).astype(np.float32)
    sinks = rng.standard_normal(4).astype(np.float32)
    result = levelhead.attention(q, k, v, mask=mask, bias=bias, sinks=sinks)
    o, lse = naive.attention(q, k, v, see=mask, bias=bias, sinks=sinks)
    np.testing.assert_allclose(result.o, o, rtol=0, atol=1e-5)
    np.testing.assert_allclose(result.lse, lse, rtol=0, atol=1e-5)


def test_alibi_slopes(make):
    q, k, v = make()
    slopes = np.array([0.5, 0.25, 0, -1], np.float32)
    distance = np.arange(13)[None, :] - np.arange(9)[:, None] - 4
    o, _ = naive.attention(q, k, v, bias=slopes[:, None, None] * distance)
    np.testing.assert_allclose(levelhead.attention(q, k, v, alibi_slopes=slopes, align="bottom-right").o, o, atol=1e-5)


@pytest.mark.parametrize("index", [np.int64, np.int32])
def test_lengths(make, index):
    q, k, v = make()
    k[0, :, 7:] = np.nan
    lengths = {"q_lengths": np.array([9, 4], index), "k_lengths": np.array([7, 13], index)}
    o, _, statistics, _ = levelhead.attention(q, k, v, **lengths, statistics=True)
    np.testing.assert_allclose(o[:1], naive.attention(q[:1], k[:1, :, :7], v[:1, :, :7])[0], atol=1e-5)
    np.testing.assert_allclose(o[1:, :, :4], naive.attention(q[1:, :, :4], k[1:], v[1:])[0], atol=1e-5)
    assert not o[1, :, 4:].any()
    for name, nothing in (("count", 0), ("entropy", 0), ("max", -np.inf), ("min", np.inf), ("top1", 0), ("saturated", False)):
        assert (statistics[name][1, :, 4:] == nothing).all(), name


def test_documents(make):
    q, k, v = make(B=1)
    o = levelhead.attention(q, k, v, q_offsets=np.array([0, 4, 9]), k_offsets=np.array([0, 3, 13])).o
    for rows, keys in ((slice(0, 4), slice(0, 3)), (slice(4, 9), slice(3, 13))):
        np.testing.assert_allclose(o[:, :, rows], naive.attention(q[:, :, rows], k[:, :, keys], v[:, :, keys])[0], atol=1e-5)


def test_scale_per_head_and_per_row(make, rng):
    q, k, v = make()
    per_head = rng.random(4).astype(np.float32)
    per_row = rng.random((2, 4, 9)).astype(np.float32)
    o, _ = naive.attention(q, k, v, scale=per_head[:, None, None])
    np.testing.assert_allclose(levelhead.attention(q, k, v, scale=per_head).o, o, atol=1e-5)
    o, _ = naive.attention(q, k, v, scale=per_row[..., None])
    np.testing.assert_allclose(levelhead.attention(q, k, v, scale=per_row).o, o, atol=1e-5)


def test_ssmax_and_qk_norm(make, rng):
    q, k, v = make()
    s = rng.random(4).astype(np.float32)
    o, _ = naive.attention(q, k, v, scale=s[:, None, None] * np.log(13) / 4)
    np.testing.assert_allclose(levelhead.attention(q, k, v, scale="ssmax", ssmax_s=s).o, o, atol=1e-5)

    def normalised(x):
        return x / np.sqrt((x.astype(np.float64) ** 2).sum(-1, keepdims=True) + 1e-6)

    o, _ = naive.attention(normalised(q), normalised(k), v, scale=4)
    np.testing.assert_allclose(levelhead.attention(q, k, v, qk_norm="l2").o, o, atol=1e-5)
    o, _ = naive.attention(normalised(q) * 4, normalised(k) * 4, v, scale=s[:, None, None] / 4)
    np.testing.assert_allclose(levelhead.attention(q, k, v, qk_norm="rms", qk_gain=s).o, o, atol=1e-5)


def test_rank_3_means_one_batch_item(make, rng):
    q, k, v = make(B=1)
    per_row = rng.random((4, 9)).astype(np.float32)
    whole = levelhead.attention(q, k, v, scale=per_row[None])
    flat = levelhead.attention(q[0], k[0], v[0], scale=per_row)
    assert flat.o.shape == (1, 4, 9, 8) and flat.lse.shape == (1, 4, 9)
    np.testing.assert_array_equal(flat.o, whole.o)


@pytest.mark.parametrize("sizes", [{"Nq": 0}, {"Nk": 0}, {"B": 0}, {"Dv": 0}, {"D": 0}, {"Hq": 0, "Hk": 0}])
def test_sizes_of_0(make, sizes):
    q, k, v = make(**sizes)
    result = levelhead.attention(q, k, v, statistics=True)
    assert result.o.shape == (*q.shape[:3], v.shape[3])
    assert np.isfinite(result.o).all()
    assert result.statistics.count.shape == q.shape[:3] and len(result.statistics.heads) == q.shape[1]
    if "Nk" in sizes:
        assert not result.o.any() and (result.lse == -np.inf).all()


def test_same_bits_for_any_threads_and_statistics(make):
    q, k, v = make(Nq=300, Nk=300)
    one = levelhead.attention(q, k, v, causal=True, threads=1)
    for options in ({"threads": 2}, {"threads": 3, "statistics": "all"}, {"threads": 2, "statistics": "entropy"}):
        other = levelhead.attention(q, k, v, causal=True, **options)
        np.testing.assert_array_equal(one.o, other.o)
        np.testing.assert_array_equal(one.lse, other.lse)


def test_result(make):
    q, k, v = make()
    result = levelhead.attention(q, k, v, threads=2)
    o, lse, statistics, info = result
    assert o is result.o and lse is result.lse and statistics is None and info is result.info
    assert info.kernel in [kernel["name"] for kernel in levelhead.kernels()] and info.reason
    assert info.threads == 2 and info.seconds > 0 and info.workspace_bytes >= 0
    assert info.flops == 2 * 4 * 9 * 13 * 2 * (16 + 8)
    assert levelhead.attention(q, k, v, kernel="reference").info.kernel == "reference"
