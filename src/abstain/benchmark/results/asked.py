"""What was asked for, checked against what there is."""

from collections.abc import Iterator, Sequence
from typing import Final

from abstain.benchmark.methods import METHODS
from abstain.benchmark.protocol import Study, studies_of
from abstain.benchmark.runs import VALIDATION
from abstain.benchmark.selection import Chosen, usable
from abstain.benchmark.store import Store
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.metrics import Metric, metric_named

__all__ = ["asked_methods", "asked_metrics", "asked_studies", "in_order", "never_scored"]

#: Where nobody says what is to be reported.
_DEFAULT: Final = ("augrc", "aurc", "failure_auroc", "accuracy", "ece")


def asked_metrics(store: Store, names: Sequence[str] | None) -> tuple[Metric, ...]:
    """Return the metrics: those asked for, else those of the configuration."""
    given = store.config.get("metrics", _DEFAULT) if names is None else names
    found = [metric_named(name) for name in ([given] if isinstance(given, str) else given)]
    for metric in found:
        if not usable(metric):
            msg = (
                f"the metric {metric.name!r} cannot be computed from confidences: it needs class "
                "probabilities, which runs do not keep for every method"
            )
            raise InputError(msg)
    if not found:
        msg = "`metrics` must name at least one; got none"
        raise InputError(msg)
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
    wanted = [names] if isinstance(names, str) else list(names)
    _refuse_unknown(wanted, [one.method for one in chosen], "method", "methods")
    return tuple(one for one in chosen if one.method in wanted)


def in_order(names: Sequence[str]) -> list[str]:
    """Return methods in the order of the catalogue, others behind them."""
    known = [name for name in METHODS if name in names]
    return [*known, *(name for name in dict.fromkeys(names) if name not in METHODS)]


def never_scored(store: Store, chosen: Sequence[Chosen]) -> Iterator[tuple[str, str]]:
    """Return the methods of the configuration that scored no run, and why."""
    seen = {one.method for one in chosen}
    lacking = [name for name in store.config.get("methods", ()) if name not in seen]
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
            msg = (
                f"there is no {kind} named {name!r}.{suggest(name, known)} The {kinds} are {there}."
            )
            raise UnknownNameError(msg)
    if not wanted:
        msg = f"`{kinds}` must name at least one, or be None for all; got an empty list"
        raise InputError(msg)
