"""backward: the gradients of attention."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _core
from ._arrays import maker_like, read_all
from ._options import settings_of, thread_count
from ._result import Info


class Gradients(NamedTuple):
    """Gradients by the arguments they belong to; None where that argument is no array."""

    dq: Any
    """[B, Hq, Nq, D], the type of q."""
    dk: Any
    """[B, Hk, Nk, D], the type of q."""
    dv: Any
    """[B, Hk, Nk, Dv], the type of q."""
    dbias: Any
    """The shape of bias, f32 (f64 beside f64 q), as all below."""
    dsinks: Any
    """[Hq]."""
    dslopes: Any
    """[Hq], of alibi_slopes."""
    dscale: Any
    """The shape of scale."""
    dssmax_s: Any
    """[Hq]."""
    dqk_gain: Any
    """[Hq]."""
    info: Info
    """How it was computed."""


def backward(
    q: Any,
    k: Any,
    v: Any,
    *,
    dout: Any = None,
    dlse: Any = None,
    dentropy: Any = None,
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
    threads: int | None = None,
    kernel: str | None = None,
) -> Gradients:
    """The gradients of attention's o and lse, and of the entropy of its rows, with respect to every array it takes.

    dout: [B, Hq, Nq, Dv], the type of q: the gradient of o. At least one of these three is given.
    dlse: [B, Hq, Nq], f32 (f64 too beside f64 q): the gradient of lse.
    dentropy: [B, Hq, Nq], as dlse: the gradient of the statistic entropy.
    q, k, v, scale, causal, align, window, softcap, mask, bias, sinks, alibi_slopes, q_lengths, k_lengths, q_offsets,
    k_offsets, ssmax_s, qk_norm, qk_gain, threads, kernel: as in attention, which is run once more for the state of its rows.

    Exact, and not yet fast. Raises what attention raises.
    """
    arrays = read_all(
        q=q,
        k=k,
        v=v,
        dout=dout,
        dlse=dlse,
        dentropy=dentropy,
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
        statistics=False,
        exact=False,
        kernel=kernel,
    )
    made, info = _core.backward(arrays, settings, thread_count(threads), maker_like(q))
    return Gradients(**{name: made.get(name) for name in Gradients._fields[:-1]}, info=Info(*info))
