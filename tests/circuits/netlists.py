"""Netlists that several tests run."""

RECTIFIER = """half-wave rectifier with RC load, ideal source
V1 in 0 SIN(0 10 50)
D1 in out DI
C1 out 0 100u IC=0
R1 out 0 100
.model DI D(Ron=0 Vfwd=0)
.tran 100u 60m UIC
.end
"""
BOOST = """boost converter, continuous conduction, then discontinuous after a load step
V1 in 0 DC 12
L1 in sw 100u IC=0
S1 sw 0 g 0 SWI
D1 sw out DI
C1 out 0 47u IC=12
R1 out 0 400
S2 out ld gl 0 SWI
R2 ld 0 20
VG g 0 PULSE(0 1 0 0 0 10u 20u)
VL gl 0 PULSE(0 1 0 0 0 2m)
.model DI D(Ron=0 Vfwd=0)
.model SWI SW(Ron=0 Vt=0.5)
.tran 1u 4m UIC
"""
OSCILLATOR = """relaxation oscillator: op-amp of infinite gain with rails -9 and 12
R1 out p 10k
R2 p 0 20k
C2 p 0 1n IC=0
R3 out q 10k
C1 q 0 100n IC=-7
E1 out 0 TABLE {V(p,q)} = (0,-9) (0,12)
.tran 10u 10m UIC
"""
ZENER = """two Zener diodes back to back limit the voltage of a capacitor
V1 in 0 SIN(0 20 1k)
R1 in out 1k
D1 m out DZA
D2 m 0 DZB
C1 out 0 100n IC=0
R2 out 0 10k
.model DZA D(Ron=0 Vfwd=0.7 Vrev=5.1)
.model DZB D(Ron=0 Vfwd=0.7 Vrev=3.3)
.tran 5u 3m UIC
"""
BRIDGE = """a bridge whose load floats
V1 a b SIN(0 10 50)
D1 a p DI
D2 b p DI
D3 n a DI
D4 n b DI
C1 p n 100u
R1 p n 100
.model DI D
"""
EXAMPLES = {"rectifier": RECTIFIER, "boost": BOOST, "oscillator": OSCILLATOR, "zener": ZENER, "bridge": BRIDGE}


MODELS = """
.model DI D(Ron=0 Vfwd=0)
.model DZ D(Ron=0 Vfwd=0.6 Vrev=4)
.model SWM SW(Ron=0 Vt=0.5)
"""


def random_converter(rng):
    """A source, up to four nodes more; between any two of them resistors, inductors, capacitors, diodes, switches with a clock."""
    n, kind, frequency = rng.integers(2, 6), rng.integers(3), rng.choice([50, 1000])
    lines = ["random", "V1 n1 0 " + ("DC 10", f"SIN(0 10 {frequency})", f"SIN(2 10 {frequency} 0 0 {rng.choice([0, 30, 90])})")[kind]]
    for k in range(2, n + 1):
        is_resistor = rng.random() < 0.8
        lines.append(f"{'R' if is_resistor else 'C'}g{k} n{k} 0 {10 ** (rng.uniform(2, 5) if is_resistor else rng.uniform(-7, -4)):.3g}")
    for k in range(rng.integers(n, 2 * n + 3)):
        a, b = rng.choice(["0", *(f"n{j}" for j in range(1, n + 1))], 2, replace=False)
        what, ohm = rng.choice(list("RRCLDDDDZS")), 10 ** rng.uniform(-1, 2)
        if what == "R":
            lines.append(f"R{k} {a} {b} {10 ** rng.uniform(0, 4):.3g}")
        elif what == "L":
            lines.append(f"L{k} {a} {b} {10 ** rng.uniform(-4, -1):.3g}")
        else:
            rest = {"C": f"C{k} x{k} {b} {10 ** rng.uniform(-7, -4):.3g}", "D": f"D{k} x{k} {b} DI", "Z": f"D{k} x{k} {b} DZ"}
            lines += [f"Rx{k} {a} x{k} {ohm:.3g}", rest.get(what, f"S{k} x{k} {b} g{k} 0 SWM")]
            if what == "S":
                lines.append(f"VG{k} g{k} 0 PULSE(0 1 {rng.integers(5)}00u 0 0 {rng.integers(1, 9)}00u 1m)")
    return "\n".join(lines) + MODELS
