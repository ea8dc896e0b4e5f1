"""Networks of different kinds side by side: all scores and shifts, data set by data set."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain.errors import InputError
from abstain.evaluation.comparison import MEAN
from abstain.metrics import ece, metric_named
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.classifier import ACCURACY
from abstain.metrics.failure_ranking import FAILURE_AUROC
from abstain.plots.spread import SpreadDisplay, SpreadValues
from abstain_bench.published import table
from abstain_bench.studies._sentences import counted, signed
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed

#: What is compared, and which table of the paper has it.
_TABLES: Final = {AURC.name: 1, ACCURACY.name: 8, FAILURE_AUROC.name: 9, ece.__name__: 10}
#: What the figure of the paper shows.
_DRAWN: Final = (AURC.name, ACCURACY.name, FAILURE_AUROC.name)
_TITLES: Final = {
    AURC.name: "AURC",
    ACCURACY.name: "Accuracy",
    FAILURE_AUROC.name: "Failure AUROC",
    ece.__name__: "ECE",
}


@timed
def study_backbones(*, runs: Sequence[str | Path] = ()) -> StudyResult:
    """Compare networks of different kinds over all scores and shifts.

    Answers: is a larger network better because it errs less, or because its errors are easier to
    find?

    Parameters
    ----------
    runs : sequence of str or Path, optional
        Folders of runs of `abstain benchmark run`, at least two with different models. Without
        any: the published tables, CNN against ViT.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set, study, network, score and metric), "summary"
        (medians, and how often the second network is better where both have a score and a study)
        and "quartiles"; figure "networks" (figure 8).

    Raises
    ------
    InputError
        If one folder is given, or all are of one model.

    Notes
    -----
    As in the paper a box is over all scores and studies of a data set, and the two networks need
    not have the same scores: of the published ones the CNN has 12 and the ViT 9. What is said of
    pairs is of those that both have. Cost: a comparison of each folder.

    References
    ----------
    .. [1] Jaeger et al. (2023), fig. 8 and tables 1 and 8 to 10, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> found = study_backbones()
    >>> [row["data"] for row in found.rows("summary") if not row["second_better"]][0]
    'iWildCam'
    """
    if len(runs) == 1:
        raise InputError(
            f"`runs` must be at least two folders, of different models; got {str(runs[0])!r}"
        )
    rows = list(_measured(runs)) if runs else list(_printed())
    networks = tuple(dict.fromkeys(row["network"] for row in rows))
    quartiles = list(_quartiles(rows))
    summary = list(_summary(rows, quartiles))
    return BACKBONES.result(
        parameters={
            "data": tuple(dict.fromkeys(row["data"] for row in rows)),
            "networks": networks,
        },
        tables={"results": rows, "summary": summary, "quartiles": quartiles},
        figures={"networks": _figure(rows)},
        notes=tuple(_notes(rows, networks)),
        verdict=tuple(_verdict(summary)),
        shown=("summary",),
    )


def _printed() -> Iterator[dict[str, Any]]:
    for metric, number in _TABLES.items():
        for cell in table(f"fd_shifts_table_{number}"):
            yield _row(cell["dataset"], cell["study"], cell["classifier"], cell["printed"]) | {
                "metric": metric,
                "value": cell["number"],
            }


def _row(data: str, study: str, network: str, score: str) -> dict[str, Any]:
    return {"data": data, "study": study, "network": network, "score": score}


def _measured(folders: Sequence[str | Path]) -> Iterator[dict[str, Any]]:
    """Yield the means over the seeds of every folder, headline studies only."""
    from abstain_bench.results import results_of
    from abstain_bench.runs.store import Store

    used: dict[tuple[str, str], int] = {}
    for folder in folders:
        store = Store.read(Path(folder))
        found = results_of(store, metrics=list(_TABLES))
        task, model = _of(store)
        again = used[task, model] = used.get((task, model), 0) + 1
        network = model if again == 1 else f"{model} ({again})"
        headline = {study.name for study in found.headline}
        for e in itertools.chain.from_iterable(own.estimates for own in found.comparisons.values()):
            study = dict(e.data)["study"]
            if study in headline and (e.run == MEAN or len(found.facts["seeds"]) == 1):
                told = {"metric": e.metric, "value": float(e.value)}
                yield _row(task, study, network, e.method) | told


def _of(store: Any) -> tuple[str, str]:
    """Return the task and the model of a folder of runs."""
    own = store.config
    inner = own.get("benchmark") if isinstance(own.get("benchmark"), dict) else own
    model = own.get("model", "")
    named = model.get("name", "") if isinstance(model, dict) else model
    return inner.get("task") or "runs", named or (store.runs[0].model if store.runs else "") or "?"


def _quartiles(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Return one row for each data set, metric and network."""
    by: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if np.isfinite(row["value"]):
            by.setdefault((row["data"], row["metric"], row["network"]), []).append(row["value"])
    for (data, metric, network), known in by.items():
        low, median, high = np.quantile(known, [0.25, 0.5, 0.75]).tolist()
        yield {
            "data": data,
            "metric": metric,
            "network": network,
            "q1": low,
            "median": median,
            "q3": high,
            "values": len(known),
        }


def _summary(rows: Sequence[Row], quartiles: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Compare each network after the first with that, by data set and metric."""
    medians = {(r["data"], r["metric"], r["network"]): r["median"] for r in quartiles}
    networks = list(dict.fromkeys(row["network"] for row in rows))
    for data, metric in dict.fromkeys((row["data"], row["metric"]) for row in rows):
        for first, second in ((networks[0], other) for other in networks[1:]):
            one, two = (medians.get((data, metric, name)) for name in (first, second))
            if one is None or two is None:
                continue
            better, pairs = _pairs(rows, (data, metric), (first, second))
            lower = metric_named(metric).lower_is_better
            yield {
                "data": data,
                "metric": metric,
                "networks": f"{first} → {second}",
                "first_median": one,
                "second_median": two,
                "second_better": bool(two < one if lower else two > one),
                "pairs": pairs,
                "pairs_better": better,
            }


def _pairs(
    rows: Sequence[Row], place: tuple[str, str], networks: tuple[str, str]
) -> tuple[int, int]:
    """Return in how many pairs the second network is better, and how many there are."""
    one, two = (
        {
            (row["study"], row["score"]): row["value"]
            for row in rows
            if (row["data"], row["metric"], row["network"]) == (*place, name)
            and np.isfinite(row["value"])
        }
        for name in networks
    )
    both = [key for key in one if key in two]
    lower = metric_named(place[1]).lower_is_better
    better = [two[key] < one[key] if lower else two[key] > one[key] for key in both]
    return sum(better), len(both)


def _figure(rows: Sequence[Row]) -> SpreadDisplay:
    metrics = [m for m in _DRAWN if any(row["metric"] == m for row in rows)]
    keys = itertools.product(
        metrics,
        dict.fromkeys(row["data"] for row in rows),
        dict.fromkeys(row["network"] for row in rows),
    )
    spreads = [
        SpreadValues(
            _titled(metric),
            data,
            name,
            tuple(
                row["value"]
                for row in rows
                if (row["metric"], row["data"], row["network"]) == (metric, data, name)
            ),
        )
        for metric, data, name in keys
    ]
    return SpreadDisplay(
        tuple(s for s in spreads if s.values), "Networks over all scores and studies"
    )


def _titled(metric: str) -> str:
    arrow = "\u2193" if metric_named(metric).lower_is_better else "\u2191"
    return f"{_TITLES[metric]} {arrow}"


def _notes(rows: Sequence[Row], networks: Sequence[str]) -> Iterator[str]:
    scores = [len({r["score"] for r in rows if r["network"] == name}) for name in networks]
    if len(set(scores)) > 1:
        each = ", ".join(f"{name} {n}" for name, n in zip(networks, scores, strict=True))
        yield f"The networks have different scores ({each}); pairs are of the common ones."


def _verdict(summary: Sequence[Row]) -> Iterator[str]:
    for networks in dict.fromkeys(row["networks"] for row in summary):
        own = [row for row in summary if row["networks"] == networks]
        for metric in dict.fromkeys(row["metric"] for row in own):
            yield _said([row for row in own if row["metric"] == metric], networks)
        yield _why(own, networks)


def _said(own: Sequence[Row], networks: str) -> str:
    """Say on how many data sets, and in how many pairs, the second network is better."""
    ahead = [row["data"] for row in own if row["second_better"]]
    behind = [row["data"] for row in own if not row["second_better"]]
    wins, pairs = (sum(row[name] for row in own) for name in ("pairs_better", "pairs"))
    but = f" (not on {', '.join(behind)})" if ahead and behind else ""
    of_pairs = f", and in {wins} of {pairs} pairs of one score and study" if pairs else ""
    return (
        f"{networks}: the median {_TITLES[own[0]['metric']]} is better on {len(ahead)} of "
        f"{len(own)} data sets{but}{of_pairs}."
    )


def _why(own: Sequence[Row], networks: str) -> str:
    """Say whether ranking failures got better where accuracy did."""
    changes: dict[str, dict[str, float]] = {}
    for row in own:
        change = row["second_median"] - row["first_median"]
        changes.setdefault(row["data"], {})[row["metric"]] = change
    wanted = (ACCURACY.name, FAILURE_AUROC.name)
    both = [[own[metric] for metric in wanted] for own in changes.values() if {*wanted} <= {*own}]
    if not both:
        return f"{networks}: accuracy and failure AUROC are not both known, so why stays open."
    errs, ranks = (100 * np.median(both, axis=0)).tolist()
    reason = (
        "so it gains more by erring less than by ranking better"
        if errs > 0 and abs(ranks) < abs(errs) / 2
        else "so ranking has a part in what changes"
    )
    return (
        f"{networks}: the median accuracy moves by {signed(errs)} points and the median failure "
        f"AUROC by {signed(ranks)} (medians over {counted(len(both), 'data set')}), {reason}."
    )


#: The study in the catalogue.
BACKBONES: Final = StudyEntry(
    name="backbones",
    title="Networks side by side",
    question=(
        "Is a larger network better because it errs less, or because its errors are easier to find?"
    ),
    source="Jaeger et al. (2023), fig. 8, https://arxiv.org/abs/2211.15259",
    run=study_backbones,
    captions={
        "summary": (
            "Over all scores and studies of a data set; pairs are of one score and study that both "
            "networks have."
        ),
        "networks": "A dot is one score in one study. Thick: median; thin: mean; box: quartiles.",
        "results": "Fractions; of runs the means over the seeds.",
    },
    glossary={
        "Pairs": "A score in a study that both networks have; better: for the second network.",
    },
    labels=_TITLES,
)
