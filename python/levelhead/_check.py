"""check: is the attention scale of a captured model plausible?"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any

from . import _core
from ._arrays import read
from ._options import alignment, number, thread_count, truth, whole

_LAYERS = "{layer: (q, k)}, {layer: (q, k, v)} or {'layers.N.q': array, ...}"


def _parts(layer: Any, tensors: Any) -> list[tuple[str, Any]]:
    number_ = whole("a layer", layer, "a whole number >= 0")
    if number_ < 0:
        raise ValueError(f"a layer is {number_} but must be >= 0")
    if not isinstance(tensors, (tuple, list)) or len(tensors) not in (2, 3):
        raise TypeError(f"layer {number_} is of type {type(tensors).__name__} but layers are given as {_LAYERS}")
    return [(f"layers.{number_}.{part}", x) for part, x in zip("qkv", tensors) if x is not None]


def _read_layers(layers: Mapping[Any, Any]) -> list[_core.Array]:
    named: list[tuple[str, Any]] = []
    for key, value in layers.items():
        named += [(key, value)] if isinstance(key, str) else _parts(key, value)
    return [read(name, x) for name, x in named]


def _settings(scale: Any, causal: Any, align: Any, layer: Any, head: Any, fresh: Any, threads: Any) -> Any:
    settings = _core.CheckSettings()
    settings.scale = None if scale is None else number("scale", scale)
    settings.causal = None if causal is None else truth("causal", causal)
    settings.align = alignment(align)
    settings.layer = None if layer is None else whole("layer", layer, bounds=(0, 2**62))
    settings.head = None if head is None else whole("head", head, bounds=(0, 2**62))
    settings.fresh = truth("fresh", fresh)
    settings.threads = thread_count(threads)
    return settings


def check(
    capture: str | os.PathLike[str] | Mapping[Any, Any],
    *,
    scale: float | None = None,
    causal: bool | None = None,
    align: str | int | None = None,
    layer: int | None = None,
    head: int | None = None,
    fresh: bool = False,
    threads: int | None = None,
    model: str | None = None,
    d_model: int | None = None,
    layers_of_model: int | None = None,
) -> dict[str, Any]:
    """Judges captured activations as `levelhead check` does, and returns what its `--json` writes.

    capture: a safetensors file with layers.N.q, .k and (optional) .v [heads, tokens, dim], or these tensors as arrays:
        {layer: (q, k)}, {layer: (q, k, v)} or {"layers.N.q": array, ...}. Arrays are copied once.
    scale: the scale that was used, or what if it were this number. A file may say it in its metadata; arrays can't.
    causal: whether keys behind the query's own were hidden. A file may say it in its metadata; arrays can't.
    align: "top-left", "bottom-right" or an offset: for causal over unequal numbers of queries and keys.
    layer, head: only this one.
    fresh: untrained weights: judge by the spread of every head, which should be 1.
    threads: how many may take part; None or 0 is one per core.
    model, d_model, layers_of_model: with arrays, what a file's metadata would say: a name, the width of the model (for
        naming the scale) and the number of its layers.

    Returns {file, model, scale, scale_is, verdict: {name, h75, limits, likely_mistake, ...}, kernel, layers: [{layer,
    heads: [{head, ..., flags}]}]}; file is None for arrays, NaN and infinities are None, what was not measured is left out.

    Raises OSError if the file can't be opened, ValueError if it is broken or its tensors do not fit, TypeError if an
    argument is of no use. Warns of tensors that are no part of a capture.
    """
    settings = _settings(scale, causal, align, layer, head, fresh, threads)
    if isinstance(capture, Mapping):
        said = {"model": model, "d_model": d_model, "layers_of_model": layers_of_model}
        metadata = [(key, str(value)) for key, value in said.items() if value is not None]
        text, others = _core.check_arrays(_read_layers(capture), metadata, settings)
    elif isinstance(capture, (str, os.PathLike)):
        for name, value in (("model", model), ("d_model", d_model), ("layers_of_model", layers_of_model)):
            if value is not None:
                raise ValueError(f"{name} is given with a file, whose metadata says it")
        path = os.fspath(capture)
        with open(path, "rb"):  # OSError with the reason if it can't be
            pass
        text, others = _core.check_file(path, settings)
    else:
        raise TypeError(f"capture is of type {type(capture).__name__} but must be a path or layers as {_LAYERS}")
    if others:
        shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        what = "tensor is" if len(others) == 1 else "tensors are"
        warnings.warn(f"{len(others)} {what} no layers.N.q, .k or .v and left alone: {shown}", stacklevel=2)
    judged: dict[str, Any] = json.loads(text)
    if isinstance(capture, Mapping):
        judged["file"] = None
    return judged
