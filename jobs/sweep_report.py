"""Reports on a sweep: reads RUN <tab> SETTINGS lines from stdin and the run files that are there.

Prints a line a run, in the order of their best validation accuracy; means over seeds, when
train.seed is among the settings; then the best run, and what has failed or is not finished.
"""

import math
import os
import statistics
import sys

import h5py


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def read(path):
    """State, best validation (accuracy, step) or None, test accuracy or None."""
    with h5py.File(path, "r") as f:
        state = text(f.attrs["state"])
        best = None
        if "evaluations" in f:
            e = f["evaluations"]
            rows = zip(e["split"][:], e["accuracy"][:], e["step"][:])
            values = [(a, s) for split, a, s in rows if text(split) == "val" and math.isfinite(a)]
            if values:  # ties keep the earlier, as training does
                best = max(values, key=lambda v: (v[0], -v[1]))
        test = float(f["test/accuracy"][()].reshape(-1)[0]) if "test" in f else None
    return state, best, test


def failure(path):
    """The note that the job left, or None."""
    try:
        with open(os.path.splitext(path)[0] + ".failed") as f:
            return f.read().strip()
    except OSError:
        return None


def number(value):
    return "      -" if value is None else f"{value:7.4f}"


def main():
    done, other = [], []
    for line in sys.stdin:
        path, settings = line.rstrip("\n").split("\t")
        try:
            state, best, test = read(path)
        except FileNotFoundError:
            state, best, test = "not started", None, None
        except (OSError, KeyError) as error:
            state, best, test = f"unreadable: {error}", None, None
        note = failure(path)
        if state == "finished" and best:
            done.append((best[0], best[1], test, settings, path))
        else:
            other.append((f"failed: {state}, {note}" if note else state, settings, path))

    done.sort(key=lambda run: (-run[0], run[1]))
    if done:
        print("validation at step    test  settings")
        for accuracy, step, test, settings, _ in done:
            print(f"{accuracy:10.4f} {step:7d} {number(test)}  {settings}")

    groups = {}
    for accuracy, _, test, settings, _ in done:
        rest = " ".join(w for w in settings.split() if not w.startswith("train.seed="))
        groups.setdefault(rest, []).append((accuracy, test))
    if any(len(runs) > 1 for runs in groups.values()):
        print("\nmean over seeds (+- standard deviation)")
        for rest, runs in sorted(groups.items(), key=lambda g: -statistics.mean(a for a, _ in g[1])):
            words = []
            for name, values in (("validation", [a for a, _ in runs]), ("test", [t for _, t in runs])):
                values = [v for v in values if v is not None]
                if values:
                    spread = statistics.stdev(values) if len(values) > 1 else 0
                    words.append(f"{name} {statistics.mean(values):.4f} +- {spread:.4f}")
            print(f"  {', '.join(words)}  ({len(runs)} runs)  {rest or 'all else equal'}")

    print(f"\n{len(done)} of {len(done) + len(other)} finished")
    if done:
        print(f"best by validation: {done[0][3]}\n  {done[0][4]}")
    for state, settings, path in other:
        print(f"{state}: {settings}\n  {path}")


main()
