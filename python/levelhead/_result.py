"""What a call returns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import _core
from ._arrays import Empty


@dataclass(frozen=True)
class Info:
    """How a call was computed."""

    kernel: str
    """The kernel that ran."""
    reason: str
    """Why this one."""
    threads: int
    """That could take part."""
    seconds: float
    """That the library took, its checks included; what Python does before and after is left out."""
    flops: float
    """Floating-point operations of the products over pairs that may meet by position."""
    workspace_bytes: int
    """Allocated beside the outputs."""


class Statistics(Mapping[str, Any]):
    """Statistics of every row, {name: array [B, Hq, Nq]}, and of every head.

    The names are those of docs/numbers.md: `count` and, by level, `mean`, `variance`, `max`, `min`, `absmax`,
    `absmax_uncapped`, `lse`, `entropy`, `entropy_sink`, `effective_keys`, `perplexity`, `top1`, `trace_gain`,
    `frobenius_gain`, `first_key_mass`, `sink_mass`, `saturated`. Each is an attribute as well: `statistics.entropy`. Type
    f32 (f64 beside f64 q), `count` i64, `saturated` bool. What the level did not measure is not there.

    The pass leaves a state per row; arrays and heads are made from it when one of them is first asked for.
    """

    def __init__(self, rows: _core.Rows, empty: Empty) -> None:
        self._rows = rows
        self._empty = empty
        self._arrays: dict[str, Any] | None = None
        self._heads: list[dict[str, Any]] | None = None

    def _all(self) -> dict[str, Any]:
        if self._arrays is None:
            self._arrays = self._rows.arrays(self._empty)
        return self._arrays

    @property
    def heads(self) -> list[dict[str, Any]]:
        """One dict per query head, pooled over the batch: `head`, the numbers of docs/numbers.md by name, `flags`.

        What was not measured is left out; NaN and infinities are None. Reads q and k once more when first asked for (which
        keys are near, for the flag `local`): until then do not change them.
        """
        if self._heads is None:
            self._heads = json.loads(self._rows.heads_json())
        return self._heads

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            try:
                return self._all()[name]
            except KeyError:
                pass
        raise AttributeError(f"there is no statistic {name!r} here, only {', '.join(self)} and heads")

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"Statistics({', '.join(self)})"


class Result(NamedTuple):
    """o, lse, statistics and info of a call."""

    o: Any
    """[B, Hq, Nq, Dv], the type of q: attention's output. A row that sees no key is 0."""
    lse: Any
    """[B, Hq, Nq], f32 (f64 beside f64 q): natural log of the sum of exponentials of a row's logits, sink included."""
    statistics: Statistics | None
    """Of rows and heads; None unless asked for."""
    info: Info
    """How it was computed."""
