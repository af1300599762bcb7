import pathlib

import numpy as np
import pytest

TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16}


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def make(rng):
    """make(B, Hq, Hk, Nq, Nk, D, Dv, dtype) -> q, k, v of unit normals."""

    def of(B=2, Hq=4, Hk=2, Nq=9, Nk=13, D=16, Dv=8, dtype=np.float32):
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in ((B, Hq, Nq, D), (B, Hk, Nk, D), (B, Hk, Nk, Dv)))

    return of


@pytest.fixture(scope="session")
def bfloat16():
    return pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed (pip install '.[test-torch]')")


@pytest.fixture(scope="session")
def root():
    return pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session")
def command(root):
    """The built command, which answers the same questions."""
    path = root / "build/release/bin/levelhead"
    if not path.exists():
        pytest.skip("the command is not built (make build)")
    return path
