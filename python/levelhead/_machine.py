"""What can compute attention on this machine."""

from __future__ import annotations

from typing import TypedDict

from . import _core


class Kernel(TypedDict):
    """One kernel: its name, whether this processor runs it, the types it takes, and what it needs or lacks."""

    name: str
    available: bool
    types: list[str]
    why: str


def kernels() -> list[Kernel]:
    """All kernels in order of preference, as `levelhead kernels --json` lists them."""
    return _core.kernels()


def cpu_name() -> str:
    """The processor's own name and the vector extensions that matter here."""
    return _core.cpu_name()
