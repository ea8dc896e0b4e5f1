"""Cases for the growth of the cost with the size of the input, such as the number of samples."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from benchmarks.cases import files
from benchmarks.cases.commands import run, setup_files, work
from benchmarks.cases.entry import BenchmarkCase, Call, Section, Sizes, Variant, format_size
from benchmarks.cases.ranking import compute_all, evaluate, sort
from benchmarks.inputs import Samples, draw_samples, share_of

import abstain as ab

SECTION = Section(
    "growth",
    "How cost grows",
    "The exponent is the slope of the logarithm of the CPU time over the logarithm of the size. "
    "One column is fitted to all sizes, and one uses only the last two sizes. The exponent is 1 "
    "for proportional growth, and less than 1 if a part of the cost is fixed.",
)


@dataclass(frozen=True)
class SamplesBySize:
    """Samples of several sizes, which are drawn when they are first used."""

    share: float
    samples: dict[int, Samples] = field(default_factory=dict)

    def of_size(self, n: int) -> Samples:
        """Return the samples of a size."""
        if n not in self.samples:
            self.samples[n] = draw_samples("float32", share_of(n, self.share))
        return self.samples[n]


def _powers(first: float, last: int) -> list[int]:
    return [10**k for k in range(int(np.log10(first)), int(np.log10(last)) + 1)]


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield the cases of this section."""
    yield _samples(sizes)
    yield _rows(sizes)
    yield _scores(sizes)
    yield _resamples(sizes)
    yield _classes(sizes)
    yield _splits(sizes)


def _samples(sizes: Sizes) -> BenchmarkCase:
    calls = {
        "ab.risk_coverage_areas": lambda samples: ab.risk_coverage_areas(
            samples.confidence, samples.loss
        ),
        "ab.aurc": lambda samples: ab.aurc(samples.confidence, samples.loss),
        "all rank metrics of one score": compute_all,
        "ab.evaluate, one score": lambda samples: evaluate(samples, "analytic"),
    }
    variants = []
    for name, call in calls.items():
        for n in _powers(1000, sizes.ten_million):

            def start(data: SamplesBySize, call=call, n=n) -> Call:
                samples = data.of_size(n)
                return lambda: call(samples)

            rounds = int(name.startswith("ab.evaluate") and n > sizes.million)
            variants.append(
                Variant(f"{name}, {format_size(n)}", start, rounds=rounds, series=name, size=n)
            )
    reference = Variant("np.sort of 1e6", lambda data: sort().prepare(data.of_size(sizes.million)))
    return BenchmarkCase(
        "growth with samples",
        SECTION.name,
        lambda _, share: SamplesBySize(share),
        reference,
        tuple(variants),
        "float32 arrays in memory.",
        seconds=4.0,
        rounds=2,
        growing="samples",
    )


def _rows(sizes: Sizes) -> BenchmarkCase:
    counts = [*_powers(1000, sizes.million), 3 * sizes.million]

    def write(folder: Path, _: float) -> None:
        for n in counts:
            files.predictions(folder / f"{n}.parquet", n)

    name = "abstain evaluate, with page"
    variants = tuple(
        Variant(
            f"{name}, {format_size(n)} rows",
            run("evaluate", Path(f"{n}.parquet"), out=f"out{n}"),
            rounds=1 if n > sizes.million else 0,
            series=name,
            size=n,
        )
        for n in counts
    )
    return BenchmarkCase(
        "growth with rows",
        SECTION.name,
        setup_files(write),
        work(),
        variants,
        "Parquet file with three confidences, all metrics with intervals.",
        seconds=0.0,
        rounds=2,
        growing="rows",
    )


def _scores(sizes: Sizes) -> BenchmarkCase:
    rows, counts, _ = sizes.compared
    steps = [counts[0] // 13 or 2, counts[0] // 3, counts[0], counts[1]]

    def start(count: int):
        def begin(data: tuple) -> Call:
            scores, is_failure = data
            selected = dict(list(scores.items())[:count])
            predictions = ab.Predictions(confidence=selected, loss=is_failure.astype(float))
            return lambda: ab.compare(predictions, metrics=("aurc", "augrc"))

        return begin

    name = "ab.compare"
    return BenchmarkCase(
        "growth with scores",
        SECTION.name,
        lambda _, share: files.scores(max(200, round(rows * share)), counts[1]),
        Variant("np.sort of one score", lambda data: lambda: np.sort(data[0]["confidence_000"])),
        tuple(Variant(f"{name}, {k} scores", start(k), series=name, size=k) for k in steps),
        f"{format_size(rows)} samples, AURC and AUGRC, analytic intervals, curves.",
        seconds=0.0,
        rounds=2,
        growing="scores",
    )


def _resamples(sizes: Sizes) -> BenchmarkCase:
    rows, _, resamples = sizes.compared
    steps = [resamples // 10, resamples // 2, resamples, 4 * resamples]

    def compare(count: int):
        def begin(data: tuple) -> Call:
            predictions = ab.Predictions(confidence=data[0], loss=data[1].astype(float))
            return lambda: ab.compare(predictions, test="bootstrap", bootstrap=count, bands=False)

        return begin

    def bootstrap(count: int):
        def begin(data: tuple) -> Call:
            confidence = data[0]["confidence_000"]
            return lambda: ab.metric_bootstrap(confidence, data[1], resamples=count)

        return begin

    prepare_by_name = {"ab.compare, 13 scores": compare, "ab.metric_bootstrap": bootstrap}
    return BenchmarkCase(
        "growth with resamples",
        SECTION.name,
        lambda _, share: files.scores(max(200, round(rows * share)), 13),
        Variant("np.sort of one score", lambda data: lambda: np.sort(data[0]["confidence_000"])),
        tuple(
            Variant(f"{name}, {k} resamples", prepare(k), series=name, size=k)
            for name, prepare in prepare_by_name.items()
            for k in steps
        ),
        f"{format_size(rows)} samples, AUGRC.",
        seconds=0.0,
        rounds=2,
        growing="resamples",
    )


def _classes(sizes: Sizes) -> BenchmarkCase:
    rows = sizes.wide[0] // 10
    steps = [10, 100, 1000]

    def start(count: int):
        def begin(data: tuple) -> Call:
            logits, labels = data[0][:, :count], data[1] % count
            return lambda: ab.evaluate(
                ab.Predictions(logits=logits, labels=labels), scores=["msr"], metrics=["augrc"]
            )

        return begin

    def setup(_: Path, share: float) -> tuple:
        rng = np.random.default_rng(0)
        n = max(100, round(rows * share))
        return rng.standard_normal((n, steps[-1]), np.float32), rng.integers(0, steps[-1], n)

    name = 'ab.evaluate(scores=["msr"], metrics=["augrc"])'
    return BenchmarkCase(
        "growth with classes",
        SECTION.name,
        setup,
        Variant("largest of each row", lambda data: lambda: data[0].max(axis=1)),
        tuple(Variant(f"{name}, {k} classes", start(k), series=name, size=k) for k in steps),
        f"{format_size(rows)} samples, float32 logits, including validation and scoring.",
        seconds=1.0,
        rounds=2,
        growing="classes",
    )


def _splits(sizes: Sizes) -> BenchmarkCase:
    rows, steps = sizes.million // 10, [2, 10, 50]

    def write(folder: Path, _: float) -> None:
        for count in steps:
            files.predictions(folder / f"{count}.parquet", rows, splits=count)

    name = "abstain evaluate --by shift"
    return BenchmarkCase(
        "growth with splits",
        SECTION.name,
        setup_files(write),
        work(),
        tuple(
            Variant(
                f"{name}, {k} splits",
                run("evaluate", Path(f"{k}.parquet"), "--by", "shift", out=f"out{k}"),
                series=name,
                size=k,
            )
            for k in steps
        ),
        f"{format_size(rows)} rows in total, three confidences, all metrics with intervals, page.",
        seconds=0.0,
        rounds=1,
        growing="splits",
    )
