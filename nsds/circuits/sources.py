"""Sources of a circuit's record that take other waves, as of a controller that sets the duty ratio of a converter."""

import numpy as np

from nsds import _checks
from nsds.circuits.netlist import read
from nsds.circuits.readings import follows_rate
from nsds.circuits.record import IMPULSIVE
from nsds.circuits.waveforms import numbers_of, place_of
from nsds.model.records import model_of
from nsds.model.system_kinds import NAMES
from nsds.model.validation import valid

_OWNER = "set_source"


def set_source(system, name, wave):
    """Give a source of a circuit another wave, in its record: a few microseconds, and what runs have prepared of it serves on.

    Parameters
    ----------
    system : numpy.ndarray
        Record of `nsds.circuit`, or an ensemble of such records; changed in place.
    name : str
        Voltage or current source of the netlist, one that varies in time.
    wave : str
        As in a netlist, ``"PULSE(0 1 0 0 0 2.5u 10u)"``, of the kind and with as many corners as the source has: SIN, PULSE and PWL,
        EXP, AM, or SFFM.

    Raises
    ------
    TypeError, ValueError
        Not a circuit, no such source, one that is constant in the netlist, a wave that cannot be read, or one of another kind or length.

    Notes
    -----
    States of the record remain as they are. A wave of linear pieces (PULSE, PWL) needs no new preparation, in `nsds.stepper` and in runs
    that follow each other; another one does under `nsds.event_driven`.

    Examples
    --------
    A buck converter whose duty ratio follows an integral controller, once a period, event by event:

    >>> import nsds
    >>> T = 1e-5
    >>> buck = nsds.circuit(f'''buck converter
    ... Vin in 0 24
    ... S1 in sw g 0 SW
    ... Vg g 0 PULSE(0 1 0 0 0 {0.4 * T} {T})
    ... D1 0 sw DI
    ... L1 sw out 100u
    ... C1 out 0 47u
    ... R1 out 0 5
    ... .model SW SW(Vt=0.5)
    ... .model DI D
    ... ''')
    >>> advance, duty = nsds.stepper(buck, T, scheme=nsds.event_driven()), 0.4
    >>> for _ in range(600):
    ...     duty += 1e-3 * (12.0 - float(buck["circuit"]["x"][0]))  # the capacitor's voltage
    ...     nsds.circuits.set_source(buck, "Vg", f"PULSE(0 1 0 0 0 {duty * T} {T})")
    ...     buck = advance(buck)
    >>> round(float(buck["circuit"]["x"][0]), 1), round(duty, 2)
    (12.0, 0.5)
    """
    # 1. record, and places of the source's waves
    if not isinstance(system, np.ndarray):
        raise TypeError(f"{_OWNER}: system must be a record of nsds.circuit, which is changed in place, got {_checks.shortened(system)}")
    records = valid(_OWNER, system)
    if ("names", NAMES) not in [line[:2] for line in model_of(records)]:
        raise ValueError(f"{_OWNER}: system must be a record of nsds.circuit, with the part 'names'")
    known = np.ravel(records["names"]["source_names"])[0].decode().split()
    wanted = {each.upper(): each for each in known if "#" not in each}
    if not isinstance(name, str) or name.upper() not in wanted:
        names = ", ".join(wanted.values()) or "none"
        raise ValueError(
            f"{_OWNER}: there is no source {_checks.shortened(name)} that varies in time; these are: {names}. "
            "What is constant in the netlist is in the matrices"
        )
    name = wanted[name.upper()]
    # 2. the wave, by the reader of netlists
    if not isinstance(wave, str):
        raise TypeError(f"{_OWNER}: wave must be a text such as 'PULSE(0 1 0 0 0 2.5u 10u)', got {_checks.shortened(wave)}")
    try:
        elements, _ = read([f"V1 1 0 {wave}", "R1 1 0 1"], {})
    except ValueError as error:
        raise ValueError(f"{_OWNER}: wave of '{name}': {error}") from None
    if len(elements) > 2:
        raise ValueError(f"{_OWNER}: wave of '{name}' must be a wave alone, got {_checks.shortened(wave)}")
    if elements[0].value.has_steps and follows_rate(records[(0,) * records.ndim], known.index(name)):
        raise ValueError(f"{_OWNER}: wave of '{name}': {IMPULSIVE}")
    numbers = {each: numbers_of(one) for each, one in elements[0].value.parts(name).items()}
    # 3. its numbers in place of the old ones, wherever kernels and readings look for them
    fields = [system[part]["z"] for part in ("circuit", "devices", "names") if "z" in (system.dtype[part].names or ())]
    rows = [z[index] for z in fields for index in np.ndindex(system.shape)]
    changes = [(row, place_of(known.index(each), row), new) for each, new in numbers.items() if each in known for row in rows]
    own = [each for each in known if each.partition("#")[0] == name]
    if set(own) != set(numbers) or any((row[at : at + 2] != new[:2]).any() for row, at, new in changes):
        raise ValueError(
            f"{_OWNER}: the wave of '{name}' must be of the kind and have as many numbers as in the netlist, got {_checks.shortened(wave)}"
        )
    for row, at, new in changes:
        row[at : at + new.size] = new
