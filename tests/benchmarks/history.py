"""History of benchmarks: a JSON file with one entry a run, and how a run compares with the last one of the same machine."""

import json
import os
import shutil
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from llvmlite.binding import get_host_cpu_name

SLOWER = 1.05  # times the minimum of the last run: more is marked


def machine():
    """What minima are comparable on: the processor and the number of its cores."""
    return f"{get_host_cpu_name()}, {os.cpu_count()} cores"


def entry(versions, rows):
    """The entry of a run: when, of which commit, with what, where, and the median and minimum of each workload."""
    figures = {row["name"]: {"ns": row["ns"], "min_ns": row["min_ns"], "repeats": row["repeats"]} for row in rows}
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"date": now, "commit": _commit(), "versions": versions, "machine": machine(), "workloads": figures}


def _commit():
    """The commit that is checked out, marked where files differ from it; None without git."""
    command = ["git", "describe", "--always", "--dirty"]
    if shutil.which("git") is None:
        return None
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent).stdout.strip() or None


def read(path):
    """Entries of a history, the oldest first; none where there is no file."""
    return json.loads(Path(path).read_text()) if Path(path).exists() else []


def append(path, entries, new):
    """Write the entries and a new one, each on its line."""
    path = Path(path)
    unfinished = path.with_name(path.name + ".new")
    unfinished.write_text("[\n" + ",\n".join(json.dumps(each) for each in [*entries, new]) + "\n]\n")
    unfinished.replace(path)


def ratio_to_last(row, entries, where):
    """The minimum of a workload relative to that of the last run there that has it; None where none has."""
    for last in reversed(entries):
        if last["machine"] == where and row["name"] in last["workloads"]:
            return row["min_ns"] / last["workloads"][row["name"]]["min_ns"]
    return None


def is_slower(ratio):
    """Whether a workload takes longer than noise explains."""
    return ratio is not None and ratio > SLOWER
