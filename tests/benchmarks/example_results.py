"""A catalogue of three small cases, and example results for them."""

from benchmarks.cases.entry import BenchmarkCase, Target, Variant
from benchmarks.cases.kernels import NUMBA, NUMPY
from benchmarks.measuring.rounds import Measurement
from benchmarks.results import CaseResult


def slow(_):
    return lambda: sum(range(20_000))


def quick(_):
    return lambda: sum(range(2_000))


def broken(_):
    raise ValueError("no such | variant")


RANKING = BenchmarkCase(
    "numbers",
    "ranking",
    lambda folder, share: share,
    Variant("np.sort", quick),
    (
        Variant("augrc", slow, NUMBA, (Target(3),), memory=True),
        Variant("augrc", slow, NUMPY, (Target(6),)),
        Variant("broken", broken),
    ),
    n=1000,
    seconds=0.0,
    is_quick=True,
    column="1e3 float32",
)
COMMAND = BenchmarkCase(
    "a command",
    "commands",
    lambda folder, share: folder,
    Variant("some work", quick),
    (
        Variant("with page", slow, targets=(Target(5, "seconds"), Target(3, "page, MB"))),
        Variant("peer", slow, is_peer=True),
    ),
    n=10,
    seconds=0.0,
    is_quick=True,
)
GROWING = BenchmarkCase(
    "growth with rows",
    "growth",
    lambda folder, share: folder,
    Variant("some work", quick),
    tuple(Variant(f"evaluate {n}", slow, series="evaluate", size=n) for n in (10, 100, 1000)),
    "Rows.",
    growing="rows",
)
CASES = {case.name: case for case in (RANKING, COMMAND, GROWING)}


def measurement(ratio, *, seconds=1.0, **fields):
    return Measurement(seconds, seconds, seconds, ratio, 2, **fields)


def case_result(variants):
    return CaseResult(variants, "2026-11-22 10:00", "a machine", {"numpy": "2"}, "abc", 0.1, 60.0)


RESULTS = {
    "numbers": case_result(
        {
            "np.sort": measurement(float("nan"), seconds=0.01),
            "augrc (numba)": measurement(2.5, peak=0.0095367),
            "augrc (NumPy)": measurement(7.0),
            "broken": Measurement(reason="failed: ValueError: no such | variant"),
        }
    ),
    "a command": case_result(
        {
            "some work": measurement(float("nan"), seconds=0.5),
            "with page": measurement(8.0, seconds=4.0, peak=100.0, facts={"page, MB": 3.5}),
            "peer": measurement(20.0),
        }
    ),
    "growth with rows": case_result(
        {
            "some work": measurement(float("nan")),
            **{f"evaluate {n}": measurement(1.0, seconds=n * 1e-3) for n in (10, 100, 1000)},
        }
    ),
}
