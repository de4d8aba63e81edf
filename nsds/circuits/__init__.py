"""Circuits of ideal components: from a netlist to a record, and from a trajectory back to voltages and currents by their names."""

from nsds.circuits.balance import energy
from nsds.circuits.readings import current, events, mean, voltage
from nsds.circuits.record import circuit
from nsds.circuits.sources import set_source

__all__ = ["circuit", "current", "energy", "events", "mean", "set_source", "voltage"]


def __dir__():
    return __all__
