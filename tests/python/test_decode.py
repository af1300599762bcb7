"""decode and KvCache: a row decoded is the row of attention over all that came before."""

import re
import threading

import levelhead
import naive
import numpy as np
import pytest

NAMES = {"f64": np.float64, "f32": np.float32, "f16": np.float16}


def steps(q, k, v, cache, sizes, **options):
    """o and lse of every step, one after another."""
    at, results = 0, []
    for n in sizes:
        part = slice(at, at + n)
        results.append(levelhead.decode(cache, q[:, :, part], k[:, :, part], v[:, :, part], **options))
        at += n
    return np.concatenate([r.o for r in results], 2), np.concatenate([r.lse for r in results], 2), results


@pytest.mark.parametrize("layout", ["row-major", "token-major"])
@pytest.mark.parametrize("dtype", NAMES)
def test_steps_are_rows_of_causal_attention(make, dtype, layout):
    q, k, v = make(Nq=20, Nk=20, dtype=NAMES[dtype])
    cache = levelhead.KvCache(2, 2, 24, 16, 8, dtype=dtype, layout=layout)
    assert cache.k.shape == (2, 2, 24, 16) and cache.v.shape == (2, 2, 24, 8) and cache.capacity == 24
    assert cache.k.dtype == NAMES[dtype] and cache.lengths == [0, 0]
    assert cache.k.strides[2] > cache.k.strides[1] if layout == "token-major" else cache.k.flags.c_contiguous
    o, lse, _ = steps(q, k, v, cache, (1, 3, 16))
    wanted, wanted_lse = naive.attention(q, k, v, see=naive.visible(20, 20, right=0))
    tolerance = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-3}[dtype]
    np.testing.assert_allclose(o, wanted, rtol=0, atol=tolerance)
    np.testing.assert_allclose(lse, wanted_lse, rtol=0, atol=max(1e-5, tolerance) if dtype != "f64" else 1e-12)
    assert o.dtype == NAMES[dtype] and cache.lengths == [20, 20]
    np.testing.assert_array_equal(cache.k[:, :, :20], k)
    np.testing.assert_array_equal(cache.v[:, :, :20], v)


def test_options_and_statistics(make, rng):
    q, k, v = make(Nq=12, Nk=12)
    sinks = rng.standard_normal(4).astype(np.float32)
    cache = levelhead.KvCache(2, 2, 12, 16, 8)
    cache.append(k[:, :, :9], v[:, :, :9])
    part = slice(9, 12)
    options = {"scale": 0.5, "window": (4, None), "sinks": sinks, "softcap": 3.0}
    result = levelhead.decode(cache, q[:, :, part], k[:, :, part], v[:, :, part], **options, statistics=True)
    see = naive.visible(3, 12, left=4, right=0, offset=9)
    o, lse = naive.attention(q[:, :, part], k, v, scale=0.5, softcap=3.0, see=see, sinks=sinks)
    np.testing.assert_allclose(result.o, o, atol=1e-5)
    np.testing.assert_allclose(result.lse, lse, atol=1e-5)
    wanted = naive.statistics(naive.logits_of(q[:, :, part], k, scale=0.5, softcap=3.0, see=see))
    for name in ("count", "entropy", "top1", "max"):
        np.testing.assert_allclose(result.statistics[name], wanted[name], atol=1e-4, err_msg=name)
    whole = levelhead.attention(q[:, :, part], k, v, align="bottom-right", **options | {"window": (4, 0)}, statistics=True)
    for name, x in whole.statistics.heads[1].items():
        assert result.statistics.heads[1][name] == pytest.approx(x, rel=1e-5, abs=1e-6) if name != "flags" else True
    assert result.info.kernel and result.info.seconds > 0


def test_a_right_bound_lets_new_tokens_see_each_other(make):
    q, k, v = make(Nq=5, Nk=5)
    cache = levelhead.KvCache(2, 2, 5, 16, 8)
    o = levelhead.decode(cache, q, k, v, window=(None, 15)).o
    np.testing.assert_allclose(o, naive.attention(q, k, v)[0], atol=1e-5)


def test_counts_and_lengths_of_each_batch_item(make):
    q, k, v = make(Nq=4, Nk=4)
    cache = levelhead.KvCache(2, 2, 8, 16, 8)
    cache.append(k, v, counts=np.array([4, 1]))
    assert cache.lengths == [4, 1]
    cache.k[1, :, 1:] = np.nan
    o = levelhead.decode(cache, q, k, v, counts=np.array([2, 4], np.int32)).o
    assert cache.lengths == [6, 5]
    both = np.concatenate([k[:1], k[:1, :, :2]], 2), np.concatenate([v[:1], v[:1, :, :2]], 2)
    wanted = naive.attention(q[:1, :, :2], *both, see=naive.visible(2, 6, right=0, offset=4))[0]
    np.testing.assert_allclose(o[:1, :, :2], wanted, atol=1e-5)
    assert not o[0, :, 2:].any() and np.isfinite(o).all()


def test_over_the_callers_memory(make):
    q, k, v = make(Nq=1, Nk=9)
    room = np.zeros((2, 9, 2, 24), np.float32).transpose(0, 2, 1, 3)  # keys and values of a token side by side
    mine = room[..., :16], room[..., 16:]
    mine[0][:, :, :8], mine[1][:, :, :8] = k[:, :, :8], v[:, :, :8]
    cache = levelhead.KvCache.over(*mine, lengths=[8, 8])
    assert cache.k is mine[0] and cache.v is mine[1]
    o = levelhead.decode(cache, q, k[:, :, 8:], v[:, :, 8:]).o
    np.testing.assert_allclose(o, naive.attention(q, k, v)[0], atol=1e-5)
    np.testing.assert_array_equal(room[:, :, 8, :16], k[:, :, 8])


def test_truncate_and_clear(make):
    _, k, v = make()
    cache = levelhead.KvCache(2, 2, 13, 16, 8)
    cache.append(k, v)
    cache.truncate(1, 3)
    assert cache.lengths == [13, 3]
    cache.clear()
    assert cache.lengths == [0, 0]
    assert repr(cache) == "KvCache(k [2, 2, 13, 16], v [2, 2, 13, 8], float32, lengths [0, 0])"


def test_bf16_of_ml_dtypes(make, bfloat16):
    q, k, v = (x.astype(bfloat16) for x in make(Nq=6, Nk=6))
    for dtype in ("bf16", bfloat16):
        cache = levelhead.KvCache(2, 2, 6, 16, 8, dtype=dtype)
        o, _, _ = steps(q, k, v, cache, (6,))
        assert o.dtype == bfloat16 and cache.k.dtype == bfloat16
        np.testing.assert_array_equal(cache.k.view(np.uint16), k.view(np.uint16))
        wanted = naive.attention(q, k, v, see=naive.visible(6, 6, right=0))[0]
        np.testing.assert_allclose(o.astype(np.float64), wanted, rtol=0, atol=2e-2)
    over = levelhead.KvCache.over(k.copy(), v.copy(), [5, 5])
    assert levelhead.decode(over, q[:, :, :1], k[:, :, 5:], v[:, :, 5:]).o.dtype == bfloat16


def test_torch(make, torch):
    q, k, v = (torch.from_numpy(x).bfloat16() for x in make(Nq=3, Nk=3))
    cache = levelhead.KvCache(2, 2, 8, 16, 8, dtype=torch.bfloat16, layout="token-major")
    assert isinstance(cache.k, torch.Tensor) and cache.k.dtype == torch.bfloat16
    o = levelhead.decode(cache, q, k, v).o
    assert isinstance(o, torch.Tensor) and o.dtype == torch.bfloat16 and torch.equal(cache.k[:, :, :3], k)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(x.double() for x in (q, k, v)), is_causal=True, enable_gqa=True
    )
    assert (o.double() - wanted).abs().max() < 2e-2


def test_one_cache_in_several_threads(make):
    q, k, v = make(Nq=1, Nk=1)
    cache = levelhead.KvCache(2, 2, 200, 16, 8)
    workers = [threading.Thread(target=lambda: [levelhead.decode(cache, q, k, v) for _ in range(50)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert cache.lengths == [200, 200]
    np.testing.assert_array_equal(cache.k, np.broadcast_to(k, cache.k.shape))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda c, q, k, v: levelhead.decode(None, q, k, v), TypeError, "cache is of type NoneType but must be a levelhead.KvCache"),
        (lambda c, q, k, v: levelhead.decode(c, q, None, v), TypeError, "k is None but must be an array"),
        (lambda c, q, k, v: levelhead.decode(c, q[0, 0], k, v), ValueError, "q [1, 16] has rank 2 but must have 4: [B, Hq, new tokens, D]"),
        (lambda c, q, k, v: [levelhead.decode(c, q, k, v) for _ in range(5)], ValueError, "the cache of batch item 0 holds 4 of 4 tokens; 1 more doesn't fit"),
        (lambda c, q, k, v: c.truncate(2, 0), ValueError, "the cache has no batch item 2: B = 2"),
        (lambda c, q, k, v: levelhead.KvCache(1, 1, 1, 1, dtype="f2x"), TypeError, None),
        (lambda c, q, k, v: levelhead.KvCache(1, 1, -1, 1), ValueError, f"capacity is -1 but must lie between 0 and {2**60}"),
        (lambda c, q, k, v: levelhead.KvCache(1, 1, 1, 1, dtype=np.int32), ValueError, "dtype is int32 but must be f64, f32, bf16 or f16"),
        (lambda c, q, k, v: levelhead.KvCache(1, 1, 1, 1, layout="tiled"), ValueError, "layout is 'tiled' but must be 'row-major' or 'token-major'"),
        (lambda c, q, k, v: levelhead.KvCache.over([1], v), TypeError, None),
        (
            lambda c, q, k, v: levelhead.KvCache.over(np.broadcast_to(k, k.shape), v),
            ValueError,
            "k of the cache can't be written: neither DLPack nor the buffer protocol hands out its elements for writing",
        ),
        (lambda c, q, k, v: levelhead.KvCache.over(k, v, [0, 2]), ValueError, "batch item 1 of the cache has length 2 but room for 1 tokens"),
    ],
)
def test_errors(make, call, error, sentence):
    q, k, v = make(Nq=1, Nk=1)
    cache = levelhead.KvCache(2, 2, 4, 16, 8)
    with pytest.raises(error, match=None if sentence is None else f"^{re.escape(sentence)}$"):
        call(cache, q, k, v)


def test_a_refused_step_changes_nothing(make):
    q, k, v = make(Nq=2, Nk=2)
    cache = levelhead.KvCache(2, 2, 4, 16, 8)
    cache.k[:] = 7
    with pytest.raises(ValueError, match="^the constant scale is nan but must be finite$"):
        levelhead.decode(cache, q, k, v, scale=float("nan"))
    assert cache.lengths == [0, 0] and (cache.k == 7).all()
