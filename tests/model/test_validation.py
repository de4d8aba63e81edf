"""Records that were edited, or come from elsewhere, are checked before anything is computed with them."""

import numpy as np
import pytest

import nsds
from nsds.model import validation
from nsds.model.records import model_of
from nsds.model.system_kinds import SYSTEMS
from nsds.model.validation import valid
from tests.benchmarks.edited_records import MODELS, OWN, edit_of, leaves, outcome
from tests.sparse import FORMATS, kept, stored

SOME = OWN | {name: MODELS[name] for name in ("bouncing_ball", "box_stack", "relay_oscillator", "circuit_rlcd")}


def bouncing():
    return nsds.examples.bouncing_ball()


def sparse():
    return OWN["sparse_chain"][0]()


def mechanism():
    return OWN["mechanism"][0]()


def plant():
    return OWN["controlled_plant"][0]()


def beads():
    return OWN["beads_on_a_ring"][0]()


def test_what_constructors_make_is_left_as_it_is():
    for build, _ in SOME.values():
        record = build()
        assert valid("test", record) is record


@pytest.mark.parametrize("name", SOME)
def test_every_leaf_has_a_rule(name):
    """A range for each number, and kinds that cover all words but texts: a leaf without a rule would be trusted."""
    record = SOME[name][0]()
    rules = validation._rules(record.dtype, record["model"].reshape(-1)[0])
    covered = np.zeros(record.dtype.itemsize // 8, bool)
    for start, count, stride, ranges in rules.parts.values():
        for each in ranges:
            for element in range(count):
                covered[start + element * stride + each.start :][: each.size] = True
    texts = np.zeros_like(covered)
    for path in leaves(record.dtype):
        start, dtype = 0, record.dtype
        offsets = np.zeros(1, int)
        for field in path:
            inner, at = dtype.base.fields[field][:2]
            size = int(np.prod(inner.shape, dtype=int))
            offsets = (offsets[:, None] + at // 8 + inner.base.itemsize // 8 * np.arange(size if inner.base.names else 1)).reshape(-1)
            dtype = inner
        if dtype.base.kind == "S" or path == ("residual",):  # which is NaN after a step that failed
            for start in offsets:
                texts[start : start + dtype.itemsize // 8] = True
    assert (covered != texts).all()


def test_the_table_knows_all_systems():
    assert set(validation.SYSTEM_FIELDS) == set(SYSTEMS)


@pytest.mark.parametrize(
    ("build", "path", "value", "message"),
    [
        (sparse, "bar.K.indices", 10**6, r"simulate: bar\.K\.indices must be a whole number in \[0, 5\], got 1000000"),
        (sparse, "bar.K.indices", -1, r"bar\.K\.indices must be a whole number in \[0, 5\], got -1"),
        (sparse, "bar.K.indptr", 3, r"bar\.K\.indptr must rise from 0 to 16"),
        (sparse, "bar.K.indptr", 2**62, r"bar\.K\.indptr must be a whole number in \[0, 16\]"),
        (sparse, "stops.H.indices", 6, r"stops\.H\.indices must be a whole number in \[0, 5\], got 6"),
        (sparse, "held.dofs", 99, r"held\.dofs must be a whole number in \[0, 5\], got 99"),
        (sparse, "bar.M.data", -1.0, r"bar\.M must be positive semidefinite, got an entry of -1"),
        (sparse, "stops.active", 2, r"stops\.active must be a whole number in \[0, 1\], got 2"),
        (beads, "ring.element", 3, r"ring\.element must be a whole number in \[0, 2\], got 3"),
        (beads, "beads.M", -1.0, r"beads\.M must be positive definite"),
        (beads, "touch.mu", -0.1, r"touch\.mu must be finite and at least 0, got -0\.1"),
        (plant, "mixed.n_equalities", 2, r"mixed\.n_equalities must be a whole number in \[0, 1\], got 2"),
        (plant, "plant.A.indices", 2, r"plant\.A\.indices"),
        (plant, "loop.period", -1.0, r"loop\.period must be finite and at least 0"),
        (plant, "relay.lower", 3.0, r"relay\.lower must be at most relay\.upper"),
        (mechanism, "contacts.n", 25, r"contacts\.n must be a whole number in \[0, 24\], got 25"),
        (mechanism, "contacts.shape_body", 4, r"contacts\.shape_body must be a whole number in \[-1, 3\], got 4"),
        (mechanism, "contacts.shape_kind", 13, r"contacts\.shape_kind must be a whole number in \[0, 12\], got 13"),
        (mechanism, "contacts.shape_kind", 4, r"contacts\.shape_size must be positive lengths of a convex"),
        (mechanism, "pivot.geometry.w", 1e300, r"pivot\.geometry\.w must be unit vectors"),
        (mechanism, "stop.geometry.u", 0.0, r"stop\.geometry\.u must be unit vectors"),
        (mechanism, "contacts.shape_pose", 2.0, r"contacts\.shape_pose\[3:\] must be unit quaternions"),
        (mechanism, "stop.geometry.row", 6, r"stop\.geometry\.row must be a whole number in \[0, 5\]"),
        (mechanism, "pivot.geometry.row", 2, r"pivot\.geometry\.row has kinds that want the field angle"),
        (mechanism, "links.mext_inertial", 2, r"links\.mext_inertial"),
        (bouncing, "t", np.nan, "simulate: t must be finite, got nan"),
        (bouncing, "status", 2**20, "simulate: status must be a whole number"),
        (bouncing, "step", -1, "simulate: step must be a whole number"),
        (bouncing, "floor.e", 1.5, r"floor\.e must be in \[0, 1\], got 1\.5"),
    ],
)
def test_values_out_of_their_range_are_named(build, path, value, message):
    record = build()
    leaf = record
    for field in path.split("."):
        leaf = leaf[field]
    leaf[...] = value
    with pytest.raises(ValueError, match=message):
        nsds.simulate(record, t_end=record["t"].item() + 0.1 if np.isfinite(record["t"]) else 1.0, h=0.01)


@pytest.mark.parametrize(
    "run", [nsds.step, nsds.consistent, nsds.relative_degree, nsds.report, nsds.energy, nsds.plotting.scene, nsds.restart]
)
def test_every_function_checks(run):
    record = plant() if run is nsds.relative_degree else mechanism() if run is nsds.plotting.scene else sparse()
    rows = np.zeros(1, [*((name, "f8") for name in ("t", "step", "status", "n_iter", "residual"))])
    arguments = {nsds.step: (record, 0.01), nsds.report: (record, rows), nsds.energy: (record, rows), nsds.restart: (record, rows[0])}.get(
        run, (record,)
    )
    record["status"] = 10**6
    with pytest.raises(ValueError, match="status must be a whole number"):
        run(*arguments)


def test_an_error_tells_member_and_element():
    record = np.repeat(beads(), 3)
    record["beads"]["q"][2, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"beads\.q must be finite, got nan at entry 0 of element 1 of member 2"):
        nsds.simulate(record, t_end=0.1, h=0.01)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (b"", "must have a line for each part"),
        (b"\xff\xfe", "must have a line for each part"),
        (b"ball lagrangian_linear", "the record's fields must be"),
        (b"ball no_such_kind\nfloor lagrangian_linear_relation newton_impact ball", "'no_such_kind'"),
        (b"ball first_order\nfloor lagrangian_linear_relation newton_impact ball", "must have a vector x"),
        (b"ball lagrangian_linear\nfloor lagrangian_linear_relation newton_impact wall", "acts on wall; systems are: ball"),
        (b"ball lagrangian_linear\nfloor lagrangian_linear_relation normal_cone ball", "with the law normal_cone on Lagrangian systems"),
        (b"ball lagrangian_linear\nfloor scleronomous newton_impact ball", "floor.h is missing|floor.H must be"),
        (b"ball lagrangian_linear\nfloor joint newton_impact ball", "is a joint with the law newton_impact on Lagrangian"),
        (b"ball lagrangian\nfloor lagrangian_linear_relation newton_impact ball", "K|C|M"),
    ],
)
def test_models_that_do_not_fit_are_refused(model, message):
    record = nsds.system(
        ball=nsds.lagrangian_linear([1.0], K=[1.0], q=[1.0], v=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.newton_impact(0.5), on="ball"),
    )
    record["model"] = model
    with pytest.raises(ValueError, match=message):
        nsds.simulate(record, t_end=0.1, h=0.01)


def test_other_layouts_are_converted():
    record = beads()
    expected = nsds.simulate(record, t_end=0.05, h=0.01)
    swapped = record.astype(record.dtype.newbyteorder())
    buffer = np.zeros(record.nbytes + 3, np.uint8)
    moved = buffer[3:].view(record.dtype).reshape(())
    moved[...] = record
    aligned = record.astype(np.dtype({"names": record.dtype.names, "formats": [record.dtype[name] for name in record.dtype.names],
                                      "offsets": [record.dtype.fields[name][1] + 8 for name in record.dtype.names]}))  # fmt: skip
    for other in (swapped, moved, aligned, np.repeat(record, 4)[::2][1], np.rec.array(record)):
        rows = nsds.simulate(other, t_end=0.05, h=0.01)
        assert rows.tobytes() == expected.tobytes()
    wrong = np.zeros((), [(name, record.dtype[name] if name != "t" else object) for name in record.dtype.names])
    wrong["model"] = record["model"]
    with pytest.raises(TypeError, match="t must hold float64"):
        nsds.simulate(wrong, t_end=0.05, h=0.01)


@pytest.mark.parametrize(
    ("options", "field", "value", "message"),
    [
        (nsds.moreau_jean(), "theta", 7.0, r"moreau_jean: theta must be in \[0.0, 1.0\], got 7.0"),
        (nsds.moreau_jean(), "newton_tol", np.nan, "newton_tol must be finite"),
        (nsds.moreau_jean(), "newton_max_iter", 0, "newton_max_iter must be at least 1"),
        (nsds.moreau_jean(), "form", b"none", "form must be one of"),
        (nsds.generalised_alpha(), "rho", -1.0, "rho"),
        (nsds.d1_minus_linear(), "level", b"none", "level must be one of"),
        (nsds.event_driven(), "hybrid", 7, "hybrid must be 0 or 1 or 2"),
        (nsds.moreau_jean_combined_projection(), "max_rounds", -3, "max_rounds"),
    ],
)
def test_options_that_were_edited_are_checked(options, field, value, message):
    options[field] = value
    with pytest.raises(ValueError, match=message):
        nsds.step(bouncing(), 0.01, scheme=options)


@pytest.mark.parametrize(
    ("record", "field", "value", "message"),
    [
        (bouncing, "tol", np.nan, "tol must be finite"),
        (bouncing, "max_iter", -1, "max_iter must be at least 1"),
        (bouncing, "method", b"no_such", "method must be one of"),
        (mechanism, "tol", -1.0, "tol must be"),
        (mechanism, "max_iter", -1, "max_iter must be at least 1"),
        (mechanism, "inexact", np.nan, "inexact must be finite"),
        (mechanism, "local", b"no_such", "local must be one of"),
        (mechanism, "local", b"", "local must be one of"),
    ],
)
def test_solvers_that_were_edited_are_checked(record, field, value, message):
    solver = nsds.solvers.solver()
    solver[field] = value
    with pytest.raises(ValueError, match=message):
        nsds.step(record(), 0.01, solver=solver)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"t_end": 1e300, "h": 0.01}, "lost in the rounding of times like 1e"),
        ({"t_end": 1.0, "h": 1e-20}, "lost in the rounding of times like 1"),
    ],
)
def test_times_that_cannot_be_told_apart_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        nsds.simulate(bouncing(), **arguments)
    record = bouncing()
    record["t"] = 1e9
    with pytest.raises(ValueError, match="lost in the rounding of times like 1e"):
        nsds.step(record, 1e-9)


def test_a_report_is_one_of_the_system():
    rows = nsds.simulate(bouncing(), t_end=0.05, h=0.01)
    with pytest.raises(ValueError, match="report: the trajectory is that of another system"):
        nsds.report(beads(), rows)
    with pytest.raises(ValueError, match="it has the shape"):
        nsds.report(np.repeat(bouncing(), 2), rows)


def test_indefinite_masses_are_refused():
    import scipy.sparse as sp

    M = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])  # least eigenvalue -0.8, positive minors of two rows
    for mass in (M, sp.csr_array(M), -np.ones(3), -np.eye(3), sp.csr_array(-np.eye(3))):
        with pytest.raises(ValueError, match="M must be positive semidefinite"):
            nsds.lagrangian_linear(mass, q=np.zeros(3), v=np.zeros(3))
    for mass in (np.diag([1.0, 1.0, 0.0]), sp.csr_array(np.eye(3)), np.ones((3, 3)), sp.csr_array(np.ones((3, 3)))):
        nsds.lagrangian_linear(mass, q=np.zeros(3), v=np.zeros(3))


def writes_beyond(t, z, out):
    out[0 if t < 0.05 else 3] = 1.0


def reads_beyond(t, z, out):
    out[0] = z[0 if t < 0.05 else 5]


def fails(t, z, out):
    out[0] = 1.0
    if t > 0.05:
        raise RuntimeError("on purpose")


def writes_its_parameters(t, z, out):
    z[0], out[0] = 2.0, 1.0


@pytest.mark.parametrize("on_failure", ["raise", "continue"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (writes_beyond, r"step 5 .*part 'ball': fext\(t, z, out\), writes_beyond, at t = 0\.05.*out \(1,\): index 3 is out of bounds"),
        (reads_beyond, r"reads_beyond, at t = 0\.05, with the shapes t \(\), z \(1,\), out \(1,\): index 5 is out of bounds"),
        (fails, "fails, at t = 0.06.*on purpose"),
        (writes_its_parameters, r"writes_its_parameters, at t = .*wrote into z\[0\]"),
    ],
)
def test_checked_runs_name_what_a_function_does_wrong(function, message, on_failure):
    record = nsds.system(ball=nsds.lagrangian_linear([1.0], fext=function, q=[0.0], v=[0.0], z=[1.0]))
    with pytest.raises(nsds.SimulationError, match=message) as caught:
        nsds.simulate(record, t_end=0.1, h=0.01, check=True, on_failure=on_failure)
    assert len(caught.value.trajectory) > 0
    with pytest.raises(nsds.SimulationError, match=function.__name__):
        nsds.simulate(np.repeat(record, 3), t_end=0.1, h=0.01, check=True)


@pytest.mark.parametrize("name", list(OWN))
def test_checked_runs_give_the_same_bits(name):
    build, run = OWN[name]
    arguments = {"t_end": 0.05, "h": run["h"]}
    assert nsds.simulate(build(), **arguments, check=True).tobytes() == nsds.simulate(build(), **arguments).tobytes()


@pytest.mark.filterwarnings("ignore")
def test_edited_records_are_refused_or_computed():
    """A part of `python -m tests.benchmarks.edited_records`, of the models whose kernels other tests compile."""
    found = []
    for i in range(250):
        name, record, run, what = edit_of(7, i, OWN)
        with np.errstate(all="ignore"):
            result = outcome(record, run)
        if result.partition(":")[0] not in ("refused", "failed", "computed"):
            found.append(f"{i} {name}: {what}: {result}")
    assert not found, "\n".join(found)


def test_models_hold_each_kind():
    kinds = {line[1] for build, _ in SOME.values() for line in model_of(build())}
    assert kinds >= {"lagrangian_linear", "lagrangian", "first_order_linear", "rigid_bodies", "joint", "collisions", "sampled_control"}


def test_advice_on_controllers_fits_the_kind_of_the_system():
    def control(t, x, state, z, u):
        u[0] = 0.0

    loop = nsds.sampled_control(control, reads="part", writes="part")
    with pytest.raises(ValueError, match="give it u=numpy"):
        nsds.system(part=nsds.lagrangian([1.0], q=[0.0], v=[0.0]), loop=loop)
    with pytest.raises(ValueError, match=r"make it a nsds\.lagrangian"):
        nsds.system(part=nsds.lagrangian_linear([1.0], q=[0.0], v=[0.0]), loop=loop)


def helper_of(module_name, factor):
    import types

    module = types.ModuleType(module_name)
    exec(f"import numba\n@numba.njit\ndef f(x):\n    return {factor} * x\n", vars(module))
    return module


def test_a_function_is_another_when_what_it_calls_through_a_module_is(monkeypatch):
    names = []
    for factor in (1.0, 2.0):
        monkeypatch.setitem(globals(), "helper", helper_of("helper", factor))
        names.append(nsds.model.functions.function_name(calls_a_helper, "lagrangian_linear", "fext"))
    assert names[0] != names[1]


def calls_a_helper(t, z, out):
    out[0] = helper.f(t)  # noqa: F821


def test_numbers_of_numpy_are_numbers():
    three, half = np.int32(3), np.float32(0.5)
    beads = nsds.lagrangian_linear(M=np.float64(1.0), q=np.arange(3), v=np.array(0), count=three)
    contact = nsds.newton_impact(np.array(half))
    system = nsds.system(t=np.int64(0), beads=beads, floor=nsds.interaction(nsds.lagrangian_linear_relation([[True]]), contact, on="beads"))
    scheme = nsds.moreau_jean(theta=half, newton_max_iter=np.array(20))
    rows = nsds.simulate(system, t_end=np.int64(1), h=half, scheme=scheme, save_every=np.int8(1), progress=np.False_)
    assert rows.shape == (3,)


def test_a_law_of_no_contacts_fits_no_interaction():
    ball = nsds.lagrangian_linear([1.0], q=[0.0], v=[0.0])
    floor = nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.newton_impact([]), on="ball")
    with pytest.raises(ValueError, match=r"e must be a number or have shape \(1,\), got \(0,\)"):
        nsds.system(ball=ball, floor=floor)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_sparse_matrices_of_models_stay_as_they_are(kind, dtype):
    """Those of masses, stiffness, rates and relations; the record is that of the dense ones."""

    def build(of):
        M, H = of(2 * np.eye(3, dtype=dtype)), of(np.eye(2, 3, dtype=dtype))
        chain = nsds.lagrangian_linear(M=M, K=M, C=M, q=np.zeros(3), v=np.zeros(3))
        stops = nsds.interaction(nsds.lagrangian_linear_relation(H=H), nsds.newton_impact(0.5), on="chain")
        tanks = nsds.system(tanks=nsds.first_order_linear(A=M, M=M, x=np.ones(3)))
        return (M, H), nsds.system(chain=chain, stops=stops), tanks

    before = [kept(stored(matrix.astype(dtype), kind)) for matrix in (2 * np.eye(3), np.eye(2, 3))]
    matrices, *systems = build(lambda matrix: stored(matrix, kind))
    assert [kept(matrix) for matrix in matrices] == before
    for sparse_system, dense_system in zip(systems, build(lambda matrix: matrix)[1:], strict=True):
        rows, expected = (nsds.simulate(each, t_end=0.1, h=0.01) for each in (sparse_system, dense_system))
        first = sparse_system.dtype.names[-2 if "stops" in sparse_system.dtype.names else -1]
        for field in rows.dtype[first].names:
            np.testing.assert_allclose(rows[first][field], expected[first][field], atol=1e-12)
