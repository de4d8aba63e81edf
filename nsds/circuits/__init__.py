"""Circuits of ideal components: from a netlist to a record, and from a trajectory back to voltages and currents by their names."""

from nsds import _checks

# Few programs need them, but all runs what is in `nsds.circuits.waveforms`.
_PLACES = {
    "circuit": "nsds.circuits.record",
    "current": "nsds.circuits.readings",
    "energy": "nsds.circuits.balance",
    "events": "nsds.circuits.readings",
    "mean": "nsds.circuits.readings",
    "set_source": "nsds.circuits.sources",
    "voltage": "nsds.circuits.readings",
}
__all__ = [*_PLACES]
__getattr__, __dir__ = _checks.imported_later(__name__, _PLACES)
