"""``python -m tests.scenes [--steps 1e-2,1e-3] [--short] [NAME ...]``: the scenes whose names hold one of these words, in a table."""

import argparse
import sys

from tests.scenes import SCENES, run


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.scenes", description="Run scenes with defaults, and print what came out.")
    parser.add_argument("names", nargs="*", help="words that names of scenes hold; all by default")
    parser.add_argument("--steps", help="which of the steps 0, 1, 2 of each scene, largest first, as 0,1", default="0,1,2")
    parser.add_argument("--short", action="store_true", help="the shorter runs of the test suite")
    arguments = parser.parse_args()
    chosen = [s for name, s in SCENES.items() if not arguments.names or any(word in name for word in arguments.names)]
    which = [int(k) for k in arguments.steps.split(",")]
    print(f"{'scene':36} {'h':>7} {'steps':>6} {'failed':>6} {'inexact':>7} {'residual':>8} {'growth':>8} {'drift':>8} {'s':>6}")
    n_bad = 0
    for scene in chosen:
        for h in [scene.steps[k] for k in which if k < len(scene.steps)]:
            out = run(scene, h, scene.short if arguments.short else None)
            n_bad += bool(out.wrong)
            print(f"{scene.name:36} {h:7.0e} {out.steps:6d} {out.failed:6d} {out.inexact:7d} {out.worst:8.1e} {out.growth:8.1e} "
                  f"{out.drift:8.1e} {out.seconds:6.2f}  {'; '.join(out.wrong)}", flush=True)  # fmt: skip
    print(f"{n_bad} runs with something wrong")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
