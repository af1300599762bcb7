"""What is taken, where it lies, and what comes back."""

import array
import subprocess
import sys

import levelhead
import naive
import numpy as np
import pytest
from levelhead import _arrays


def close(o, q, k, v):
    np.testing.assert_allclose(np.asarray(o, np.float64), naive.attention(q, k, v)[0], rtol=0, atol=1e-5)


def views(x):
    """x under other strides: (array, what it equals)."""
    yield x[:, ::-1, ::-1], "negative"
    yield x[..., ::2], "every second component"
    yield np.broadcast_to(x[:, :1, :1], x.shape), "stride 0"
    yield np.asfortranarray(x), "column-major"
    yield x.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2), "components far apart"


def test_strides(make):
    q, k, v = make(Nq=12, Nk=12, D=16, Dv=16, Hk=4)
    for of_q, of_k, of_v in zip(views(q), views(k), views(v), strict=True):
        close(levelhead.attention(of_q[0], of_k[0], of_v[0]).o, of_q[0], of_k[0], of_v[0])


def test_nothing_is_copied(make, bfloat16):
    for x in (*make(), *make(dtype=np.float64), np.zeros((2, 3), bool), np.arange(3), make()[0].astype(bfloat16)):
        read = _arrays.read("x", x)
        assert read.address == x.ctypes.data
        assert read.shape == list(x.shape) and read.strides == [stride // x.itemsize for stride in x.strides]
        turned = _arrays.read("x", x[::-1])
        assert turned.address == x[::-1].ctypes.data and turned.strides[0] == -read.strides[0]


def test_stride_0_needs_no_memory():
    one = np.ones(1, np.float32)
    huge = np.broadcast_to(one, (1, 1, 1 << 20, 64))
    result = levelhead.attention(huge[:, :, :1], huge, huge, window=(1, 1), align=0)
    np.testing.assert_array_equal(result.o, 1)


def test_read_only_and_buffers(make):
    q, k, v = make(B=1)
    o = levelhead.attention(q, k, v).o
    q.flags.writeable = False
    np.testing.assert_array_equal(levelhead.attention(q, memoryview(k), memoryview(v)).o, o)
    sinks = array.array("f", [0, 1, 2, 3])
    with_sinks = levelhead.attention(q, k, v, sinks=sinks).o
    np.testing.assert_array_equal(with_sinks, levelhead.attention(q, k, v, sinks=np.asarray(sinks)).o)


class OnlyDlpack:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_dlpack_alone(make):
    q, k, v = make()
    result = levelhead.attention(*(OnlyDlpack(x) for x in (q, k, v)))
    assert isinstance(result.o, np.ndarray)
    np.testing.assert_array_equal(result.o, levelhead.attention(q, k, v).o)


def test_inputs_are_not_written(make):
    inputs = make()
    before = [x.copy() for x in inputs]
    levelhead.attention(*inputs, qk_norm="l2", statistics=True)
    for x, was in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(x, was)


def test_f64_is_taken_beside_f64(make, rng):
    q, k, v = make(dtype=np.float64)
    sinks = rng.standard_normal(4)
    np.testing.assert_allclose(levelhead.attention(q, k, v, sinks=sinks).o, naive.attention(q, k, v, sinks=sinks)[0], atol=1e-12)


def test_numpy_is_enough():
    """Neither torch nor ml_dtypes is imported by the package itself."""
    code = "import sys, levelhead; sys.exit(any(name in sys.modules for name in ('torch', 'ml_dtypes')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_torch_in_torch_out(make, torch, dtype):
    q, k, v = (torch.from_numpy(x).to(getattr(torch, dtype)) for x in make())
    result = levelhead.attention(q, k, v, statistics=True)
    assert isinstance(result.o, torch.Tensor) and result.o.dtype == q.dtype and result.o.shape == (2, 4, 9, 8)
    assert isinstance(result.lse, torch.Tensor) and isinstance(result.statistics.entropy, torch.Tensor)
    assert result.statistics.count.dtype == torch.int64 and result.statistics.saturated.dtype == torch.bool
    wanted = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in (q, k, v)), enable_gqa=True)
    tolerance = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    assert (result.o.double() - wanted).abs().max() < tolerance


def test_torch_is_not_copied(make, torch):
    q = torch.from_numpy(make()[0]).transpose(1, 2)
    read = _arrays.read("q", q)
    assert read.address == q.data_ptr() and read.strides == list(q.stride())
    assert _arrays.read("mask", torch.ones(3, 4, dtype=torch.bool)).dtype == "bool"


def test_torch_options_mixed_with_numpy(make, torch, rng):
    q, k, v = make()
    mask = rng.random((9, 13)) < 0.7
    o = levelhead.attention(torch.from_numpy(q), k, v, mask=torch.from_numpy(mask), scale=torch.tensor(0.3)).o
    assert isinstance(o, torch.Tensor)
    np.testing.assert_array_equal(o.numpy(), levelhead.attention(q, k, v, mask=mask, scale=float(np.float32(0.3))).o)
    assert isinstance(levelhead.attention(q, torch.from_numpy(k), v).o, np.ndarray)


def test_torch_gradients_are_not_dropped_in_silence(make, torch):
    q, k, v = (torch.from_numpy(x) for x in make())
    k.requires_grad_()
    with pytest.raises(ValueError, match=r"^k requires grad but this call records no gradient: pass k\.detach\(\)"):
        levelhead.attention(q, k, v)
    with torch.no_grad():
        o = levelhead.attention(q, k, v).o
    assert not o.requires_grad
    assert torch.equal(o, levelhead.attention(q, k.detach(), v).o)


def test_torch_elsewhere(make, torch):
    q, k, v = (torch.from_numpy(x) for x in make())
    with pytest.raises(ValueError, match=r"^v is on meta but attention is computed on the CPU: pass v\.cpu\(\)$"):
        levelhead.attention(q, k, v.to("meta"))
    with pytest.raises(ValueError, match=r"^q is torch.sparse_coo but must be strided: pass q\.to_dense\(\)$"):
        levelhead.attention(q.to_sparse(), k, v)


def test_bf16_of_torch_and_ml_dtypes_have_the_same_bits(make, torch, bfloat16):
    inputs = [x.astype(bfloat16) for x in make()]
    tensors = [torch.from_numpy(x.view(np.uint16)).view(torch.bfloat16) for x in inputs]
    of_torch = levelhead.attention(*tensors).o.view(torch.uint16).numpy()
    np.testing.assert_array_equal(levelhead.attention(*inputs).o.view(np.uint16), of_torch)
