"""Where things lie: the project, and reference data that may be at hand."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
REFERENCE, PROBLEMS, PEER, MACHINES, ANALYSIS, CIRCUITS = (
    SHARED / name for name in ("reference", "problems", "peer", "machines", "analysis", "circuits")
)
