"""Types of a public module. Made from the docstrings by ``python -m tests.stubs``."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

__all__ = ["circuit", "current", "energy", "events", "mean", "voltage"]

def circuit(
    netlist: str | PathLike[str] | Sequence[Any],
    params: dict[str, Any] | None = ...,
    *,
    integrals: Sequence[str] | None = ...,
    t: float = ...,
) -> np.ndarray: ...
def current(system: np.ndarray | dict[str, Any], trajectory: np.ndarray, element: str) -> np.ndarray: ...
def energy(system: np.ndarray | dict[str, Any], trajectory: np.ndarray, theta: float = ...) -> np.ndarray: ...
def events(system: np.ndarray | dict[str, Any], trajectory: np.ndarray) -> np.ndarray: ...
def mean(system: np.ndarray | dict[str, Any], trajectory: np.ndarray, reading: str, start: float, end: float) -> float: ...
def voltage(system: np.ndarray | dict[str, Any], trajectory: np.ndarray, node: str, reference: str = ...) -> np.ndarray: ...
