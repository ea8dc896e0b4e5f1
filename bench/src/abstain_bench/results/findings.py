"""What the reader of the results should know, in plain words."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from abstain.evaluation import Note
from abstain.evaluation.comparison import Unit
from abstain_bench.results.scope import Compared
from abstain_bench.runs.protocol import Study
from abstain_bench.runs.selection import Chosen
from abstain_bench.runs.specification.arms import ENSEMBLE
from abstain_bench.runs.store import StoredRun

__all__ = [
    "FEW",
    "about_choices",
    "about_failures",
    "about_runs",
    "about_studies",
    "about_untested",
]

#: Below so many failures a study says little.
FEW: Final = 10


def about_choices(chosen: Sequence[Chosen]) -> Iterator[Note]:
    """Say where a setting was chosen from less than all there is."""
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in chosen:
        if one.note:
            alike[one.metric, one.note].append(one.method)
    for (metric, note), methods in alike.items():
        message = f"Settings by {metric}: {note} ({', '.join(methods)})."
        yield Note.warning("settings", message)
    if any(one.arm == ENSEMBLE for one in chosen):
        yield Note(
            "ensemble",
            "One ensemble, of the networks of all seeds, stands in every seed: its numbers do not "
            "vary with the seed.",
        )


def about_runs(who: Mapping[str, Compared], facts: Mapping[str, Any]) -> Iterator[Note]:
    """Say which runs are missing, and which methods for that reason."""
    for seeds, metrics in _grouped((own.seeds_left, metric) for metric, own in who.items()):
        if seeds:
            message = (
                f"Seed {', '.join(map(str, seeds))} is left out by {', '.join(metrics)}: some "
                "method has no numbers for it."
            )
            yield Note.warning("seeds", message)
    lacking = [
        ((method, why), metric)
        for metric, own in who.items()
        for method, why in own.left_out.items()
    ]
    for (method, why), metrics in _grouped(lacking):
        message = f"{method} is left out by {', '.join(metrics)}: {why}."
        yield Note.warning("left_out", message, score=method)
    failed = list(facts.get("failed", ()))
    if failed:
        listed = ", ".join(map(str, failed[:5])) + (" and others" if len(failed) > 5 else "")
        message = f"{len(failed)} jobs failed: {listed}. Their logs are beside the other files."
        yield Note.warning("failed", message)
    counts = {len(own.seeds) for own in who.values() if own.runs}
    if counts and min(counts) == 1:
        yield Note("one_seed", "There is one seed: how much training again changes is not known.")


def about_untested(chosen: Sequence[Chosen], kept: Sequence[StoredRun]) -> Iterator[Note]:
    """Say that a run was stopped before all networks that were chosen are tested."""
    places = {(one.arm, one.setting) for one in chosen}
    own = [one for one in kept if (one.run.arm, one.run.setting) in places]
    lacking = [one.run.name for one in own if not one.tested]
    if lacking:
        listed = ", ".join(lacking[:3]) + (" and others" if len(lacking) > 3 else "")
        message = (
            f"This run is not over: {len(lacking)} of {len(own)} networks whose settings were "
            f"chosen are not tested ({listed}). `abstain benchmark status` says how far it is."
        )
        yield Note.warning("unfinished", message)


def about_studies(studies: Sequence[Study]) -> Iterator[Note]:
    """Say what the tests over all studies take for granted."""
    if len([study for study in studies if study.headline]) > 1:
        yield Note(
            "dependent_studies",
            "The studies share networks and pictures. Mean ranks describe them; tests over all "
            "studies take studies for independent, and promise too much.",
        )


def about_failures(units: Sequence[Unit]) -> Iterator[Note]:
    """Say where a study has so few failures that its numbers say little."""
    fewest = min(unit.counted(method)[1] for unit in units for method in unit.scored)
    if fewest < FEW:
        data = units[0].data
        failures = "1 failure" if fewest == 1 else f"{fewest} failures"
        message = (
            f"The study {data[0][1]} has {failures} for some method, fewer than {FEW}: its numbers "
            "say little."
        )
        yield Note.warning("few_failures", message, data)


def _grouped(pairs: Iterable[tuple[Any, str]]) -> Iterator[tuple[Any, list[str]]]:
    """Return the metrics of each thing there is to say."""
    found: dict[Any, list[str]] = defaultdict(list)
    for what, metric in pairs:
        found[what].append(metric)
    yield from found.items()
