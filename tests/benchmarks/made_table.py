"""A catalogue of two made-up races, and numbers of it that nobody measured."""

from benchmarks.cases.entry import Contender, Race, Target
from benchmarks.cases.kernels import NUMBA, NUMPY
from benchmarks.measuring.rounds import Found
from benchmarks.results import Measured


def slow(_):
    return lambda: sum(range(20_000))


def quick(_):
    return lambda: sum(range(2_000))


def broken(_):
    raise ValueError("no such | contender")


SIDE = Race(
    "numbers",
    "ranking",
    lambda folder, share: share,
    Contender("np.sort", quick),
    (
        Contender("augrc", slow, NUMBA, (Target(3),), memory=True),
        Contender("augrc", slow, NUMPY, (Target(6),)),
        Contender("broken", broken),
    ),
    n=1000,
    seconds=0.0,
    quick=True,
    column="1e3 float32",
)
PLAIN = Race(
    "a command",
    "commands",
    lambda folder, share: folder,
    Contender("some work", quick),
    (
        Contender("with page", slow, targets=(Target(5, "seconds"), Target(3, "page, MB"))),
        Contender("theirs", slow, peer=True),
    ),
    n=10,
    seconds=0.0,
    quick=True,
)
GROWING = Race(
    "growth with rows",
    "growth",
    lambda folder, share: folder,
    Contender("some work", quick),
    tuple(Contender(f"evaluate {n}", slow, series="evaluate", size=n) for n in (10, 100, 1000)),
    "Rows.",
    grows="rows",
)
RACES = {race.name: race for race in (SIDE, PLAIN, GROWING)}


def found(ratio, *, seconds=1.0, **more):
    return Found(seconds, seconds, seconds, ratio, 2, **more)


def told(contenders):
    return Measured(contenders, "2026-11-22 10:00", "a machine", {"numpy": "2"}, "abc", 0.1, 60.0)


FOUND = {
    "numbers": told(
        {
            "np.sort": found(float("nan"), seconds=0.01),
            "augrc (numba)": found(2.5, peak=0.0095367),
            "augrc (NumPy)": found(7.0),
            "broken": Found(reason="failed: ValueError: no such | contender"),
        }
    ),
    "a command": told(
        {
            "some work": found(float("nan"), seconds=0.5),
            "with page": found(8.0, seconds=4.0, peak=100.0, facts={"page, MB": 3.5}),
            "theirs": found(20.0),
        }
    ),
    "growth with rows": told(
        {
            "some work": found(float("nan")),
            **{f"evaluate {n}": found(1.0, seconds=n * 1e-3) for n in (10, 100, 1000)},
        }
    ),
}
