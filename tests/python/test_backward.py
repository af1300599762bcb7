"""Gradients against differences of f64 attention, and against PyTorch."""

import levelhead
import numpy as np
import pytest


def slope(loss, x, step=1e-6):
    """The gradient of loss() by central differences over every element of x."""
    gradient = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        was = x[i]
        x[i] = was + step
        up = loss()
        x[i] = was - step
        gradient[i] = (up - loss()) / (2 * step)
        x[i] = was
    return gradient


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ({"q": "dq", "k": "dk", "v": "dv", "bias": "dbias", "sinks": "dsinks", "alibi_slopes": "dslopes"}, {}),
        ({"q": "dq", "scale": "dscale"}, {"softcap": 2.0}),
        ({"k": "dk", "ssmax_s": "dssmax_s"}, {"scale": "ssmax"}),
        ({"q": "dq", "qk_gain": "dqk_gain"}, {"qk_norm": "l2"}),
    ],
)
def test_gradients(make, rng, names, options):
    arrays = dict(zip("qkv", make(B=1, Nq=3, Nk=4, D=5, Dv=2, dtype=np.float64), strict=True))
    shapes = {"bias": (1, 4, 1, 4), "scale": (4,)}
    arrays |= {name: rng.random(shapes.get(name, (4,))) for name in names if name not in arrays}
    options |= {"causal": True, "align": "bottom-right"}
    dout, dlse, dentropy = rng.standard_normal((1, 4, 3, 2)), rng.standard_normal((1, 4, 3)), rng.standard_normal((1, 4, 3))

    def loss():
        result = levelhead.attention(**arrays, **options, statistics="entropy")
        return (result.o * dout).sum() + (result.lse * dlse).sum() + (result.statistics.entropy * dentropy).sum()

    gradients = levelhead.backward(**arrays, **options, dout=dout, dlse=dlse, dentropy=dentropy)
    for name, gradient in names.items():
        np.testing.assert_allclose(getattr(gradients, gradient), slope(loss, arrays[name]), atol=1e-7, err_msg=gradient)
    given = set(names.values()) | {"dq", "dk", "dv", "info"}
    assert {name for name, x in gradients._asdict().items() if x is not None} == given
    assert gradients.info.kernel and gradients.info.flops > 0


def test_rank_3(make, rng):
    q, k, v = make(B=1)
    per_row, dout = rng.random((4, 9)).astype(np.float32), np.ones((4, 9, 8), np.float32)
    flat = levelhead.backward(q[0], k[0], v[0], scale=per_row, dout=dout)
    whole = levelhead.backward(q, k, v, scale=per_row[None], dout=dout[None])
    assert flat.dscale.shape == (4, 9) and flat.dq.shape == q.shape
    np.testing.assert_array_equal(flat.dscale, whole.dscale[0])
    np.testing.assert_array_equal(flat.dk, whole.dk)


def test_errors(make):
    q, k, v = make()
    with pytest.raises(ValueError, match="^backward needs at least one of dout, dlse and dentropy$"):
        levelhead.backward(q, k, v)
    with pytest.raises(ValueError, match=r"^dout \[2, 4, 9, 7\] must be \[B, Hq, Nq, Dv\] = \[2, 4, 9, 8\]$"):
        levelhead.backward(q, k, v, dout=np.zeros((2, 4, 9, 7), np.float32))


def test_torch(make, torch):
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in make(Hk=4))
    dout = torch.from_numpy(make()[0][..., :8].copy())
    torch.nn.functional.scaled_dot_product_attention(q, k, v).backward(dout)
    with torch.no_grad():
        gradients = levelhead.backward(q, k, v, dout=dout)
    for mine, theirs in ((gradients.dq, q.grad), (gradients.dk, k.grad), (gradients.dv, v.grad)):
        assert isinstance(mine, torch.Tensor) and (mine - theirs).abs().max() < 1e-5


@pytest.mark.parametrize("of", ["dout", "dlse", "dentropy"])
def test_f32_is_close_to_f64(make, rng, of):
    q, k, v = make()
    incoming = {of: rng.standard_normal((2, 4, 9, 8) if of == "dout" else (2, 4, 9)).astype(np.float32)}
    single = levelhead.backward(q, k, v, **incoming)
    double = levelhead.backward(*(x.astype(np.float64) for x in (q, k, v)), **{of: incoming[of].astype(np.float64)})
    for name in ("dq", "dk", "dv"):
        assert getattr(single, name).dtype == np.float32
        np.testing.assert_allclose(getattr(single, name), getattr(double, name), atol=1e-5, err_msg=name)
