"""The compiled half of the package. Its interface may change at any time: use levelhead's."""

from collections.abc import Callable, Sequence
from typing import Any

from ._machine import Kernel

version: str

class Array:
    """An array that is read where it lies."""

    def __init__(self, name: str, object: Any, as_bf16: bool) -> None: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def strides(self) -> list[int]:
        """In elements."""
    @property
    def dtype(self) -> str: ...
    @property
    def address(self) -> int: ...

class WritableArray:
    """An array that is written where it lies."""

    def __init__(self, name: str, object: Any, as_bf16: bool) -> None: ...

class Cache:
    """A cache over two arrays."""

    def __init__(self, k: WritableArray, v: WritableArray, lengths: list[int]) -> None: ...
    @property
    def lengths(self) -> list[int]: ...
    def append(self, k: Array, v: Array, counts: Array | None) -> None: ...
    def truncate(self, b: int, length: int) -> None: ...
    def clear(self) -> None: ...

class Settings:
    """The options of a call as words, numbers and None."""

    def __init__(self) -> None: ...
    scale: str | float | None
    causal: bool
    align: str | int | None
    window: tuple[int | None, int | None] | None
    softcap: float
    qk_norm: str | None
    statistics: str | None
    exact: bool
    kernel: str | None

class CheckSettings:
    """What check is told beside the capture."""

    def __init__(self) -> None: ...
    scale: float | None
    causal: bool | None
    align: str | int | None
    layer: int | None
    head: int | None
    fresh: bool
    threads: int

class Rows:
    """The states of a call's rows."""

    def arrays(self, empty: Callable[[Sequence[int], str], tuple[Any, Any, bool]]) -> dict[str, Any]:
        """{name: array [B, Hq, Nq]} of each statistic that was measured."""
    def heads_json(self) -> str:
        """Numbers and flags of each query head as JSON."""

def attention(
    arrays: dict[str, Array],
    settings: Settings,
    threads: int,
    empty: Callable[[Sequence[int], str], tuple[Any, Any, bool]],
) -> tuple[Any, Any, Rows | None, tuple[str, str, int, float, float, int]]:
    """(o, lse, rows, (kernel, reason, threads, seconds, flops, workspace_bytes))."""

def backward(
    arrays: dict[str, Array],
    settings: Settings,
    threads: int,
    empty: Callable[[Sequence[int], str], tuple[Any, Any, bool]],
) -> tuple[dict[str, Any], tuple[str, str, int, float, float, int]]:
    """({name: gradient}, info)."""

def decode(
    cache: Cache,
    arrays: dict[str, Array],
    settings: Settings,
    threads: int,
    empty: Callable[[Sequence[int], str], tuple[Any, Any, bool]],
) -> tuple[Any, Any, Rows | None, tuple[str, str, int, float, float, int]]:
    """The same of a step over the cache."""

def check_file(path: str, settings: CheckSettings) -> tuple[str, list[str]]:
    """(the object as JSON, names of tensors that are no part of the capture)."""

def check_arrays(
    arrays: list[Array], metadata: list[tuple[str, str]], settings: CheckSettings
) -> tuple[str, list[str]]:
    """The same of arrays that carry the names of a capture's tensors."""

def kernels() -> list[Kernel]: ...
def cpu_name() -> str: ...
