"""attention: exact scaled dot-product attention."""

from __future__ import annotations

from typing import Any

from . import _core
from ._arrays import maker_like, read_all
from ._options import settings_of, thread_count
from ._result import Info, Result, Statistics


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: Any = None,
    causal: bool = False,
    align: str | int | None = None,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    mask: Any = None,
    bias: Any = None,
    sinks: Any = None,
    alibi_slopes: Any = None,
    q_lengths: Any = None,
    k_lengths: Any = None,
    q_offsets: Any = None,
    k_offsets: Any = None,
    ssmax_s: Any = None,
    qk_norm: str | None = None,
    qk_gain: Any = None,
    statistics: bool | str = False,
    exact: bool = False,
    threads: int | None = None,
    kernel: str | None = None,
) -> Result:
    """softmax(scale * q k') v, exactly, and what it says about the scale.

    Arrays may be NumPy's, PyTorch's on the CPU, or anything with DLPack or the buffer protocol, with any strides. None is
    copied. The result is PyTorch's if q is, else NumPy's. A tensor that requires grad is refused while gradients are
    recorded, as this call records none: detach it, or call under torch.no_grad().

    q: [B, Hq, Nq, D] in f64, f32, bf16 or f16; [Hq, Nq, D] means B = 1, then also for k and v.
    k: [B, Hk, Nk, D], the type of q; Hq is a multiple of Hk.
    v: [B, Hk, Nk, Dv], the type of q.
    scale: what multiplies q k'. None or "inv-sqrt-dim" is 1/sqrt(D); a number; "none" (1), "inv-dim[:BASE]",
        "log-keys:N0", "ssmax" (with ssmax_s), "yarn:FACTOR[,MSCALE]"; or an array [Hq] or [B, Hq, Nq], f32.
    causal: hide the keys behind the query's own; with a window its right bound becomes 0.
    align: which key is the query's own when Nq and Nk differ: "top-left", "bottom-right", or an offset: key i + offset.
        There is no default: a bound or slopes over unequal numbers need it.
    window: (left, right), numbers of keys seen beside the query's own, None for no bound.
    softcap: logits become softcap * tanh(scaled / softcap); None or 0 is off.
    mask: broadcastable to [B, Hq, Nq, Nk], bool, True may attend.
    bias: broadcastable to [B, Hq, Nq, Nk], f32 or the type of q, added to the logits; -inf hides.
    sinks: [Hq], f32: one more logit of each head in the denominator, with no value.
    alibi_slopes: [Hq], f32: adds slope * (j - i - offset).
    q_lengths, k_lengths: [B], i64 or i32: valid tokens of each batch item, at its start. What lies behind is not read.
    q_offsets, k_offsets: [documents + 1], i64 or i32: starts of packed documents, from 0 to N; B = 1.
    ssmax_s: [Hq], f32, with scale="ssmax".
    qk_norm: "l2" or "rms": normalise q and k over D first; then no scale is given.
    qk_gain: [Hq], f32, with qk_norm: multiplies instead of a scale. Default sqrt(D) with "l2", 1 with "rms".
    statistics: False; True or "all"; "lse_max"; "entropy". It changes no bit of o.
    exact: measure 16-bit inputs from unrounded weights too.
    threads: how many may take part, the caller among them; None or 0 is one per core. The bits do not depend on it.
    kernel: force this one of levelhead.kernels().

    Raises TypeError for an argument that is no array (or number, or word) where one must be, and ValueError, with a
    sentence that has the names and numbers, for arguments that do not fit. Other Python threads run meanwhile; calls from
    several threads at once are safe.
    """
    arrays = read_all(
        q=q,
        k=k,
        v=v,
        mask=mask,
        bias=bias,
        sinks=sinks,
        alibi_slopes=alibi_slopes,
        q_lengths=q_lengths,
        k_lengths=k_lengths,
        q_offsets=q_offsets,
        k_offsets=k_offsets,
        ssmax_s=ssmax_s,
        qk_gain=qk_gain,
    )
    settings = settings_of(
        arrays,
        scale=scale,
        causal=causal,
        align=align,
        window=window,
        softcap=softcap,
        qk_norm=qk_norm,
        statistics=statistics,
        exact=exact,
        kernel=kernel,
    )
    empty = maker_like(q)
    o, lse, rows, info = _core.attention(arrays, settings, thread_count(threads), empty)
    return Result(o, lse, None if rows is None else Statistics(rows, empty), Info(*info))
