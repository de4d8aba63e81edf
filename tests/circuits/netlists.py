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
