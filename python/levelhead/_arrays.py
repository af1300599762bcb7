"""Arrays of any library in, arrays of the caller's library out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core

# Makes a new array: (shape, type) -> (the array, what exports its memory, whether that stands for bf16).
Empty = Callable[[Sequence[int], str], "tuple[Any, Any, bool]"]

_NUMPY_TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "bool": np.bool_}
_FLOATING = ("f64", "f32", "bf16", "f16")
_TORCH_TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "bool": "bool"}


def _torch() -> Any:
    """The module torch if anybody has imported it: without it no argument is a tensor."""
    return sys.modules.get("torch")


def is_torch(x: object) -> bool:
    torch = _torch()
    return torch is not None and isinstance(x, torch.Tensor)


def _from_torch(name: str, x: Any) -> Any:
    torch = _torch()
    if x.device.type != "cpu":
        raise ValueError(f"{name} is on {x.device} but attention is computed on the CPU: pass {name}.cpu()")
    if x.layout != torch.strided:
        raise ValueError(f"{name} is {x.layout} but must be strided: pass {name}.to_dense()")
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"{name} requires grad but this call records no gradient: pass {name}.detach() or call under torch.no_grad()"
        )
    return x.detach().resolve_conj().resolve_neg()


def _from_numpy(name: str, x: np.ndarray[Any, Any]) -> _core.Array:
    if x.dtype.kind == "V" and x.dtype.name == "bfloat16":  # of ml_dtypes, which NumPy hands out to nobody
        return _core.Array(name, x.view(np.uint16), True)
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost: pass {name}.data, and mask beside it")
    try:
        return _core.Array(name, x, False)
    except ValueError:
        if not x.dtype.isnative or x.dtype.kind not in "fiubc":
            known = "arrays are f64, f32, bf16, f16, i64, i32, u8 or bool"
            raise ValueError(f"{name} has elements of {x.dtype} but {known}") from None
        if any(stride % x.itemsize for stride in x.strides):
            rule = f"no multiples of its elements' {x.itemsize}"
            raise ValueError(f"{name} has strides of {x.strides} bytes, which are {rule}") from None
        raise


def _has_buffer(x: object) -> bool:
    try:
        memoryview(x)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        return False
    return True


def read(name: str, x: Any) -> _core.Array:
    """x as an array that the library reads where it lies. TypeError if it is none, ValueError if it can't be read."""
    if isinstance(x, np.ndarray):
        return _from_numpy(name, x)
    if is_torch(x):
        x = _from_torch(name, x)
    elif not hasattr(x, "__dlpack__") and not _has_buffer(x):
        raise TypeError(
            f"{name} is of type {type(x).__name__} but must be an array: NumPy, PyTorch, or anything with DLPack or the "
            "buffer protocol"
        )
    return _core.Array(name, x, False)


def read_all(needed: tuple[str, ...] = ("q", "k", "v"), **given: Any) -> dict[str, _core.Array]:
    """Those that are given, by name. TypeError if one that is needed is None."""
    for name in needed:
        if given[name] is None:
            raise TypeError(f"{name} is None but must be an array")
    return {name: read(name, x) for name, x in given.items() if x is not None}


def write(name: str, x: Any) -> tuple[Any, bool]:
    """What exports x's memory for writing, and whether that stands for bf16. TypeError or ValueError if x is no use."""
    read(name, x)
    if isinstance(x, np.ndarray):
        bf16 = x.dtype.kind == "V"
        return (x.view(np.uint16), True) if bf16 else (x, False)
    return (x.detach(), False) if is_torch(x) else (x, False)


def like_dtype(dtype: Any) -> tuple[Any, str]:
    """For maker_like and what it returns: an array of the library the type is of, and the type's name."""
    torch = _torch()
    if torch is not None and isinstance(dtype, torch.dtype):
        like, spelled = torch.empty(0, dtype=dtype), str(dtype).removeprefix("torch.")
    elif isinstance(dtype, str) and dtype in _FLOATING:
        return None, dtype
    else:
        like, spelled = None, np.dtype(dtype).name
    for name in _FLOATING:
        if _TORCH_TYPES[name] == spelled:
            return like, name
    raise ValueError(f"dtype is {spelled} but must be f64, f32, bf16 or f16")


def _numpy_bf16(like: Any) -> Any:
    if isinstance(like, np.ndarray) and like.dtype.name == "bfloat16":
        return like.dtype
    try:
        import ml_dtypes
    except ImportError:
        raise ValueError("o is bf16, which NumPy has only through the package ml_dtypes: install it") from None
    return ml_dtypes.bfloat16


def maker_like(like: Any) -> Empty:
    """What makes new arrays of the library that `like` comes from: PyTorch, or NumPy for all others."""
    if is_torch(like):
        torch = _torch()

        def empty_torch(shape: Sequence[int], dtype: str) -> tuple[Any, Any, bool]:
            made = torch.empty(tuple(shape), dtype=getattr(torch, _TORCH_TYPES[dtype]), device="cpu")
            return made, made, False

        return empty_torch

    def empty_numpy(shape: Sequence[int], dtype: str) -> tuple[Any, Any, bool]:
        if dtype == "bf16":
            bits = np.empty(shape, np.uint16)
            return bits.view(_numpy_bf16(like)), bits, True
        made: Any = np.empty(shape, _NUMPY_TYPES[dtype])
        return made, made, False

    return empty_numpy
