"""The package as a whole: names, types, what the module shows."""

import ast
import importlib.metadata
import inspect
import json
import pathlib
import re
import subprocess

import levelhead
import numpy as np
from levelhead import _core


def test_version(root):
    assert levelhead.__version__ == importlib.metadata.version("levelhead")
    assert f'"{levelhead.__version__}"' in (root / "include/levelhead/version.hpp").read_text()


def test_kernels(command):
    said = json.loads(subprocess.run([command, "kernels", "--json"], check=True, capture_output=True).stdout)
    assert levelhead.kernels() == said["kernels"] and levelhead.cpu_name() == said["cpu"]


def test_every_kernel_runs_or_says_why_not(make):
    q, k, v = make()
    right = levelhead.attention(q, k, v, kernel="reference").o
    for kernel in levelhead.kernels():
        if kernel["available"] and "f32" in kernel["types"]:
            result = levelhead.attention(q, k, v, kernel=kernel["name"])
            assert result.info.kernel == kernel["name"]
            np.testing.assert_allclose(result.o, right, atol=1e-5)
        else:
            try:
                levelhead.attention(q, k, v, kernel=kernel["name"])
            except ValueError as error:
                assert kernel["name"] in str(error)
            else:
                raise AssertionError(f"{kernel['name']} ran")


def test_everything_public_is_documented_and_typed():
    assert (pathlib.Path(levelhead.__file__).parent / "py.typed").exists()
    for name in levelhead.__all__:
        thing = getattr(levelhead, name)
        if name != "__version__":
            assert inspect.getdoc(thing), name
        if inspect.isfunction(thing):
            for parameter in inspect.signature(thing).parameters.values():
                assert parameter.annotation is not parameter.empty, f"{name}: {parameter}"
                assert re.search(rf"\b{parameter.name}\b", thing.__doc__), f"{name} does not document {parameter.name}"


def test_the_stub_names_what_the_module_has():
    stub = ast.parse((pathlib.Path(levelhead.__file__).parent / "_core.pyi").read_text())
    public = lambda names: {name for name in names if not name.startswith("_")}
    named = {}
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            named[node.name] = public(
                item.target.id if isinstance(item, ast.AnnAssign) else getattr(item, "name", "_") for item in node.body
            )
        elif isinstance(node, ast.FunctionDef):
            named[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            named[node.target.id] = None
    assert set(named) == public(dir(_core))
    for name, members in named.items():
        if members is not None:
            assert members == public(dir(getattr(_core, name))), name


def test_the_module_exports_its_entry_alone():
    lines = subprocess.run(["nm", "-D", "--defined-only", _core.__file__], check=True, capture_output=True, text=True).stdout
    assert [line.split()[-1] for line in lines.splitlines()] == ["PyInit__core"]


def test_the_page_has_every_option(root):
    page = (root / "docs/python.md").read_text()
    for function in (levelhead.attention, levelhead.backward, levelhead.check, levelhead.decode):
        for name in inspect.signature(function).parameters:
            assert f"`{name}`" in page or f"`{name}=" in page, f"docs/python.md does not say {name} of {function.__name__}"
