"""Wrong use: a sentence that names the argument, never a word of C++."""

import re

import levelhead
import numpy as np
import pytest

ARRAY = "must be an array: NumPy, PyTorch, or anything with DLPack or the buffer protocol"
F32 = np.zeros
WRONG_TYPES = [
    ({"q": [1.0]}, f"q is of type list but {ARRAY}"),
    ({"v": 1.0}, f"v is of type float but {ARRAY}"),
    ({"v": np.ma.zeros((2, 2, 13, 8))}, "v is a masked array, whose mask would be lost: pass v.data, and mask beside it"),
    ({"k": None}, "k is None but must be an array"),
    ({"mask": "all"}, f"mask is of type str but {ARRAY}"),
    ({"bias": object()}, f"bias is of type object but {ARRAY}"),
    ({"q_lengths": [9, 9]}, f"q_lengths is of type list but {ARRAY}"),
    ({"scale": True}, "scale is of type bool but must be a number, a word or an array [Hq] or [B, Hq, Nq]"),
    ({"scale": [1, 2]}, "scale is of type list but must be a number, a word or an array [Hq] or [B, Hq, Nq]"),
    ({"causal": 1}, "causal is of type int but must be True or False"),
    ({"align": 1.5}, "align is of type float but must be 'top-left', 'bottom-right' or a whole number"),
    ({"align": True}, "align is of type bool but must be 'top-left', 'bottom-right' or a whole number"),
    ({"window": 3}, "window is of type int but must be a pair (left, right) of numbers of keys, None for no bound"),
    ({"window": (1.0, 2)}, "window's left is of type float but must be a number of keys or None"),
    ({"softcap": "2"}, "softcap is of type str but must be a number"),
    ({"qk_norm": 2}, "qk_norm is of type int but must be 'l2' or 'rms'"),
    ({"statistics": 2}, "statistics is of type int but must be False, True, 'lse_max', 'entropy' or 'all'"),
    ({"exact": None}, "exact is of type NoneType but must be True or False"),
    ({"kernel": 1}, "kernel is of type int but must be a name of levelhead.kernels()"),
    ({"threads": 1.0}, "threads is of type float but must be a whole number"),
]
WRONG_VALUES = [
    ({"v": F32((2, 2, 12, 8), np.float32)}, "k has 13 tokens but v has 12: k [2, 2, 13, 16] and v [2, 2, 12, 8] must agree on axis 2"),
    ({"q": F32((2, 3, 9, 16), np.float32)}, "q has 3 heads and k has 2: q [2, 3, 9, 16] must have a multiple of the heads of k [2, 2, 13, 16]"),
    ({"q": F32((9, 16), np.float32)}, "q [9, 16] has rank 2 but must have 4: [B, heads, tokens, dim]"),
    ({"q": F32((1, 2, 4, 9, 16), np.float32)}, "q has rank 5 but tensors have 0 to 4 axes"),
    ({"q": F32((4, 9, 16), np.float32)}, "k has 4 axes but q has 3: all three mean B = 1, or none"),
    ({"q": F32((2, 4, 9, 16), np.float64)}, "q is f64 but k is f32: q, k and v must have one type"),
    ({"q": F32((2, 4, 9, 16), np.int64)}, "q [2, 4, 9, 16] is i64 but q, k and v must be f64, f32, bf16 or f16"),
    ({"q": F32((2, 4, 9, 16), np.uint16)}, "q has elements of uint16 but arrays are f64, f32, bf16, f16, i64, i32, u8 or bool"),
    ({"q": F32((2, 4, 9, 16), np.complex64)}, "q has elements of complex64 but arrays are f64, f32, bf16, f16, i64, i32, u8 or bool"),
    ({"q": F32((2, 4, 9, 16), ">f4")}, "q has elements of >f4 but arrays are f64, f32, bf16, f16, i64, i32, u8 or bool"),
    ({"q": F32((2, 4, 9, 16), object)}, "q has elements of object but arrays are f64, f32, bf16, f16, i64, i32, u8 or bool"),
    ({"q": F32((2, 4, 9, 16), [("x", "<f4"), ("y", "u1")])["x"]}, "q has strides of (2880, 720, 80, 5) bytes, which are no multiples of its elements' 4"),
    ({"mask": F32((3, 13), bool)}, "mask [3, 13] does not broadcast to [B, Hq, Nq, Nk] = [2, 4, 9, 13]: axis 0 has size 3 and must have 1 or 9"),
    ({"sinks": F32(3, np.float32)}, "sinks [3] must be [Hq] = [4]"),
    ({"scale": "half"}, "scale is 'half' but must be inv-sqrt-dim, none, inv-dim[:BASE], log-keys:N0, ssmax, yarn:FACTOR[,MSCALE] or a number"),
    ({"scale": "log-keys"}, "scale is 'log-keys' but must be log-keys:N0 with a number"),
    ({"scale": "yarn:x"}, "scale is 'yarn:x' but must be yarn:FACTOR or yarn:FACTOR,MSCALE with numbers"),
    ({"scale": "ssmax"}, "scale ssmax needs the tensor ssmax_s, and there is none"),
    ({"scale": float("nan")}, "the constant scale is nan but must be finite"),
    ({"ssmax_s": F32(4, np.float32)}, "ssmax_s is given but scale='ssmax' is not"),
    ({"qk_gain": F32(4, np.float32)}, "qk_gain is given but qk_norm is not"),
    ({"qk_norm": "l2", "scale": 1}, "qk_norm and scale are both given, but only one can hold"),
    ({"qk_norm": "l2", "scale": F32(4, np.float32)}, "qk_norm and scale are both given, but only one can hold"),
    ({"qk_norm": "max"}, "qk_norm is 'max' but must be l2 or rms"),
    ({"align": "top"}, "align is 'top' but must be top-left, bottom-right or a whole number"),
    ({"align": 2**63}, "align is 9223372036854775808 but must lie between -9223372036854775808 and 9223372036854775807"),
    ({"window": (1, 2, 3)}, "window has 3 parts but must be a pair (left, right) of numbers of keys, None for no bound"),
    ({"window": (-1, 2)}, "window's left is -1 but counts keys: it must be >= 0, or None for no bound"),
    ({"softcap": -1}, "softcap is -1 but must be finite and >= 0 (0 is off)"),
    ({"statistics": "some"}, "statistics is 'some' but must be False, True, 'lse_max', 'entropy' or 'all'"),
    ({"kernel": ""}, "kernel is given an empty name"),
    ({"threads": -1}, "a context can't have -1 threads; 0 means one per core"),
]


def name_of(case):
    return "-".join(f"{key}" for key in case) if isinstance(case, dict) else ""


@pytest.mark.parametrize(("wrong", "sentence"), WRONG_TYPES, ids=name_of)
def test_wrong_types(make, wrong, sentence):
    arguments = dict(zip("qkv", make(), strict=True)) | wrong
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
        levelhead.attention(**arguments)


@pytest.mark.parametrize(("wrong", "sentence"), WRONG_VALUES, ids=name_of)
def test_wrong_values(make, wrong, sentence):
    arguments = dict(zip("qkv", make(), strict=True)) | wrong
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        levelhead.attention(**arguments)


def test_causal_over_unequal_numbers_needs_an_alignment(make):
    with pytest.raises(ValueError, match="top-left|align"):
        levelhead.attention(*make(), causal=True)


def test_unknown_kernel(make):
    with pytest.raises(ValueError, match="^there is no kernel 'fast'; the kernels are: "):
        levelhead.attention(*make(), kernel="fast")


def test_unreadable_dlpack(make):
    class Broken:
        def __dlpack__(self, **_):
            raise BufferError

        def __dlpack_device__(self):
            return (1, 0)

    q, k, v = make()
    with pytest.raises(ValueError, match="^k can't be read: neither DLPack nor the buffer protocol hands out its elements$"):
        levelhead.attention(q, Broken(), v)


def test_larger_than_any_memory():
    one = np.ones(1, np.float32)
    q = np.broadcast_to(one, (1, 1, 1 << 50, 8))
    k = np.broadcast_to(one, (1, 1, 4, 8))
    with pytest.raises((MemoryError, ValueError)) as raised:
        levelhead.attention(q, k, k, statistics=True)
    assert "std::" not in str(raised.value) and "vector" not in str(raised.value)


def test_bf16_needs_ml_dtypes_only_to_be_returned(make, monkeypatch):
    import sys

    from levelhead import _arrays

    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ValueError, match="^o is bf16, which NumPy has only through the package ml_dtypes: install it$"):
        _arrays.maker_like(object())([1], "bf16")
