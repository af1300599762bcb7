"""Attention in f64 with everything materialised: what the package is compared with."""

import numpy as np


def visible(nq, nk, *, left=None, right=None, offset=0):
    """[nq, nk]: -left <= j - (i + offset) <= right."""
    distance = np.arange(nk)[None, :] - (np.arange(nq)[:, None] + offset)
    see = np.ones((nq, nk), bool)
    if left is not None:
        see &= distance >= -left
    if right is not None:
        see &= distance <= right
    return see


def logits_of(q, k, *, scale=None, see=True, softcap=0.0, bias=0.0):
    """[B, Hq, Nq, Nk], -inf where hidden."""
    q, k = (np.asarray(x, np.float64) for x in (q, k))
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    scaled = (q.shape[-1] ** -0.5 if scale is None else scale) * (q @ k.swapaxes(-1, -2))
    if softcap:
        scaled = softcap * np.tanh(scaled / softcap)
    return np.where(see, scaled + bias, -np.inf)


def attention(q, k, v, *, sinks=None, **options):
    """(o, lse) in f64; every row must see a key."""
    s = logits_of(q, k, **options)
    v = np.repeat(np.asarray(v, np.float64), s.shape[1] // v.shape[1], axis=1)
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    total = e.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(np.asarray(sinks, np.float64)[None, :, None, None] - m)
    return e @ v / total, (m + np.log(total))[..., 0]


def statistics(s):
    """Of logits [..., Nk], by name, sinks left out."""
    n = np.isfinite(s).sum(-1)
    finite = np.where(np.isfinite(s), s, 0)
    mean = finite.sum(-1) / n
    m = s.max(-1)
    p = np.exp(s - m[..., None])
    p /= p.sum(-1, keepdims=True)
    entropy = -(p * np.log(p, where=p > 0, out=np.zeros_like(p))).sum(-1)
    square, cube = (p**2).sum(-1), (p**3).sum(-1)
    first = np.argmax(np.isfinite(s), axis=-1)[..., None]
    return {
        "count": n,
        "mean": mean,
        "variance": (np.where(np.isfinite(s), (s - mean[..., None]) ** 2, 0)).sum(-1) / n,
        "max": m,
        "min": np.where(np.isfinite(s), s, np.inf).min(-1),
        "absmax": np.abs(finite).max(-1),
        "absmax_uncapped": np.abs(finite).max(-1),
        "lse": m + np.log(np.exp(s - m[..., None]).sum(-1)),
        "entropy": entropy,
        "entropy_sink": entropy,
        "effective_keys": 1 / square,
        "perplexity": np.exp(entropy),
        "top1": p.max(-1),
        "trace_gain": 1 - square,
        "frobenius_gain": np.sqrt(np.maximum(0, square - 2 * cube + square**2)),
        "first_key_mass": np.take_along_axis(p, first, -1)[..., 0],
        "sink_mass": np.zeros_like(m),
        "saturated": (p.max(-1) > 0.99) & (n >= 2),
    }
