"""decode and KvCache: a few new tokens attend to all that came before."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from . import _core
from ._arrays import like_dtype, maker_like, read_all, write
from ._options import settings_of, thread_count, whole
from ._result import Info, Result, Statistics

_LAYOUTS = ("row-major", "token-major")


class KvCache:
    """Keys and values of B batch items, which grow by a few tokens a call.

    k: [B, Hk, capacity, D] and v: [B, Hk, capacity, Dv], arrays of NumPy or PyTorch: the memory itself, not a copy. Of batch
    item b the first lengths[b] tokens are there; what lies behind is never read. Calls that use one cache from several
    threads wait for each other.
    """

    def __init__(
        self,
        B: int,
        Hk: int,
        capacity: int,
        D: int,
        Dv: int | None = None,
        *,
        dtype: Any = "f32",
        layout: str = "row-major",
    ) -> None:
        """An empty cache with memory of its own.

        capacity: tokens that each batch item has room for.
        Dv: D unless given.
        dtype: "f64", "f32", "bf16", "f16", a dtype of NumPy, or one of PyTorch, which makes k and v PyTorch's.
        layout: "row-major" (the tokens of a head follow each other) or "token-major" (the heads of a token do).
        """
        sizes = {"B": B, "Hk": Hk, "capacity": capacity, "D": D, "Dv": D if Dv is None else Dv}
        B, Hk, capacity, D, Dv = (whole(name, x, bounds=(0, 2**60)) for name, x in sizes.items())
        if layout not in _LAYOUTS:
            raise ValueError(f"layout is {layout!r} but must be 'row-major' or 'token-major'")
        like, name = like_dtype(dtype)
        empty = maker_like(like)
        made = []
        for components in (D, Dv):
            if layout == "row-major":
                made.append(empty((B, Hk, capacity, components), name))
            else:
                array, memory, as_bf16 = empty((B, capacity, Hk, components), name)
                made.append((array.swapaxes(1, 2), memory.swapaxes(1, 2), as_bf16))
        self._place(made[0], made[1], ())

    @classmethod
    def over(cls, k: Any, v: Any, lengths: Sequence[int] | None = None) -> KvCache:
        """A cache over the caller's own arrays.

        k: [B, Hk, capacity, D], v: [B, Hk, capacity, Dv], writable, with any positive strides.
        lengths: how many tokens of each batch item are there already; none unless given.
        """
        cache = cls.__new__(cls)
        given = () if lengths is None else [whole("a length", length) for length in lengths]
        cache._place((k, *write("k of the cache", k)), (v, *write("v of the cache", v)), given)
        return cache

    def _place(self, k: Any, v: Any, lengths: Sequence[int]) -> None:
        self.k, self.v = k[0], v[0]
        memory = [_core.WritableArray(f"{n} of the cache", x[1], x[2]) for n, x in (("k", k), ("v", v))]
        self._cache = _core.Cache(memory[0], memory[1], list(lengths))
        self._lock = threading.Lock()

    @property
    def lengths(self) -> list[int]:
        """Tokens of each batch item."""
        return self._cache.lengths

    @property
    def capacity(self) -> int:
        """Tokens that each batch item has room for."""
        return int(self.k.shape[2])

    def append(self, k: Any, v: Any, counts: Any = None) -> None:
        """Adds tokens: k [B, Hk, n, D], v [B, Hk, n, Dv], of the cache's type; counts [B], i64 or i32: how many are real.

        Raises ValueError, before anything is written, if they do not fit.
        """
        new = read_all(needed=("k", "v"), k=k, v=v, counts=counts)
        with self._lock:
            self._cache.append(new["k"], new["v"], new.get("counts"))

    def truncate(self, b: int, length: int) -> None:
        """Forgets the tokens of batch item b from length on."""
        with self._lock:
            self._cache.truncate(whole("b", b), whole("length", length))

    def clear(self) -> None:
        """Forgets all tokens."""
        with self._lock:
            self._cache.clear()

    def __repr__(self) -> str:
        return f"KvCache(k {list(self.k.shape)}, v {list(self.v.shape)}, {self.k.dtype}, lengths {self.lengths})"


def decode(
    cache: KvCache,
    q: Any,
    k: Any,
    v: Any,
    *,
    counts: Any = None,
    scale: Any = None,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    mask: Any = None,
    bias: Any = None,
    sinks: Any = None,
    alibi_slopes: Any = None,
    ssmax_s: Any = None,
    qk_norm: str | None = None,
    qk_gain: Any = None,
    statistics: bool | str = False,
    exact: bool = False,
    threads: int | None = None,
    kernel: str | None = None,
) -> Result:
    """Appends k and v to the cache, then attends from q to all of it.

    The new tokens stand at the end, so windows and slopes count from the start of the cache, and they are causal among each
    other unless window has a right bound. Nk below is the longest batch item once they are appended.

    cache: a KvCache.
    q: [B, Hq, n, D], 1 <= n <= 16, the type of the cache; without B it is 1, then also for k and v.
    k: [B, Hk, n, D]. v: [B, Hk, n, Dv].
    counts: [B], i64 or i32: how many of the n tokens are real; all unless given. Rows behind it are 0.
    mask, bias: broadcastable to [B, Hq, n, Nk].
    window: (left, right), numbers of keys seen beside the query's own, None for no bound; a right bound of None is 0.
    scale, softcap, sinks, alibi_slopes, ssmax_s, qk_norm, qk_gain, statistics, exact, threads, kernel: as in attention.

    Raises what attention raises, ValueError for a full cache among it; then the cache has not changed.
    """
    if not isinstance(cache, KvCache):
        raise TypeError(f"cache is of type {type(cache).__name__} but must be a levelhead.KvCache")
    arrays = read_all(
        q=q,
        k=k,
        v=v,
        counts=counts,
        mask=mask,
        bias=bias,
        sinks=sinks,
        alibi_slopes=alibi_slopes,
        ssmax_s=ssmax_s,
        qk_gain=qk_gain,
    )
    settings = settings_of(
        arrays,
        scale=scale,
        causal=False,
        align=None,
        window=window,
        softcap=softcap,
        qk_norm=qk_norm,
        statistics=statistics,
        exact=exact,
        kernel=kernel,
    )
    empty = maker_like(q)
    with cache._lock:
        o, lse, rows, info = _core.decode(cache._cache, arrays, settings, thread_count(threads), empty)
    return Result(o, lse, None if rows is None else Statistics(rows, empty), Info(*info))
