"""Records: plain NumPy arrays that say what they are."""

import io
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import nsds
from nsds.model.records import memory, words

relation = nsds.lagrangian_linear_relation


def small_system(**changes):
    ball = {"M": [[2.0]], "q": [1.0], "v": [0.0], **changes}
    return nsds.system(ball=nsds.lagrangian_linear(**ball), floor=nsds.interaction(relation(H=[[1.0]]), nsds.newton_impact(0.9), on="ball"))


def leaves(dtype):
    if dtype.subdtype:
        yield from leaves(dtype.subdtype[0])
    elif dtype.names:
        for name in dtype.names:
            yield from leaves(dtype[name])
    else:
        yield dtype


def test_every_leaf_is_a_multiple_of_eight_bytes():
    system = nsds.system(
        bar=nsds.lagrangian_linear(M=sp.eye_array(3), K=np.ones(3), C=np.eye(3), q=np.zeros(3), v=np.zeros(3), z=[1.0]),
        wall=nsds.interaction(relation(H=np.eye(3)[:2], b=[1, 2], D=np.eye(2)), nsds.newton_impact([0.1, 0.2]), on="bar"),
    )
    assert all(leaf.itemsize % 8 == 0 and leaf.kind in "fiS" for leaf in leaves(system.dtype))
    assert system["wall"]["e"].shape == (2,)


def test_memory_is_shared_and_offsets_count_words():
    system = small_system()
    mem = memory(system)
    offset, _ = words(system.dtype, "ball", "M")
    mem[0, offset] = 7.0
    assert system["ball"]["M"].item() == 7.0


def test_record_behaves_as_an_array():
    system = small_system()
    file = io.BytesIO()
    np.save(file, system, allow_pickle=False)
    file.seek(0)
    loaded = np.load(file, allow_pickle=False)
    assert loaded == system
    assert pickle.loads(pickle.dumps(system)) == system
    systems = np.repeat(system, 3)
    systems["floor"]["e"] = np.linspace(0, 1, 3)
    assert systems["ball"]["M"].shape == (3, 1, 1)
    assert systems[1]["floor"]["e"] == 0.5
    np.testing.assert_array_equal(nsds.simulate(loaded, t_end=1.0, h=0.01), nsds.simulate(system, t_end=1.0, h=0.01))


def test_simulate_does_not_change_its_input():
    system = small_system()
    before = system.tobytes()
    nsds.simulate(system, t_end=1.0, h=0.01)
    nsds.step(system, h=0.01)
    assert system.tobytes() == before


def test_integers_never_truncate():
    system = nsds.system(ball=nsds.lagrangian_linear(M=[1], fext=[-1], q=[1], v=[0]))
    assert system["ball"]["q"].dtype == np.float64
    assert nsds.simulate(system, t_end=0.1, h=0.1)["ball"]["v"][-1, 0] == -0.1


@pytest.mark.parametrize("M", [2.0, [2.0], [[2.0]], sp.csr_array([[2.0]])])
def test_one_coordinate_may_be_written_as_a_number(M):
    system = nsds.system(ball=nsds.lagrangian_linear(M=M, fext=-1.0, q=0.0, v=0.0))
    assert nsds.simulate(system, t_end=1.0, h=0.5)["ball"]["v"][-1, 0] == -0.5


def test_elements_are_chosen_as_in_numpy():
    def chosen(on, H=((1.0,),)):
        beads = nsds.lagrangian_linear(M=1.0, q=np.arange(6.0), v=0.0, count=6)
        system = nsds.system(beads=beads, i=nsds.interaction(relation(H=H), nsds.equality(), on=on))
        return system["i"]["element"].tolist()

    assert chosen("beads") == [[i] for i in range(6)]
    assert chosen("beads[2]") == [2]
    assert chosen("beads[-1]") == [5]
    assert chosen("beads[1:6:2]") == [[1], [3], [5]]
    assert chosen(("beads", [4, -6])) == [[4], [0]]
    assert chosen(("beads[:-1]", "beads[1:]"), H=[[-1.0, 1.0]]) == [[i, i + 1] for i in range(5)]
    assert chosen((("beads", [0, 1]), "beads[5]"), H=[[-1.0, 1.0]]) == [[0, 5], [1, 5]]


def test_matrices_of_an_array_part():
    each = nsds.lagrangian_linear(M=np.array([1.0, 2.0, 4.0]).reshape(3, 1, 1), fext=[1.0], q=np.zeros(3), v=0.0, count=3)
    trajectory = nsds.simulate(nsds.system(each=each), t_end=1.0, h=1.0)
    np.testing.assert_array_equal(trajectory["each"]["v"][-1, :, 0], [1.0, 0.5, 0.25])


@pytest.mark.parametrize(
    ("error", "words_in_message", "build"),
    [
        (ValueError, ["M", "(3, 3)", "(2, 3)"], lambda: nsds.lagrangian_linear(M=np.ones((2, 3)), q=[0, 0, 0], v=[0, 0, 0])),
        (ValueError, ["M", "symmetric"], lambda: nsds.lagrangian_linear(M=[[1, 2], [0, 1]], q=[0, 0], v=[0, 0])),
        (ValueError, ["M", "symmetric"], lambda: nsds.lagrangian_linear(M=sp.csr_array([[1.0, 2], [0, 1]]), q=[0, 0], v=[0, 0])),
        (ValueError, ["K", "(2, 2)", "(3, 3)"], lambda: nsds.lagrangian_linear(M=np.eye(2), K=np.eye(3), q=[0, 0], v=[0, 0])),
        (ValueError, ["q", "(2,)", "(3,)"], lambda: nsds.lagrangian_linear(M=np.eye(2), q=[0, 0, 0], v=[0, 0])),
        (ValueError, ["v", "finite", "nan"], lambda: nsds.lagrangian_linear(M=np.eye(2), q=[0, 0], v=[0, np.nan])),
        (ValueError, ["fext", "(2,)"], lambda: nsds.lagrangian_linear(M=np.eye(2), fext=[1], q=[0, 0], v=[0, 0])),
        (TypeError, ["q", "real numbers"], lambda: nsds.lagrangian_linear(M=[1.0], q=["a"], v=[0])),
        (TypeError, ["q", "real numbers"], lambda: nsds.lagrangian_linear(M=[1.0], q=[1j], v=[0])),
        (ValueError, ["count", "at least 1"], lambda: nsds.lagrangian_linear(M=[1.0], q=[0], v=[0], count=0)),
        (TypeError, ["count", "whole number"], lambda: nsds.lagrangian_linear(M=[1.0], q=[0], v=[0], count=2.5)),
        (ValueError, ["newton_impact", "e", "[0, 1]", "1.5"], lambda: nsds.newton_impact(1.5)),
        (ValueError, ["newton_impact", "e", "-0.1"], lambda: nsds.newton_impact([0.5, -0.1])),
        (ValueError, ["newton_impact", "e", "finite"], lambda: nsds.newton_impact(np.nan)),
        (ValueError, ["b", "(1,)", "(2,)"], lambda: relation(H=[[1.0]], b=[1.0, 2.0])),
        (ValueError, ["D", "(1, 1)"], lambda: relation(H=[[1.0]], D=np.eye(2))),
        (ValueError, ["H"], lambda: relation(H=np.zeros((0, 3)))),
        (TypeError, ["relation"], lambda: nsds.interaction([[1.0]], nsds.equality(), on="ball")),
        (TypeError, ["law", "newton_impact"], lambda: nsds.interaction(relation(H=[[1.0]]), 0.9, on="ball")),
        (ValueError, ["on", "ball!"], lambda: nsds.interaction(relation(H=[[1.0]]), nsds.equality(), on="ball!")),
        (ValueError, ["at least one"], lambda: nsds.system()),
        (ValueError, ["'status'", "reserved"], lambda: nsds.system(status=nsds.lagrangian_linear(M=[1.0], q=[0], v=[0]))),
        (ValueError, ["identifier", "'a ball'"], lambda: nsds.system(**{"a ball": nsds.lagrangian_linear(M=[1.0], q=[0], v=[0])})),
        (TypeError, ["'ball'", "constructor"], lambda: nsds.system(ball=np.zeros(3))),
    ],
)
def test_bad_parts_are_named(error, words_in_message, build):
    with pytest.raises(error) as caught:
        build()
    assert all(word in str(caught.value) for word in words_in_message), str(caught.value)


def with_interaction(on, H=((1.0,),), law=None, **ball):
    ball = {"M": [1.0], "q": [0.0], "v": [0.0], **ball}
    return nsds.system(ball=nsds.lagrangian_linear(**ball), floor=nsds.interaction(relation(H=H), law or nsds.equality(), on=on))


@pytest.mark.parametrize(
    ("words_in_message", "arguments"),
    [
        (["'floor'", "'bal'", "ball"], {"on": "bal"}),
        (["'floor'", "2 columns", "expected 1", "'ball'"], {"on": "ball", "H": [[1.0, 0.0]]}),
        (["'floor'", "not an array"], {"on": "ball[0]"}),
        (["'floor'", "[-2, 2)", "[2]"], {"on": "ball[2]", "count": 2}),
        (["'floor'", "chooses none"], {"on": "ball[2:]", "count": 2}),
        (["'floor'", "3 and 2 elements"], {"on": ("ball", "ball[:2]"), "count": 3, "H": [[1.0, 1.0]]}),
        (["'floor'", "e must be", "(1,)", "(2,)"], {"on": "ball", "law": nsds.newton_impact([0.1, 0.2])}),
    ],
)
def test_bad_interactions_are_named(words_in_message, arguments):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        with_interaction(**arguments)
    assert all(word in str(caught.value) for word in words_in_message), str(caught.value)


def test_an_ensemble_has_one_model():
    a, b = small_system(), nsds.system(ball=nsds.lagrangian_linear(M=[[2.0]], q=[1.0], v=[0.0]))
    with pytest.raises(TypeError, match=r"nsds\.system"):
        nsds.simulate(np.zeros(3), t_end=1.0, h=0.1)
    with pytest.raises(ValueError, match="at least one record"):
        nsds.simulate(np.repeat(a, 0), t_end=1.0, h=0.1)
    mixed = np.repeat(a, 2)
    mixed["model"][1] = b["model"]
    with pytest.raises(ValueError, match="same model, member 1"):
        nsds.simulate(mixed, t_end=1.0, h=0.1)
