"""Exact attention for CPUs that puts a level on every head.

`attention` computes exact scaled dot-product attention on NumPy arrays, PyTorch CPU tensors and anything else with DLPack
or the buffer protocol, and measures in the same pass whether each head's scale is right. `check` judges captured q and k
of a model. `decode` attends from a few new tokens to a `KvCache`.

Letters in shapes: B batch, Hq query heads, Hk key/value heads (Hq a multiple of Hk), Nq queries, Nk keys, D query/key
dim, Dv value dim.
"""

from ._attention import attention
from ._backward import Gradients, backward
from ._check import check
from ._core import version as __version__
from ._decode import KvCache, decode
from ._machine import cpu_name, kernels
from ._result import Info, Result, Statistics

__all__ = [
    "Gradients",
    "Info",
    "KvCache",
    "Result",
    "Statistics",
    "__version__",
    "attention",
    "backward",
    "check",
    "cpu_name",
    "decode",
    "kernels",
]
