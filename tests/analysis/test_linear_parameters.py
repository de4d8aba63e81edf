"""Derivatives of linear first-order systems by their parameters, through events, are those of closed forms."""

import numpy as np
import pytest

import nsds

NAMES = ["plant.b[0]", "plant.A[0][0]", "switches.e", "switches.C[0][0]", "switches.B[0][0]", "switches.upper"]


def relay(**changes):
    """``x' = A x + b + B lambda`` from -1 with ``lambda = -sgn(C x + e)``."""
    settings = {"A": [[0.0]], "B": [[-1.0]], "C": [[1.0]], "b": [2.0], "e": [0.0], "x": [-1.0], "law": nsds.relay(-1, 1)} | changes
    return nsds.linear_complementarity_system(**settings)


def test_a_surface_that_is_crossed():
    """x' = b - upper up to x = -e at t = 1, b + 1 from then on: there changes of x become three times as large."""
    slopes = [4.0, 0.0, 2.0, 0.0, 2.0, -3.0]
    found = nsds.sensitivity(relay(), t_end=2.0, parameters=NAMES)
    assert found["x"] == pytest.approx([3.0])
    np.testing.assert_allclose(found["by_parameters"][0], slopes, atol=1e-9)
    back = nsds.gradient(relay(), t_end=2.0, parameters=NAMES, objective=lambda x: x[0])
    np.testing.assert_allclose(back["gradient"], [3.0, *slopes], atol=1e-9)


def test_a_surface_on_which_it_slides():
    """x = -e / C, whatever else changes."""
    found = nsds.sensitivity(relay(B=[[1.0]], b=[0.5], e=[-0.3]), t_end=3.0, parameters=NAMES)
    np.testing.assert_allclose(found["by_parameters"][0], [0.0, 0.0, -1.0, -0.3, 0.0, 0.0], atol=1e-9)


def test_a_capacitor_behind_a_diode():
    """x' = (A - 1) x + 5 while the diode conducts."""
    circuit = nsds.circuit(["V1 a 0 5", "R1 a b 1k", "D1 b c DI", "C1 c 0 1m IC=0", ".model DI D"])
    found = nsds.sensitivity(circuit, t_end=1.0, parameters=["circuit.A[0][0]"])
    np.testing.assert_allclose(found["by_parameters"][0], [5 - 10 / np.e], rtol=1e-7)


def test_an_entry_that_steps_leave_out():
    """Held on ``x1 + C2 x2 = 0`` by lambda on x1, with x2' = 1: x1 = -C2 x2; of C2 = 0 the rate of y would not know C2."""

    def clamp(entry):
        return nsds.linear_complementarity_system(
            A=np.zeros((2, 2)), B=[[1.0], [0.0]], C=[[1.0, entry]], b=[-1.0, 1.0], x=[0.5, 0.0], law=nsds.complementarity()
        )

    with pytest.raises(ValueError, match=r"leave out what is 0, here one of switches.C\[0\]\[1\]: take a small number"):
        nsds.sensitivity(clamp(0.0), t_end=2.0, parameters=["switches.C[0][1]"])
    found = nsds.sensitivity(clamp(1e-9), t_end=2.0, parameters=["switches.C[0][1]"])
    np.testing.assert_allclose(found["by_parameters"][:, 0], [-2.0, 0.0], atol=1e-7)
