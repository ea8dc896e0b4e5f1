"""How cost grows with what there is more of: samples, scores, resamples, classes, splits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from benchmarks.cases import files
from benchmarks.cases.commands import places, run, work
from benchmarks.cases.entry import Call, Contender, Race, Section, Sizes, told
from benchmarks.cases.ranking import evaluated, sort, together
from benchmarks.inputs import Case, case, share_of

import abstain as ab

SECTION = Section(
    "growth",
    "How cost grows",
    "One race for each thing that there is more of. The exponent is the slope of the logarithm "
    "of the processor's time over the logarithm of the size, fitted to all sizes, and between "
    "the last two: 1 is in proportion, below 1 something is shared.",
)


@dataclass(frozen=True)
class Cases:
    """Cases of several sizes, each drawn when it is asked for."""

    share: float
    drawn: dict[int, Case] = field(default_factory=dict)

    def case(self, n: int) -> Case:
        """Return the case of that size."""
        if n not in self.drawn:
            self.drawn[n] = case("float32", share_of(n, self.share))
        return self.drawn[n]


def _powers(first: float, last: int) -> list[int]:
    return [10**k for k in range(int(np.log10(first)), int(np.log10(last)) + 1)]


def races(sizes: Sizes) -> Iterator[Race]:
    """Yield the races of this section."""
    yield _samples(sizes)
    yield _rows(sizes)
    yield _scores(sizes)
    yield _resamples(sizes)
    yield _classes(sizes)
    yield _splits(sizes)


def _samples(sizes: Sizes) -> Race:
    calls = {
        "ab.risk_coverage_areas": lambda one: ab.risk_coverage_areas(one.confidence, one.loss),
        "ab.aurc": lambda one: ab.aurc(one.confidence, one.loss),
        "all rank metrics of one score": together,
        "ab.evaluate, one score": lambda one: evaluated(one, "analytic"),
    }
    contenders = []
    for name, call in calls.items():
        for n in _powers(1000, sizes.ten_million):

            def start(data: Cases, call=call, n=n) -> Call:
                one = data.case(n)
                return lambda: call(one)

            once = int(name.startswith("ab.evaluate") and n > sizes.million)
            contenders.append(
                Contender(f"{name}, {told(n)}", start, rounds=once, series=name, size=n)
            )
    base = Contender("np.sort of 1e6", lambda data: sort().start(data.case(sizes.million)))
    return Race(
        "growth with samples",
        SECTION.name,
        lambda _, share: Cases(share),
        base,
        tuple(contenders),
        "Arrays in memory, float32.",
        seconds=4.0,
        rounds=2,
        grows="samples",
    )


def _rows(sizes: Sizes) -> Race:
    counts = [*_powers(1000, sizes.million), 3 * sizes.million]

    def make(folder: Path, _: float) -> None:
        for n in counts:
            files.predictions(folder / f"{n}.parquet", n)

    name = "abstain evaluate, with page"
    contenders = tuple(
        Contender(
            f"{name}, {told(n)} rows",
            run("evaluate", Path(f"{n}.parquet"), out=f"out{n}"),
            rounds=1 if n > sizes.million else 0,
            series=name,
            size=n,
        )
        for n in counts
    )
    return Race(
        "growth with rows",
        SECTION.name,
        places(make),
        work(),
        contenders,
        "Parquet, three confidences, every metric with its interval.",
        seconds=0.0,
        rounds=2,
        grows="rows",
    )


def _scores(sizes: Sizes) -> Race:
    rows, counts, _ = sizes.compared
    steps = [counts[0] // 13 or 2, counts[0] // 3, counts[0], counts[1]]

    def start(count: int):
        def begin(data: tuple) -> Call:
            named, wrong = data
            some = dict(list(named.items())[:count])
            given = ab.Predictions(confidence=some, loss=wrong.astype(float))
            return lambda: ab.compare(given, metrics=("aurc", "augrc"))

        return begin

    name = "ab.compare"
    return Race(
        "growth with scores",
        SECTION.name,
        lambda _, share: files.scores(max(200, round(rows * share)), counts[1]),
        Contender("np.sort of one score", lambda data: lambda: np.sort(data[0]["confidence_000"])),
        tuple(Contender(f"{name}, {k} scores", start(k), series=name, size=k) for k in steps),
        f"{told(rows)} samples, AURC and AUGRC, analytic intervals, curves.",
        seconds=0.0,
        rounds=2,
        grows="scores",
    )


def _resamples(sizes: Sizes) -> Race:
    rows, _, most = sizes.compared
    steps = [most // 10, most // 2, most, 4 * most]

    def compare(count: int):
        def begin(data: tuple) -> Call:
            given = ab.Predictions(confidence=data[0], loss=data[1].astype(float))
            return lambda: ab.compare(given, test="bootstrap", bootstrap=count, bands=False)

        return begin

    def alone(count: int):
        def begin(data: tuple) -> Call:
            one = data[0]["confidence_000"]
            return lambda: ab.metric_bootstrap(one, data[1], resamples=count)

        return begin

    made = {"ab.compare, 13 scores": compare, "ab.metric_bootstrap": alone}
    return Race(
        "growth with resamples",
        SECTION.name,
        lambda _, share: files.scores(max(200, round(rows * share)), 13),
        Contender("np.sort of one score", lambda data: lambda: np.sort(data[0]["confidence_000"])),
        tuple(
            Contender(f"{name}, {k} resamples", make(k), series=name, size=k)
            for name, make in made.items()
            for k in steps
        ),
        f"{told(rows)} samples, AUGRC.",
        seconds=0.0,
        rounds=2,
        grows="resamples",
    )


def _classes(sizes: Sizes) -> Race:
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
    return Race(
        "growth with classes",
        SECTION.name,
        setup,
        Contender("largest of each row", lambda data: lambda: data[0].max(axis=1)),
        tuple(Contender(f"{name}, {k} classes", start(k), series=name, size=k) for k in steps),
        f"{told(rows)} samples, float32 logits, checked and scored.",
        seconds=1.0,
        rounds=2,
        grows="classes",
    )


def _splits(sizes: Sizes) -> Race:
    rows, steps = sizes.million // 10, [2, 10, 50]

    def make(folder: Path, _: float) -> None:
        for count in steps:
            files.predictions(folder / f"{count}.parquet", rows, splits=count)

    name = "abstain evaluate --by shift"
    return Race(
        "growth with splits",
        SECTION.name,
        places(make),
        work(),
        tuple(
            Contender(
                f"{name}, {k} splits",
                run("evaluate", Path(f"{k}.parquet"), "--by", "shift", out=f"out{k}"),
                series=name,
                size=k,
            )
            for k in steps
        ),
        f"{told(rows)} rows in all, three confidences, every metric with its interval, the page.",
        seconds=0.0,
        rounds=1,
        grows="splits",
    )
