"""What is reported: metrics, studies, methods with their settings, and the seeds they have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from abstain._foundation.catalogue import spelled_as
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.metrics import Metric, metric_named
from abstain_bench.results.samples import StoredScores, averages_of
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.protocol import Study, studies_of
from abstain_bench.runs.selection import Chosen, choose, metrics_of, usable, validated
from abstain_bench.runs.store import VALIDATION, Run, Store, StoredRun

__all__ = [
    "Compared",
    "asked_methods",
    "asked_metrics",
    "asked_studies",
    "choices",
    "comparable",
    "in_order",
    "never_scored",
]

_Values = Mapping[str, Mapping[str, float | None]]


def asked_metrics(store: Store, names: Sequence[str] | None) -> tuple[Metric, ...]:
    """Return the metrics: those asked for, else those of the configuration."""
    given = metrics_of(store) if names is None else names
    found = [metric_named(name) for name in ([given] if isinstance(given, str) else given)]
    for metric in found:
        if not usable(metric):
            raise InputError(
                f"the metric {metric.name!r} cannot be computed from confidences: it needs class "
                "probabilities, which runs do not keep for every method"
            )
    if not found:
        raise InputError("`metrics` must name at least one; got none")
    return tuple({metric.name: metric for metric in found}.values())


def asked_studies(store: Store, names: Sequence[str] | None) -> tuple[Study, ...]:
    """Return the studies: all, or those asked for in the order of the tables."""
    found = studies_of(store.exposures)
    if names is None:
        return found
    wanted = [names] if isinstance(names, str) else list(names)
    _refuse_unknown(wanted, [study.name for study in found], "study", "studies")
    return tuple(study for study in found if study.name in wanted)


def asked_methods(chosen: Sequence[Chosen], names: Sequence[str] | None) -> tuple[Chosen, ...]:
    """Return the choices of the methods asked for."""
    if names is None:
        return tuple(chosen)
    known = [one.method for one in chosen]
    wanted = [spelled_as(name, known) for name in ([names] if isinstance(names, str) else names)]
    _refuse_unknown(wanted, known, "method", "methods")
    return tuple(one for one in chosen if one.method in wanted)


def in_order(names: Sequence[str]) -> list[str]:
    """Return methods in the order of the catalogue, others behind them."""
    known = [name for name in METHODS if name in names]
    return [*known, *(name for name in dict.fromkeys(names) if name not in METHODS)]


def never_scored(store: Store, chosen: Sequence[Chosen]) -> Iterator[tuple[str, str]]:
    """Return the methods of the configuration that scored no run, and why."""
    seen = {one.method for one in chosen}
    configured = (spelled_as(name, METHODS) for name in store.config.get("methods", ()))
    lacking = [name for name in configured if name not in seen]
    reasons: dict[str, str] = {}
    if lacking:
        for kept in store.kept:
            if kept.validation:
                reasons = {**store.scores(kept.run, VALIDATION).reasons, **reasons}
    for name in lacking:
        yield name, reasons.get(name, "no run was scored by it")


def _refuse_unknown(wanted: Sequence[str], known: Sequence[str], kind: str, kinds: str) -> None:
    for name in wanted:
        if name not in known:
            there = ", ".join(dict.fromkeys(known))
            raise UnknownNameError(
                f"there is no {kind} named {name!r}.{suggest(name, known)} The {kinds} are {there}."
            )
    if not wanted:
        raise InputError(f"`{kinds}` must name at least one, or be None for all; got an empty list")


# ---------------------------------------------------------------------- the setting of each method
def choices(
    store: Store, metrics: Sequence[str], chosen_by: str | None = None
) -> tuple[Chosen, ...]:
    """Choose the setting of every method of a store for every metric, as the runner did.

    Each by its own metric, or all by one of them: then `value` is of that one.

    A method or metric that the runner did not know is chosen among the runs that were tested;
    where it has no confidences on validation data, the first setting is used.
    """
    seen: dict[tuple[str, frozenset[str]], _Values] = {}
    if chosen_by is not None:
        shared = choices(store, [metric_named(chosen_by).name])
        return tuple(replace(one, metric=metric) for metric in metrics for one in shared)
    return choose([_completed(store, kept, metrics, seen) for kept in store.kept], metrics)


def _completed(
    store: Store,
    kept: StoredRun,
    metrics: Sequence[str],
    seen: dict[tuple[str, frozenset[str]], _Values],
) -> StoredRun:
    if not kept.tested:
        return kept
    # The methods that scored the first exposure.
    names = store.scores(kept.run, store.exposures[0].key).confidence
    lacking = {
        name: averages_of(name)
        for name in names
        if any(metric not in kept.validated.get(name, {}) for metric in metrics)
    }
    if not lacking:
        return kept
    # The files of an ensemble stand in every seed.
    place = (kept.validation or kept.run.name, frozenset(lacking))
    if place not in seen:
        seen[place] = _found(store, kept, lacking, metrics)
    found = seen[place]
    values = {name: {**found[name], **kept.validated.get(name, {})} for name in lacking}
    return replace(kept, validated={**kept.validated, **values})


def _found(
    store: Store, kept: StoredRun, methods: Mapping[str, bool], metrics: Sequence[str]
) -> _Values:
    nothing: dict[str, float | None] = dict.fromkeys(metrics)
    known: _Values = {}
    if kept.validation:
        known = validated(store.scores(kept.run, VALIDATION), methods, metrics)
    return {name: known.get(name, nothing) for name in methods}


# ------------------------------------------------------------ the seeds that all methods have
@dataclass(frozen=True)
class Compared:
    """Who is compared by one metric: of every method the same seeds.

    `runs` are by method and seed, `seeds_left` those that some method lacks, and `left_out` says
    why methods are that lack seeds, or all numbers.
    """

    runs: Mapping[str, Mapping[int, Run]]
    seeds_left: tuple[int, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, in order."""
        return tuple(next(iter(self.runs.values()), {}))


def comparable(chosen: Sequence[Chosen], reading: StoredScores, first: Study) -> Compared:
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


def _runs(one: Chosen, reading: StoredScores, first: Study) -> Iterator[tuple[int, Run]]:
    for seed in reading.store.seeds:
        run = reading.run((one.arm, one.setting), seed)
        if run is not None and one.method in reading.parts(first, run)[0].confidence:
            yield seed, run


def _why(one: Chosen, reading: StoredScores, first: Study) -> str:
    place = (one.arm, one.setting)
    runs = [run for seed in reading.store.seeds if (run := reading.run(place, seed))]
    if not runs:
        return f"no run of {' '.join(filter(None, place))} was tested"
    reasons = [reading.parts(first, run)[0].reasons.get(one.method, "") for run in runs]
    return next(filter(None, reasons), f"no confidences for {first.name}")
