"""Options in Python's words, checked for their types; their values are the library's to judge."""

from __future__ import annotations

import numbers
import operator
from typing import Any

import numpy as np

from . import _core
from ._arrays import read

_FULL_RANGE = (-(2**63), 2**63 - 1)


def _wrong_type(name: str, x: object, wanted: str) -> TypeError:
    return TypeError(f"{name} is of type {type(x).__name__} but must be {wanted}")


def whole(name: str, x: Any, wanted: str = "a whole number", bounds: tuple[int, int] = _FULL_RANGE) -> int:
    """x as an int within bounds; True and False are none."""
    if isinstance(x, (bool, np.bool_)):
        raise _wrong_type(name, x, wanted)
    try:
        number = operator.index(x)
    except TypeError:
        raise _wrong_type(name, x, wanted) from None
    low, high = bounds
    if not low <= number <= high:
        raise ValueError(f"{name} is {number} but must lie between {low} and {high}")
    return number


def number(name: str, x: Any, wanted: str = "a number") -> float:
    """x as a float; True and False are none."""
    if isinstance(x, (bool, np.bool_)) or not isinstance(x, numbers.Real):
        raise _wrong_type(name, x, wanted)
    return float(x)


def truth(name: str, x: Any) -> bool:
    if not isinstance(x, (bool, np.bool_)):
        raise _wrong_type(name, x, "True or False")
    return bool(x)


def word(name: str, x: Any, wanted: str = "a text") -> str:
    if not isinstance(x, str):
        raise _wrong_type(name, x, wanted)
    return x


def thread_count(threads: Any) -> int:
    """0, which is one per core, for None."""
    return 0 if threads is None else whole("threads", threads, bounds=(-(2**31), 2**31 - 1))


def alignment(align: Any) -> str | int | None:
    if align is None or isinstance(align, str):
        return align
    return whole("align", align, "'top-left', 'bottom-right' or a whole number")


def _bound(side: str, x: Any) -> int | None:
    if x is None:
        return None
    count = whole(f"window's {side}", x, "a number of keys or None")
    if count < 0:
        raise ValueError(f"window's {side} is {count} but counts keys: it must be >= 0, or None for no bound")
    return count


def bounds_of(window: Any) -> tuple[int | None, int | None] | None:
    if window is None:
        return None
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        wanted = "a pair (left, right) of numbers of keys, None for no bound"
        if isinstance(window, (tuple, list)):
            raise ValueError(f"window has {len(window)} parts but must be {wanted}")
        raise _wrong_type("window", window, wanted)
    return _bound("left", window[0]), _bound("right", window[1])


def level_of(statistics: Any) -> str | None:
    """None for False, 'all' for True."""
    if isinstance(statistics, (bool, np.bool_)):
        return "all" if statistics else None
    return word("statistics", statistics, "False, True, 'lse_max', 'entropy' or 'all'")


def place_scale(scale: Any, arrays: dict[str, _core.Array]) -> str | float | None:
    """A word or a number as it is; an array of one axis or more goes to the other arrays."""
    if scale is None or isinstance(scale, str):
        return scale
    wanted = "a number, a word or an array [Hq] or [B, Hq, Nq]"
    if isinstance(scale, (numbers.Real, np.bool_)):
        return number("scale", scale, wanted)
    try:
        values = read("scale", scale)
    except TypeError:
        raise _wrong_type("scale", scale, wanted) from None
    if not values.shape and getattr(scale, "ndim", None) == 0:
        return float(scale)
    arrays["scale"] = values
    return None


def settings_of(
    arrays: dict[str, _core.Array],
    *,
    scale: Any,
    causal: Any,
    align: Any,
    window: Any,
    softcap: Any,
    qk_norm: Any,
    statistics: Any,
    exact: Any,
    kernel: Any,
) -> _core.Settings:
    """The options of a call. A scale that is an array is put into arrays."""
    settings = _core.Settings()
    settings.scale = place_scale(scale, arrays)
    settings.causal = truth("causal", causal)
    settings.align = alignment(align)
    settings.window = bounds_of(window)
    settings.softcap = 0.0 if softcap is None else number("softcap", softcap)
    settings.qk_norm = None if qk_norm is None else word("qk_norm", qk_norm, "'l2' or 'rms'")
    settings.statistics = level_of(statistics)
    settings.exact = truth("exact", exact)
    settings.kernel = None if kernel is None else word("kernel", kernel, "a name of levelhead.kernels()")
    return settings
