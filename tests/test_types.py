"""What type checkers know of the package, by a user's program that also runs."""

import matplotlib as mpl
import pytest

from tests import type_checks, typed_script


def test_the_program_runs(tmp_path, capsys):
    mpl.use("Agg")
    typed_script.main(tmp_path)
    assert "converged" in capsys.readouterr().out
    assert (tmp_path / "mass.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_have_nothing_to_say_about_it(checker, tmp_path):
    pytest.importorskip(checker, reason="of the extra 'types'; python -m tests.type_checks tells what it says")
    assert type_checks.complaints(checker, tmp_path, type_checks.installed(tmp_path)) == ""
