"""Claims of the papers, looked at on a folder of runs: `python benchmarks/claims.py runs`.

Prints Markdown: softmax baselines under covariate shift, maximum logits on new classes, and what
float16 logits do to the softmax response.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from table import markdown

import abstain as ab
from abstain_bench.results import BenchmarkResults, results_of
from abstain_bench.runs.store import Store

COVARIATE = ("iid", "corruption", "sub-class")
NEW = ("new-class", "far-new-class")
LOGITS = ("mls", "energy", "mcd_mls")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    store = Store.read(parser.parse_args().folder)
    results = results_of(store, metrics=("augrc",))
    for section in (softmax(results), logits(results), half(store, results)):
        for line in section:
            print(line)
        print()


def softmax(results: BenchmarkResults) -> Iterator[str]:
    """Is the softmax response of a plain network hard to beat where classes stay the same?"""
    rows = []
    for study in results.headline:
        if study.kind in COVARIATE:
            own = standings(results, study.name)
            leader = min(own, key=lambda row: row["value"])
            msr = next(row for row in own if row["method"] == "msr")
            told = difference(results, study.name, "msr", leader["method"])
            rows.append([study.title, number(msr["value"]), leader["method"], *told])
    yield "### The softmax response (MSR) where classes stay the same\n"
    yield markdown(["study", "MSR", "best", "MSR - best", "interval", "p, adjusted"], rows)


def logits(results: BenchmarkResults) -> Iterator[str]:
    """Are maximum logits better than the softmax response on new classes?"""
    rows = [
        [study.title, method, *difference(results, study.name, method, "msr")]
        for study in results.headline
        if study.kind in NEW
        for method in LOGITS
        if method in {facts.name for facts in results.methods}
    ]
    yield "### Maximum logits on new classes, against MSR\n"
    yield markdown(["study", "method", "method - MSR", "interval", "p, adjusted"], rows)


def half(store: Store, results: BenchmarkResults) -> Iterator[str]:
    """What do logits in float16 do to the softmax response, computed naively and as log-odds?"""
    setting = next(c.setting for c in results.chosen if c.method == "msr")
    runs = [r for r in store.tested_runs if (r.arm, r.setting) == ("cross-entropy", setting)]
    rows = []
    for name in ("iid", "unseen-typefaces", "textures"):
        if name not in {one.key for one in store.exposures}:
            continue
        each = [_ways(store, run, name) for run in runs]
        for way in each[0]:
            found = np.mean([one[way] for one in each], axis=0)
            rows.append([name, way, *(number(x, 3) for x in found[:2]), f"{found[2]:.1%}"])
    yield "### MSR from float16 logits (means over the seeds)\n"
    header = ["exposure", "computed", "AUGRC x 1000", "AURC x 1000", "share in ties"]
    yield markdown(header, rows)


def _ways(store: Store, run, name: str) -> dict[str, list[float]]:
    scores = [store.scores(run, key, logits=True) for key in dict.fromkeys(("iid", name))]
    raw = np.concatenate([one.logits for one in scores])
    wrong = np.concatenate([one.prediction != one.labels for one in scores])
    small = raw.astype(np.float16)
    softmax16 = np.exp(small - small.max(axis=1, keepdims=True))
    softmax16 = (softmax16 / softmax16.sum(axis=1, keepdims=True, dtype=np.float16)).max(axis=1)
    softmax32 = np.exp(raw - raw.max(axis=1, keepdims=True))
    softmax32 = (softmax32 / softmax32.sum(axis=1, keepdims=True)).max(axis=1)
    ways = {
        "float32 logits, log-odds": _msr(raw),
        "float32 logits, softmax": softmax32.astype(np.float64),
        "float16 logits, log-odds": _msr(small),
        "float16 logits, softmax in float16": softmax16.astype(np.float64),
    }
    return {way: _told(values, wrong) for way, values in ways.items()}


def _msr(logits: np.ndarray) -> np.ndarray:
    said = ab.Predictions(logits=logits, loss=np.zeros(len(logits)))
    return ab.confidence.score("msr", said).values


def _told(values: np.ndarray, wrong: np.ndarray) -> list[float]:
    _, counts = np.unique(values, return_counts=True)
    ties = counts[counts > 1].sum() / len(values)
    return [ab.augrc(values, wrong) * 1000, ab.aurc(values, wrong) * 1000, ties]


def standings(results: BenchmarkResults, study: str) -> list[dict]:
    rows = [row for row in results.rows("estimates") if row["study"] == study]
    runs = {row["run"] for row in rows}
    return [row for row in rows if row["run"] == ("mean" if "mean" in runs else max(runs))]


def difference(results: BenchmarkResults, study: str, first: str, second: str) -> list[str]:
    if first == second:
        return ["0", "", ""]
    for row in results.rows("pairs"):
        if row["study"] == study and {row["first"], row["second"]} == {first, second}:
            sign = 1 if row["first"] == first else -1
            ends = sorted(sign * row[name] for name in ("low", "high"))
            interval = " to ".join(number(end) for end in ends)
            return [number(sign * row["difference"]), interval, f"{row['adjusted']:.2g}"]
    return ["", "", ""]


def number(value: float, digits: int = 2) -> str:
    scaled = value * 1000 if digits == 2 else value
    return f"{scaled:.{digits}f}"


if __name__ == "__main__":
    main()
