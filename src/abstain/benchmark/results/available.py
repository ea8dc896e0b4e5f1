"""Which methods can be compared by which seeds: as many numbers as all of them have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from abstain.benchmark.protocol import Study
from abstain.benchmark.results.reading import Place, Reading
from abstain.benchmark.runs import Run
from abstain.benchmark.selection import Chosen

__all__ = ["Compared", "comparable"]


@dataclass(frozen=True)
class Compared:
    """Who is compared by one metric.

    Attributes
    ----------
    runs : mapping from str to mapping from int to Run
        By method and seed: of every method the same seeds.
    seeds_left : tuple of int
        Seeds that some method lacks.
    left_out : mapping from str to str
        Methods that lack seeds, or all numbers, and why.
    """

    runs: Mapping[str, Mapping[int, Run]]
    seeds_left: tuple[int, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, in order."""
        return tuple(next(iter(self.runs.values()), {}))


def comparable(chosen: Sequence[Chosen], reading: Reading, first: Study) -> Compared:
    """Say which methods and seeds give the most numbers that can be compared.

    A comparison needs all methods in all seeds. Where a network is missing, either its seed is
    left out for all methods or its methods for all seeds, whichever leaves more.
    """
    there: dict[str, dict[int, Run]] = {}
    left: dict[str, str] = {}
    for one in chosen:
        found = dict(_runs(one, reading, first))
        if found:
            there[one.method] = found
        else:
            left[one.method] = _why(one, reading, first)
    seeds = _seeds(there)
    every = {seed for own in there.values() for seed in own}
    for method, own in list(there.items()):
        if lacking := [seed for seed in seeds if seed not in own]:
            left[method] = f"no numbers for seed {', '.join(map(str, lacking))}"
            del there[method]
    runs = {method: {seed: own[seed] for seed in seeds} for method, own in there.items()}
    return Compared(runs, tuple(sorted(every - set(seeds))), left)


def _seeds(there: Mapping[str, Mapping[int, Run]]) -> tuple[int, ...]:
    """Return the seeds for which methods times seeds is largest; of equal ones more methods."""
    sets = {frozenset(own) for own in there.values()}
    sets |= {one & other for one in sets for other in sets}
    candidates = sorted(
        (tuple(sorted(own)) for own in sets if own), key=lambda own: (-len(own), own)
    )

    def numbers(seeds: tuple[int, ...]) -> tuple[int, int]:
        having = sum(set(seeds) <= set(own) for own in there.values())
        return having * len(seeds), having

    return max(candidates, key=numbers, default=())


def _runs(one: Chosen, reading: Reading, first: Study) -> Iterator[tuple[int, Run]]:
    for seed in reading.store.seeds:
        run = reading.run((one.arm, one.setting), seed)
        if run is not None and one.method in reading.parts(first, run)[0].confidence:
            yield seed, run


def _why(one: Chosen, reading: Reading, first: Study) -> str:
    place: Place = (one.arm, one.setting)
    runs = [run for seed in reading.store.seeds if (run := reading.run(place, seed))]
    if not runs:
        return f"no run of {' '.join(filter(None, place))} was tested"
    reasons = [reading.parts(first, run)[0].reasons.get(one.method, "") for run in runs]
    return next(filter(None, reasons), f"no confidences for {first.name}")
