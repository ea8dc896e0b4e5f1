"""How far estimates of the risk without labels are off: on files with shifts, and on a benchmark.

    python benchmarks/shift_estimates.py FILE... [--by study] [--known iid] [--model COLUMN]
    python benchmarks/shift_estimates.py --runs runs

Half of the known data (the i.i.d. ones) calibrate; every other data set is taken without its
labels, and estimates of its error are held against the truth: of all samples, and of those that a
threshold answers which leaves 80 % of the calibration data. Prints the mean absolute error of each
estimate over the data sets of a kind of shift, in percent; a kind is a name without its severity.
"""

import argparse
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl

from abstain import shift
from abstain._foundation.random import as_generator

NAMES = ("calibration_risk", "mean_confidence", "thresholded_confidence", "reweighted")


def files(paths, by, known, model):
    """Yield of each file and model its data sets: name to (confidence, wrong)."""
    for path in paths:
        frame = pl.read_parquet(path)
        if model in frame.columns:
            parts = [(f"{path.stem}, {m}", frame.filter(pl.col(model) == m))
                     for m in frame[model].unique(maintain_order=True)]  # fmt: skip
        else:
            parts = [(path.stem, frame)]
        for name, part in parts:
            found = {
                study: (own["confidence"].to_numpy(), 1 - own["correct"].to_numpy().astype(float))
                for (study,), own in part.group_by(by, maintain_order=True)
            }
            first = next((k for k in known if k in found), None)
            if first is not None:
                yield name, found, first


def runs(folder):
    """Yield of each run of a benchmark its data sets."""
    from abstain_bench.runs.store import Store

    store = Store.read(folder)
    for run in store.tested_runs:
        found = {}
        for exposure in store.exposures:
            scores = store.scores(run, exposure.key)
            confidence = next(iter(scores.confidence.values()))
            wrong = (scores.labels != scores.prediction).astype(float)
            group = exposure.kind if exposure.corruption else exposure.name
            found[f"{group}_{len(found)}"] = (np.asarray(confidence), wrong)
        yield f"{Path(folder).name}, {run.name}", found, next(iter(found))


def estimated(calibration, data, threshold):
    """Errors of the estimates on one data set, and the truth."""
    (own, wrong), (new, truth) = calibration, data
    ratios = shift.fit_ratios(own, new, rng=0).ratios
    found = shift.unlabeled_risk(own, wrong, new, threshold=threshold, ratio=ratios)
    answered = np.ones(new.size, bool) if threshold is None else new >= threshold
    if not answered.any():
        return None
    return [100 * abs(getattr(found, n) - truth[answered].mean()) for n in NAMES]


def study(sets, known, rng):
    """Return errors by kind of shift, of all samples and of the answered ones."""
    own, wrong = sets[known]
    half = rng.permutation(own.size) < own.size // 2
    calibration = own[half], wrong[half]
    at = float(np.quantile(calibration[0], 0.2))
    rest = {known: (own[~half], wrong[~half])} | {k: v for k, v in sets.items() if k != known}
    errors = defaultdict(list)
    for name, data in rest.items():
        kind = re.sub(r"[_-]?\d+$", "", name)
        for which, threshold in (("all", None), ("answered", at)):
            found = estimated(calibration, data, threshold)
            if found is not None:
                errors[which, kind].append(found)
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--by", default="study")
    parser.add_argument("--known", nargs="*", default=["iid"])
    parser.add_argument("--model", default="model")
    parser.add_argument("--runs", type=Path)
    options = parser.parse_args()
    rng = as_generator(0)
    sources = list(files(options.files, options.by, options.known, options.model))
    sources += list(runs(options.runs)) if options.runs else []
    print("| data | shift | sets | of | " + " | ".join(NAMES) + " |")
    print("|" + " --- |" * (4 + len(NAMES)))
    for name, sets, known in sources:
        for (which, kind), found in study(sets, known, rng).items():
            means = " | ".join(f"{x:.1f}" for x in np.mean(found, axis=0))
            print(f"| {name} | {kind} | {len(found)} | {which} | {means} |", flush=True)


if __name__ == "__main__":
    main()
