"""The command line: what it lists, runs, saves and refuses."""

import numpy as np
import pytest

import nsds
from nsds.__main__ import main
from nsds.examples import EXAMPLES


def test_lists_the_examples(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in EXAMPLES)
    assert "python -m nsds run" in out


@pytest.mark.parametrize("name", EXAMPLES)
def test_runs_draws_and_saves_every_example(name, tmp_path, capsys):
    run = EXAMPLES[name].run
    start = np.max(EXAMPLES[name].build()["t"])
    t_end = 5.5 if name == "cam_bifurcation" else start + 60 * run["h"]  # its picture begins after a transient of 5 s
    size = ["--members", "3"] if name == "cam_bifurcation" else []
    files = [str(tmp_path / "picture.png"), str(tmp_path / "data.npz")]
    assert main(["run", name, "--t-end", str(t_end), "--plot", files[0], "--save", files[1], "--no-progress", *size]) == 0
    out = capsys.readouterr().out
    assert "failed steps      none" in out
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"
    with np.load(files[1], allow_pickle=False) as data:
        np.testing.assert_allclose(data["trajectory"]["t"][..., -1], t_end, atol=1.1 * run["h"])
        assert nsds.step(data["system"], h=run["h"], scheme=run.get("scheme")).dtype == EXAMPLES[name].build().dtype


def test_warm_up_takes_first_steps_and_tells_which_could_not(capsys, monkeypatch):
    assert main(["warm-up", "bouncing_ball", "relay_oscillator", "--processes", "2"]) == 0
    assert "2/2" in capsys.readouterr().err
    assert main(["warm-up", "bouncing_bal"]) == 2
    assert "no example 'bouncing_bal'" in capsys.readouterr().err
    monkeypatch.setitem(EXAMPLES, "missing", EXAMPLES["bouncing_ball"])  # of this process alone
    assert main(["warm-up", "missing"]) == 1
    assert "missing: KeyError: 'missing'" in capsys.readouterr().err


def test_options_reach_model_and_run(tmp_path, capsys):
    file = tmp_path / "cam.npz"
    assert main(["run", "cam_follower", "--rpm", "660", "--e", "0.5", "--h", "1e-3", "--t-end", "0.1", "--save-every", "10",
                 "--theta", "0.75", "--solver", "lemke", "--save", str(file), "--no-progress"]) == 0  # fmt: skip
    with np.load(file) as data:
        assert data["system"]["follower"]["z"][0] == 660.0
        assert data["system"]["contact"]["e"] == 0.5
        assert data["trajectory"].shape == (11,)


def test_options_are_those_of_the_scheme_of_the_example(tmp_path, capsys):
    final = []
    for theta in ("0.5", "1.0"):
        file = tmp_path / f"{theta}.npz"
        assert main(["run", "diode_bridge", "--theta", theta, "--gamma-for-relation", "1", "--save", str(file), "--no-progress"]) == 0
        with np.load(file) as data:
            final.append(data["trajectory"]["plant"]["x"][-1])
    assert abs(final[0] - final[1]).max() > 1e-3
    out = capsys.readouterr().out
    assert "complementarity violated by at most" in out
    assert not any(word in out for word in ("energy", "penetration", "impact"))
    with pytest.raises(SystemExit):
        main(["run", "twisting_controller", "--theta", "0.5"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nothing"], "invalid choice: 'nothing'"),
        (["run", "bouncing_ball", "--rpm", "3"], "unrecognized arguments: --rpm"),
        (["run", "bouncing_ball", "--height", "high"], "invalid float value: 'high'"),
        (["walk"], "invalid choice: 'walk'"),
    ],
)
def test_wrong_words_exit_with_two(arguments, words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--h", "-1"], "h must be above 0"),
        (["--e", "1.5"], "e must be a number, a vector or a table over materials in [0, 1]"),
        (["--solver", "simplex"], "method must be one of"),
        (["--save", "ball.h5"], "must end in that, got 'ball.h5'"),
    ],
)
def test_wrong_values_exit_with_two(arguments, words, capsys):
    assert main(["run", "bouncing_ball", "--no-progress", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # the report adds up infinities
def test_a_failed_run_saves_what_it_has(tmp_path, capsys):
    file = tmp_path / "ball.npz"
    code = main(["run", "bouncing_ball", "--height", "1e308", "--h", "1e155", "--t-end", "1e157", "--no-progress", "--save", str(file)])
    assert code == 1
    assert "failed" in capsys.readouterr().err
    with np.load(file) as data:
        assert data["trajectory"]["status"][-1] != 0


def test_missing_matplotlib_is_named_before_the_run(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["run", "bouncing_ball", "--plot", "x.png", "--no-progress"]) == 2
    assert "pip install matplotlib" in capsys.readouterr().err
