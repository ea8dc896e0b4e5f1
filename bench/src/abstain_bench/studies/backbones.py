"""Compare networks over many confidence scores and distribution shifts."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from abstain.errors import InputError
from abstain.evaluation.comparison import MEAN
from abstain.metrics import ece, metric_named
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.classifier import ACCURACY
from abstain.metrics.failure_ranking import FAILURE_AUROC
from abstain.plots.spread import SpreadDisplay, SpreadValues
from abstain_bench.published import table
from abstain_bench.studies._display import Row, counted, group_rows, signed, unique_values
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

if TYPE_CHECKING:
    from abstain.evaluation.comparison import Estimate
    from abstain_bench.results import BenchmarkResults

#: Number of the table of the paper for each metric.
_TABLES: Final = {AURC.name: 1, ACCURACY.name: 8, FAILURE_AUROC.name: 9, ece.__name__: 10}
#: Metrics in figure 8 of the paper.
_FIGURE_METRICS: Final = (AURC.name, ACCURACY.name, FAILURE_AUROC.name)
_TITLES: Final = {
    AURC.name: "AURC",
    ACCURACY.name: "Accuracy",
    FAILURE_AUROC.name: "Failure AUROC",
    ece.__name__: "ECE",
}


@timed
def study_backbones(*, runs: Sequence[str | Path] = ()) -> StudyResult:
    """Compare networks over many confidence scores and distribution shifts.

    The study answers the question: does a larger network have a lower AURC because its accuracy is
    higher, or because its failures are ranked better?

    Parameters
    ----------
    runs : sequence of str or Path, optional
        Folders of runs of `abstain benchmark run`, at least two. Each folder contains the runs of a
        different model. The default is the comparison of a CNN with a ViT in the published tables.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set, study, network, score and metric), "summary"
        (medians, and the number of common pairs of score and study in which the second network is
        better) and "quartiles"; figure "networks" (figure 8).

    Raises
    ------
    InputError
        If `runs` contains only one folder.

    Notes
    -----
    As in the paper, each box of the figure summarizes all scores and studies of a data set.
    Networks may have different scores. The published tables contain 12 scores for the CNN and 9 for
    the ViT. Paired comparisons use only the scores that both networks have. The study evaluates
    each folder once.

    References
    ----------
    .. [1] Jaeger et al. (2023), fig. 8 and tables 1 and 8 to 10, https://arxiv.org/abs/2211.15259

    .. rubric:: Captions

    summary
        Medians over all scores and studies of a data set. A pair is a score in a study that both
        networks have.
    networks
        Dot: one score in one study; thick line: median; thin line: mean; box: quartiles.
    results
        Fractions; for folders of runs, means over the seeds.

    .. rubric:: Glossary

    Pairs
        A score in a study that both networks have. Better: for the second network.

    Examples
    --------
    >>> result = study_backbones()
    >>> [row["data"] for row in result.rows("summary") if not row["second_better"]][0]
    'iWildCam'
    """
    if len(runs) == 1:
        raise InputError(
            f"`runs` must be at least two folders, of different models; got {str(runs[0])!r}"
        )
    rows = list(_evaluate_runs(runs)) if runs else list(_published_rows())
    networks = unique_values(rows, "network")
    quartiles = list(_quartiles(rows))
    summary = list(_summarize(rows, quartiles))
    return BACKBONES.result(
        parameters={"data": unique_values(rows, "data"), "networks": networks},
        tables={"results": rows, "summary": summary, "quartiles": quartiles},
        figures={"networks": _figure(rows)},
        notes=tuple(_notes(rows)),
        verdict=tuple(_conclusions(summary)),
        main_tables=("summary",),
    )


def _published_rows() -> Iterator[dict[str, Any]]:
    """Yield a row for each number in the published tables."""
    for metric, number in _TABLES.items():
        for cell in table(f"fd_shifts_table_{number}"):
            yield {
                "data": cell["dataset"],
                "study": cell["study"],
                "network": cell["classifier"],
                "score": cell["printed"],
                "metric": metric,
                "value": cell["number"],
            }


def _evaluate_runs(folders: Sequence[str | Path]) -> Iterator[dict[str, Any]]:
    """Yield a row for each score and metric in each headline study of each folder."""
    from abstain_bench.results import results_of
    from abstain_bench.runs.store import Store

    n_folders: Counter[tuple[str, str]] = Counter()
    for folder in folders:
        store = Store.read(Path(folder))
        results = results_of(store, metrics=list(_TABLES))
        task = results.task or "runs"
        model = results.model or (store.runs[0].model if store.runs else "") or "?"
        n_folders[task, model] += 1
        repetition = n_folders[task, model]
        network = model if repetition == 1 else f"{model} ({repetition})"
        for study, estimate in _headline_estimates(results):
            yield {
                "data": task,
                "study": study,
                "network": network,
                "score": estimate.method,
                "metric": estimate.metric,
                "value": float(estimate.value),
            }


def _headline_estimates(results: "BenchmarkResults") -> Iterator[tuple[str, "Estimate"]]:
    """Yield each headline study with its estimates, averaged over the seeds."""
    headline = {study.name for study in results.headline}
    has_one_seed = len(results.facts["seeds"]) == 1
    for comparison in results.comparisons.values():
        for estimate in comparison.estimates:
            study = dict(estimate.data)["study"]
            if study in headline and (estimate.run == MEAN or has_one_seed):
                yield study, estimate


def _quartiles(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield quartiles over scores and studies for each data set, metric and network."""
    finite = [row for row in rows if np.isfinite(row["value"])]
    for (data, metric, network), group in group_rows(finite, "data", "metric", "network").items():
        values = [row["value"] for row in group]
        q1, median, q3 = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        yield {
            "data": data,
            "metric": metric,
            "network": network,
            "q1": q1,
            "median": median,
            "q3": q3,
            "values": len(values),
        }


def _summarize(rows: Sequence[Row], quartiles: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Compare every network with the first network, for each data set and metric."""
    medians = {(row["data"], row["metric"], row["network"]): row["median"] for row in quartiles}
    first, *others = unique_values(rows, "network")
    for (data, metric), group in group_rows(rows, "data", "metric").items():
        for second in others:
            first_median = medians.get((data, metric, first))
            second_median = medians.get((data, metric, second))
            if first_median is None or second_median is None:
                continue
            is_better_by_pair = _compare_pairs(group, metric, first, second)
            yield {
                "data": data,
                "metric": metric,
                "networks": f"{first} → {second}",
                "first_median": first_median,
                "second_median": second_median,
                "second_better": _is_better(metric, second_median, first_median),
                "pairs": len(is_better_by_pair),
                "pairs_better": sum(is_better_by_pair),
            }


def _is_better(metric: str, value: float, reference: float) -> bool:
    if metric_named(metric).lower_is_better:
        return bool(value < reference)
    return bool(value > reference)


def _compare_pairs(rows: Sequence[Row], metric: str, first: str, second: str) -> list[bool]:
    """Return whether the second network is better, for each score and study that both have."""
    values: dict[str, dict[tuple[str, str], float]] = {first: {}, second: {}}
    for row in rows:
        if row["network"] in values and np.isfinite(row["value"]):
            values[row["network"]][row["study"], row["score"]] = row["value"]
    return [
        _is_better(metric, values[second][pair], first_value)
        for pair, first_value in values[first].items()
        if pair in values[second]
    ]


def _figure(rows: Sequence[Row]) -> SpreadDisplay:
    """Plot the distribution of each metric over scores and studies by data set and network."""
    groups = group_rows(rows, "metric", "data", "network")
    panel_order = itertools.product(
        _FIGURE_METRICS, unique_values(rows, "data"), unique_values(rows, "network")
    )
    spreads = []
    for metric, data, network in panel_order:
        values = tuple(row["value"] for row in groups.get((metric, data, network), ()))
        if values:
            arrow = "\u2193" if metric_named(metric).lower_is_better else "\u2191"
            spreads.append(SpreadValues(f"{_TITLES[metric]} {arrow}", data, network, values))
    return SpreadDisplay(tuple(spreads), "Networks over all scores and studies")


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a note if the networks have different numbers of scores."""
    n_scores = {
        network: len(unique_values(group, "score"))
        for network, group in group_rows(rows, "network").items()
    }
    if len(set(n_scores.values())) > 1:
        counts = ", ".join(f"{network} {n}" for network, n in n_scores.items())
        yield f"The networks have different scores ({counts}). Pairs use the common scores only."


def _conclusions(summary: Sequence[Row]) -> Iterator[str]:
    for networks, group in group_rows(summary, "networks").items():
        for metric, metric_rows in group_rows(group, "metric").items():
            yield _conclude_metric(metric_rows, metric, networks)
        yield _conclude_reason(group, networks)


def _conclude_metric(rows: Sequence[Row], metric: str, networks: str) -> str:
    """Report for how many data sets and pairs the second network is better."""
    better = [row["data"] for row in rows if row["second_better"]]
    worse = [row["data"] for row in rows if not row["second_better"]]
    n_better = sum(row["pairs_better"] for row in rows)
    n_pairs = sum(row["pairs"] for row in rows)
    exceptions = f" (not on {', '.join(worse)})" if better and worse else ""
    pairs = f", and in {n_better} of {n_pairs} pairs of score and study" if n_pairs else ""
    return (
        f"{networks}: the median {_TITLES[metric]} is better on {len(better)} of "
        f"{counted(len(rows), 'data set')}{exceptions}{pairs}."
    )


def _conclude_reason(rows: Sequence[Row], networks: str) -> str:
    """Report whether the accuracy or the failure AUROC differs more between the networks."""
    changes = []
    for group in group_rows(rows, "data").values():
        change_by_metric = {
            row["metric"]: row["second_median"] - row["first_median"] for row in group
        }
        if ACCURACY.name in change_by_metric and FAILURE_AUROC.name in change_by_metric:
            changes.append((change_by_metric[ACCURACY.name], change_by_metric[FAILURE_AUROC.name]))
    if not changes:
        return (
            f"{networks}: no data set has both accuracy and failure AUROC, so their changes cannot "
            "be compared."
        )
    accuracy_change, auroc_change = (100 * np.median(changes, axis=0)).tolist()
    if accuracy_change > 0 and abs(auroc_change) < abs(accuracy_change) / 2:
        reason = "The gain is due more to a higher accuracy than to a better ranking of failures."
    else:
        reason = "The ranking of failures contributes to the difference."
    return (
        f"{networks}: the median accuracy changes by {signed(accuracy_change)} percentage points "
        f"and the median failure AUROC by {signed(auroc_change)} (medians over "
        f"{counted(len(changes), 'data set')}). {reason}"
    )


#: The study in the catalogue.
BACKBONES: Final = StudyEntry(
    name="backbones",
    title="Comparison of networks",
    question=(
        "Does a larger network have a lower AURC because its accuracy is higher, or because its "
        "failures are ranked better?"
    ),
    source="Jaeger et al. (2023), fig. 8, https://arxiv.org/abs/2211.15259",
    run=study_backbones,
    labels=_TITLES,
)
