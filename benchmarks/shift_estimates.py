"""Measure the errors of estimates of the risk without labels, on files or on a benchmark.

    python benchmarks/shift_estimates.py FILE... [--by study] [--known iid] [--model COLUMN]
    python benchmarks/shift_estimates.py --runs runs

Half of the known data set (the i.i.d. one) is used for calibration. The risk of every other data
set is estimated without its labels and compared with the true risk, for all samples and for those
that a threshold with 80% coverage of the calibration data accepts. Prints the mean absolute error
of each estimate over the data sets of a kind of shift, in percentage points. A kind is the name of
a data set without its severity.
"""

import argparse
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl

from abstain import shift
from abstain._foundation.random import as_generator

ESTIMATES = ("calibration_risk", "mean_confidence", "thresholded_confidence", "reweighted")


def data_sets_of_files(paths, by, known_names, model):
    """Yield a title, the data sets and the name of the known data set, for each file and model.

    A data set is a pair of confidences and losses. Data sets are stored by name.
    """
    for path in paths:
        frame = pl.read_parquet(path)
        if model in frame.columns:
            frames = {
                f"{path.stem}, {name}": frame.filter(pl.col(model) == name)
                for name in frame[model].unique(maintain_order=True)
            }
        else:
            frames = {path.stem: frame}
        for title, model_frame in frames.items():
            data_sets = {
                name: (rows["confidence"].to_numpy(), 1 - rows["correct"].to_numpy().astype(float))
                for (name,), rows in model_frame.group_by(by, maintain_order=True)
            }
            known = next((name for name in known_names if name in data_sets), None)
            if known is not None:
                yield title, data_sets, known


def data_sets_of_runs(folder):
    """Yield a title, the data sets and the name of the known data set, for each run of a benchmark.

    The known data set is the first exposure.
    """
    from abstain_bench.runs.store import Store

    store = Store.read(folder)
    for run in store.tested_runs:
        data_sets = {}
        for exposure in store.exposures:
            scores = store.scores(run, exposure.key)
            confidence = next(iter(scores.confidence.values()))
            wrong = (scores.labels != scores.prediction).astype(float)
            group = exposure.kind if exposure.corruption else exposure.name
            data_sets[f"{group}_{len(data_sets)}"] = (np.asarray(confidence), wrong)
        yield f"{Path(folder).name}, {run.name}", data_sets, next(iter(data_sets))


def estimation_errors(calibration, target, threshold):
    """Return the absolute error of each estimate, or None if the threshold accepts no sample."""
    (confidence, wrong), (target_confidence, target_wrong) = calibration, target
    accepted = np.ones(target_confidence.size, bool)
    if threshold is not None:
        accepted = target_confidence >= threshold
    if not accepted.any():
        return None
    ratios = shift.fit_ratios(confidence, target_confidence, rng=0).ratios
    estimates = shift.unlabeled_risk(
        confidence, wrong, target_confidence, threshold=threshold, ratio=ratios
    )
    true_risk = target_wrong[accepted].mean()
    return [100 * abs(getattr(estimates, name) - true_risk) for name in ESTIMATES]


def errors_by_kind(data_sets, known, rng):
    """Return the errors by samples ("all" or "accepted") and kind of shift."""
    confidence, wrong = data_sets[known]
    is_calibration = rng.permutation(confidence.size) < confidence.size // 2
    calibration = confidence[is_calibration], wrong[is_calibration]
    threshold_at_80cov = float(np.quantile(calibration[0], 0.2))
    targets = {known: (confidence[~is_calibration], wrong[~is_calibration])}
    targets |= {name: data for name, data in data_sets.items() if name != known}
    errors = defaultdict(list)
    for name, target in targets.items():
        kind = re.sub(r"[_-]?\d+$", "", name)
        for samples, threshold in (("all", None), ("accepted", threshold_at_80cov)):
            target_errors = estimation_errors(calibration, target, threshold)
            if target_errors is not None:
                errors[samples, kind].append(target_errors)
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
    sources = list(data_sets_of_files(options.files, options.by, options.known, options.model))
    if options.runs:
        sources += data_sets_of_runs(options.runs)
    print("| data | shift | sets | samples | " + " | ".join(ESTIMATES) + " |")
    print("|" + " --- |" * (4 + len(ESTIMATES)))
    for title, data_sets, known in sources:
        for (samples, kind), errors in errors_by_kind(data_sets, known, rng).items():
            means = " | ".join(f"{x:.1f}" for x in np.mean(errors, axis=0))
            print(f"| {title} | {kind} | {len(errors)} | {samples} | {means} |", flush=True)


if __name__ == "__main__":
    main()
