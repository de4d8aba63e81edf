"""Histories of benchmarks: which run is compared with which, on figures that are given."""

import json

from tests.benchmarks import history


def row(name, least):
    return {"name": name, "ns": 1.1 * least, "min_ns": least, "repeats": 3}


def an_entry(machine, **least):
    return history.entry({"nsds": "1"}, [row(name, value) for name, value in least.items()]) | {"machine": machine}


def test_a_workload_is_compared_with_its_last_run_on_the_same_machine():
    entries = [an_entry("here", ball=50.0, relay=30.0), an_entry("here", ball=100.0), an_entry("there", ball=1.0)]
    assert history.ratio_to_last(row("ball", 104.0), entries, "here") == 1.04
    assert history.ratio_to_last(row("relay", 33.0), entries, "here") == 1.1  # the second run did not measure it
    assert history.ratio_to_last(row("bridge", 33.0), entries, "here") is None
    assert history.ratio_to_last(row("ball", 33.0), entries, "elsewhere") is None


def test_slower_than_noise_is_marked():
    assert [history.is_slower(ratio) for ratio in (None, 0.5, 1.05, 1.051)] == [False, False, False, True]


def test_a_run_is_added_to_the_file(tmp_path):
    path = tmp_path / "history.json"
    assert history.read(path) == []
    first, second = an_entry("here", ball=50.0), history.entry({"nsds": "2"}, [row("ball", 60.0)])
    history.append(path, history.read(path), first)
    history.append(path, history.read(path), second)
    assert history.read(path) == [first, second] == json.loads(path.read_text())
    assert second["machine"] == history.machine()
    assert second["workloads"]["ball"] == {"ns": 66.0, "min_ns": 60.0, "repeats": 3}
    assert len(list(tmp_path.iterdir())) == 1
