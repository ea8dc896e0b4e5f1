"""Test claims of the papers on a folder of benchmark runs: `python benchmarks/claims.py runs`.

Prints Markdown tables about the softmax response under covariate shift, maximum logits on new
classes, and the effect of float16 logits on the softmax response.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from table import markdown

import abstain as ab
from abstain_bench.results import BenchmarkResults, results_of
from abstain_bench.runs.store import Store

COVARIATE_SHIFT_KINDS = ("iid", "corruption", "sub-class")
NEW_CLASS_KINDS = ("new-class", "far-new-class")
LOGIT_METHODS = ("mls", "energy", "mcd_mls")
FLOAT16_EXPOSURES = ("iid", "unseen-typefaces", "textures")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    store = Store.read(parser.parse_args().folder)
    results = results_of(store, metrics=("augrc",))
    sections = (
        softmax_section(results),
        logits_section(results),
        float16_section(store, results),
    )
    for section in sections:
        for text in section:
            print(text)
        print()


def softmax_section(results: BenchmarkResults) -> Iterator[str]:
    """Compare the softmax response with the best method in studies without new classes."""
    rows = []
    for study in results.headline:
        if study.kind in COVARIATE_SHIFT_KINDS:
            estimates = mean_estimates(results, study.name)
            best = min(estimates, key=lambda row: row["value"])
            msr = next(row for row in estimates if row["method"] == "msr")
            test = difference_cells(results, study.name, "msr", best["method"])
            rows.append([study.title, times_1000(msr["value"]), best["method"], *test])
    yield "### The softmax response (MSR) where classes stay the same\n"
    yield markdown(["study", "MSR", "best", "MSR - best", "interval", "p, adjusted"], rows)


def logits_section(results: BenchmarkResults) -> Iterator[str]:
    """Compare maximum logits with the softmax response on new classes."""
    method_names = {method.name for method in results.methods}
    rows = [
        [study.title, method, *difference_cells(results, study.name, method, "msr")]
        for study in results.headline
        if study.kind in NEW_CLASS_KINDS
        for method in LOGIT_METHODS
        if method in method_names
    ]
    yield "### Maximum logits on new classes, against MSR\n"
    yield markdown(["study", "method", "method - MSR", "interval", "p, adjusted"], rows)


def float16_section(store: Store, results: BenchmarkResults) -> Iterator[str]:
    """Compare the softmax response from float32 and float16 logits, as softmax and log-odds."""
    setting = next(item.setting for item in results.chosen if item.method == "msr")
    runs = [
        run for run in store.tested_runs if (run.arm, run.setting) == ("cross-entropy", setting)
    ]
    exposure_keys = {exposure.key for exposure in store.exposures}
    rows = []
    for exposure in FLOAT16_EXPOSURES:
        if exposure not in exposure_keys:
            continue
        metrics_by_run = [_metrics_by_formula(store, run, exposure) for run in runs]
        for formula in metrics_by_run[0]:
            values = [metrics[formula] for metrics in metrics_by_run]
            augrc, aurc, tied_share = np.mean(values, axis=0)
            rows.append([exposure, formula, f"{augrc:.3f}", f"{aurc:.3f}", f"{tied_share:.1%}"])
    yield "### MSR from float16 logits (means over the seeds)\n"
    header = ["exposure", "computed", "AUGRC x 1000", "AURC x 1000", "share in ties"]
    yield markdown(header, rows)


def _metrics_by_formula(store: Store, run, exposure: str) -> dict[str, list[float]]:
    """Compute the metrics on the i.i.d. test set joined with an exposure."""
    scores = [store.scores(run, key, logits=True) for key in dict.fromkeys(("iid", exposure))]
    logits = np.concatenate([item.logits for item in scores])
    wrong = np.concatenate([item.prediction != item.labels for item in scores])
    float16_logits = logits.astype(np.float16)
    confidences = {
        "float32 logits, log-odds": _log_odds(logits),
        "float32 logits, softmax": _max_softmax(logits).astype(np.float64),
        "float16 logits, log-odds": _log_odds(float16_logits),
        "float16 logits, softmax in float16": _max_softmax(float16_logits).astype(np.float64),
    }
    return {formula: _metric_values(values, wrong) for formula, values in confidences.items()}


def _max_softmax(logits: np.ndarray) -> np.ndarray:
    """Compute the largest softmax probability in the floating-point type of the logits."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    totals = exponentials.sum(axis=1, keepdims=True, dtype=logits.dtype)
    return (exponentials / totals).max(axis=1)


def _log_odds(logits: np.ndarray) -> np.ndarray:
    predictions = ab.Predictions(logits=logits, loss=np.zeros(len(logits)))
    return ab.confidence.score("msr", predictions).values


def _metric_values(confidence: np.ndarray, wrong: np.ndarray) -> list[float]:
    """Return AUGRC and AURC, both times 1,000, and the share of samples in ties."""
    _, counts = np.unique(confidence, return_counts=True)
    tied_share = counts[counts > 1].sum() / len(confidence)
    return [ab.augrc(confidence, wrong) * 1000, ab.aurc(confidence, wrong) * 1000, tied_share]


def mean_estimates(results: BenchmarkResults, study: str) -> list[dict]:
    """Return the estimates of a study: means over the runs, or those of the only run."""
    rows = [row for row in results.rows("estimates") if row["study"] == study]
    runs = {row["run"] for row in rows}
    run = "mean" if "mean" in runs else max(runs)
    return [row for row in rows if row["run"] == run]


def difference_cells(results: BenchmarkResults, study: str, first: str, second: str) -> list[str]:
    """Return the difference of two methods, its interval and its adjusted p-value as text."""
    if first == second:
        return ["0", "", ""]
    for row in results.rows("pairs"):
        if row["study"] == study and {row["first"], row["second"]} == {first, second}:
            sign = 1 if row["first"] == first else -1
            low, high = sorted((sign * row["low"], sign * row["high"]))
            interval = f"{times_1000(low)} to {times_1000(high)}"
            return [times_1000(sign * row["difference"]), interval, f"{row['adjusted']:.2g}"]
    return ["", "", ""]


def times_1000(value: float) -> str:
    return f"{1000 * value:.2f}"


if __name__ == "__main__":
    main()
