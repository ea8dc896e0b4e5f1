"""Which runs each method uses, also where methods or metrics were added after the choice."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from abstain.benchmark.methods import METHODS
from abstain.benchmark.runs import VALIDATION
from abstain.benchmark.selection import Chosen, choose, validated
from abstain.benchmark.store import Kept, Store

__all__ = ["averages_of", "choices"]

_Values = Mapping[str, Mapping[str, float | None]]


def averages_of(method: str) -> bool:
    """Tell whether a method judges the averaged prediction; one that was added does not."""
    return method in METHODS and METHODS[method].averages


def choices(store: Store, metrics: Sequence[str]) -> tuple[Chosen, ...]:
    """Choose the setting of every method of a store for every metric, as the runner did.

    A method or metric that the runner did not know is chosen among the runs that were tested;
    where it has no confidences on validation data, the first setting is used.
    """
    seen: dict[tuple[str, frozenset[str]], _Values] = {}
    return choose([_completed(store, kept, metrics, seen) for kept in store.kept], metrics)


def _completed(
    store: Store,
    kept: Kept,
    metrics: Sequence[str],
    seen: dict[tuple[str, frozenset[str]], _Values],
) -> Kept:
    if not kept.tested:
        return kept
    names = _tested(store, kept)
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


def _tested(store: Store, kept: Kept) -> list[str]:
    """Return the methods that scored the first exposure."""
    return list(store.scores(kept.run, store.exposures[0].key).confidence)


def _found(
    store: Store, kept: Kept, methods: Mapping[str, bool], metrics: Sequence[str]
) -> _Values:
    nothing: dict[str, float | None] = dict.fromkeys(metrics)
    known: _Values = {}
    if kept.validation:
        known = validated(store.scores(kept.run, VALIDATION), methods, metrics)
    return {name: known.get(name, nothing) for name in methods}
