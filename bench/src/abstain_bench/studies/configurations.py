"""Ways to train, run by run: risk at given coverages, failure AUROC, mean and best run."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.metrics import failure_auroc, selective_risk
from abstain.plots.series import Series, SeriesDisplay
from abstain.plots.spread import SpreadDisplay, SpreadValues
from abstain.typing import FloatArray
from abstain_bench.published import table
from abstain_bench.studies._sentences import counted
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed

#: Those of table 14.
COVERAGES: Final = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)
#: What the tables and figures are about, of which every run has some.
SCORES: Final = (
    "msr",
    "mls",
    "mahalanobis",
    "mahalanobis_predicted",
    "confidnet",
    "dg_res",
    "devries",
)

_RISK, _AUROC, _RIGHT = "risk", "failure AUROC", "right"
#: Of a published run that was chosen by its accuracy.
_BEST = "failure AUROC of the best run"
_IID: Final = "iid"


@timed
def study_configurations(
    *,
    runs: Sequence[str | Path] = (),
    scores: Sequence[str] = SCORES,
    coverages: Sequence[float] = COVERAGES,
) -> StudyResult:
    """Compare ways to train, run by run.

    Answers: is this way to train on a par with another, and do all runs say so?

    Parameters
    ----------
    runs : sequence of str or Path, optional
        Folders of runs; every arm with a setting is a configuration. Without any: the published
        tables 14 to 16, the paper's configurations against those of the original authors.
    scores : sequence of str, optional
        Methods whose confidences are judged, where a run has them; by default those of the paper.
    coverages : sequence of float, default=(1, 0.95, 0.9, 0.85, 0.8, 0.75)
        Where the selective risk on i.i.d. data is read.

    Returns
    -------
    StudyResult
        Tables "results" (one row a number), "risks" (table 14) and "auroc" (tables 15 and 16: mean,
        standard deviation over runs, and the run of the best accuracy); figures "risks" and, of
        runs, "runs" (figures 10 and 11).

    Raises
    ------
    InputError
        If no run has one of the scores.
    DomainError
        If a coverage is not in (0, 1].

    Notes
    -----
    Risk at a coverage is the lowest among the thresholds that keep at least that share, as the
    released code reads it. In studies of new classes wrong answers about known ones are left out.
    The standard deviation is that of a sample (divided by runs - 1). Cost: a sort for each run,
    score and study.

    References
    ----------
    .. [1] Jaeger et al. (2023), fig. 10 and 11, tables 14 to 16, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> found = study_configurations()
    >>> [round(row["risk@1"], 4) for row in found.rows("risks")]
    [0.0494, 0.0612]
    """
    at = tuple(checks.fraction(c, "coverages") for c in coverages)
    rows = list(_measured(runs, scores, at)) if runs else list(_printed())
    if not rows:
        raise InputError(
            f"no run of these folders was tested by one of the scores {', '.join(scores)}"
        )
    risks, auroc = list(_risks(rows)), list(_aurocs(rows))
    figures: dict[str, Any] = {"risks": _lines(rows)}
    if runs:
        figures["runs"] = _dots(rows)
    return CONFIGURATIONS.result(
        parameters={
            "configurations": tuple(dict.fromkeys(row["configuration"] for row in rows)),
            "scores": tuple(dict.fromkeys(row["score"] for row in rows)),
        },
        tables={"results": rows, "risks": risks, "auroc": auroc},
        figures=figures,
        verdict=(*_of_risks(risks), *_of_auroc(auroc)),
    )


def _row(configuration: str, score: str, study: str, run: str, **more: Any) -> dict[str, Any]:
    place = {"configuration": configuration, "score": score, "study": study, "run": run}
    return {**place, "measure": "", "coverage": None, "value": np.nan, "spread": None} | more


def _printed() -> Iterator[dict[str, Any]]:
    """Yield the cells of tables 14 to 16; a mean is one cell with its spread."""
    for number in (14, 15, 16):
        for cell in table(f"fd_shifts_table_{number}"):
            block, best = cell["block"] or _trained(cell["printed"]), cell["block"].endswith("best")
            percent = cell["metric"].partition("@")[2].removesuffix("cov")
            spread = cell["spread"]
            yield _row(
                f"table {number}: {block.removesuffix(', mean').removesuffix(', best')}",
                cell["method"],
                cell["study"] if number < 16 else f"{cell['dataset']}, {cell['study']}",
                "printed",
                measure=_RISK if percent else _BEST if best else _AUROC,
                coverage=float(percent) / 100 if percent else None,
                value=cell["number"],
                spread=float(spread) / 100 if spread else None,
            )


def _trained(printed: str) -> str:
    """Return how a row of table 15 was trained."""
    if "ours" in printed:
        return "ours"
    return f"Vaze et al. (2022), {'improved' if 'improved' in printed else 'baseline'}"


def _measured(
    folders: Sequence[str | Path], scores: Sequence[str], coverages: Sequence[float]
) -> Iterator[dict[str, Any]]:
    from abstain_bench.runs.store import Store

    for folder in folders:
        store = Store.read(Path(folder))
        short = f"{store.folder.name}: " if len(folders) > 1 else ""
        for run in store.tested_runs:
            name = short + " ".join(filter(None, (run.arm, run.setting)))
            for row in _of_run(store, run, scores, coverages):
                yield {**row, "configuration": name, "run": str(run.seed)}


def _of_run(
    store: Any, run: Any, scores: Sequence[str], coverages: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield the numbers of one network."""
    from abstain_bench.runs.methods import METHODS
    from abstain_bench.runs.studies import concatenate_scores, studies_of, study_loss

    known = [s for s in studies_of(store.exposures) if s.headline and not s.parts]
    for study in (s for s in known if s.kind == _IID or s.errors == "removed"):
        said = concatenate_scores(study, [store.scores(run, key) for key in study.exposures])
        for score in (name for name in scores if name in said.confidence):
            averages = score in METHODS and METHODS[score].uses_mean_prediction
            found = study_loss(study, said, uses_mean_prediction=averages)
            rates = coverages if study.kind == _IID else ()
            yield from _of_score(score, study.name, said.confidence[score], found, rates)


def _of_score(
    score: str, study: str, confidence: FloatArray, found: Any, coverages: Sequence[float]
) -> Iterator[dict[str, Any]]:
    place = ("", score, study, "")
    value = failure_auroc(confidence, found.loss, weight=found.weight)
    yield _row(*place, measure=_AUROC, value=float(value))
    if coverages:
        yield _row(*place, measure=_RIGHT, value=1 - float(np.mean(found.loss)))
    for c in coverages:
        risk = float(selective_risk(confidence, found.loss, coverage=c))
        yield _row(*place, measure=_RISK, coverage=c, value=risk)


def _risks(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Return the mean risk over the runs, one column a coverage."""
    own = [row for row in rows if row["measure"] == _RISK]
    for configuration, score in dict.fromkeys((r["configuration"], r["score"]) for r in own):
        mine = [r for r in own if (r["configuration"], r["score"]) == (configuration, score)]
        at = {
            f"risk@{c:g}": float(np.mean([r["value"] for r in mine if r["coverage"] == c]))
            for c in dict.fromkeys(r["coverage"] for r in mine)
        }
        yield {"configuration": configuration, "score": score, **at}


def _aurocs(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Return mean and spread over the runs, and what the run of the best accuracy has."""
    keys = ("configuration", "score", "study")
    own = [row for row in rows if row["measure"] == _AUROC]
    for place in dict.fromkeys(tuple(row[key] for key in keys) for row in own):
        mine = [row for row in own if tuple(row[key] for key in keys) == place]
        values = [row["value"] for row in mine if np.isfinite(row["value"])]
        if not values:
            continue
        spread = mine[0]["spread"]
        if spread is None and len(values) > 1:
            spread = float(np.std(values, ddof=1))
        best = _most_accurate(rows, place[0], place[1])
        chosen = [row["value"] for row in mine if row["run"] == best] or [
            row["value"]
            for row in rows
            if row["measure"] == _BEST and tuple(row[key] for key in keys) == place
        ]
        yield {
            **dict(zip(keys, place, strict=True)),
            "mean": float(np.mean(values)),
            "spread": spread,
            "best_run": chosen[0] if chosen else None,
            "runs": len(values),
        }


def _most_accurate(rows: Sequence[Row], configuration: str, score: str) -> str:
    found = {
        row["run"]: row["value"]
        for row in rows
        if (row["configuration"], row["score"], row["measure"]) == (configuration, score, _RIGHT)
    }
    return max(found, key=lambda run: found[run], default="")


def _lines(rows: Sequence[Row]) -> SeriesDisplay:
    own = [row for row in rows if row["measure"] == _RISK]
    series = []
    for entry in _risks(own):
        points = sorted(
            (float(name.partition("@")[2]), value)
            for name, value in entry.items()
            if name.startswith("risk@")
        )
        x, y = zip(*points, strict=True)
        series.append(Series(entry["configuration"], x, y, panel=entry["score"]))
    return SeriesDisplay(
        tuple(series),
        "Risk of what is accepted, at given coverages",
        "Coverage",
        "Selective risk",
        log_x=False,
    )


def _dots(rows: Sequence[Row]) -> SpreadDisplay:
    own = [row for row in rows if row["measure"] == _AUROC and np.isfinite(row["value"])]
    places = dict.fromkeys((r["study"], r["score"], r["configuration"]) for r in own)
    spreads = [
        SpreadValues(
            study,
            score,
            configuration,
            tuple(
                row["value"]
                for row in own
                if (row["study"], row["score"], row["configuration"])
                == (study, score, configuration)
            ),
        )
        for study, score, configuration in places
    ]
    return SpreadDisplay(tuple(spreads), "Failure AUROC of every run")


def _of_risks(risks: Sequence[Row]) -> Iterator[str]:
    """Say for each score which configuration has the lowest risk, and at how many coverages."""
    for score in dict.fromkeys(row["score"] for row in risks):
        own = [row for row in risks if row["score"] == score]
        if len(own) < 2:
            continue
        columns = [name for name in own[0] if name.startswith("risk@")]
        wins = {
            row["configuration"]: sum(
                row[name] <= min(other[name] for other in own) for name in columns
            )
            for row in own
        }
        best = max(wins, key=lambda name: wins[name])
        yield (
            f"{score}: {best} has the lowest risk at {wins[best]} of "
            f"{counted(len(columns), 'coverage')}, of {counted(len(own), 'configuration')}."
        )


def _of_auroc(auroc: Sequence[Row]) -> Iterator[str]:
    """Say where one configuration is ahead in all runs."""
    for score, study in dict.fromkeys((row["score"], row["study"]) for row in auroc):
        own = [row for row in auroc if (row["score"], row["study"]) == (score, study)]
        if len(own) < 2:
            continue
        first, second = sorted(own, key=lambda row: -row["mean"])[:2]
        gap = 100 * (first["mean"] - second["mean"])
        spread = 100 * max(row["spread"] or 0 for row in (first, second))
        side = "more" if gap > spread else "less"
        of_spread = f", {side} than the spread over runs ({spread:.2g})" if spread else ""
        yield (
            f"{score}, {study}: {first['configuration']} has the highest failure AUROC "
            f"({100 * first['mean']:.2f}), {gap:.2f} points above {second['configuration']}"
            f"{of_spread}."
        )


#: The study in the catalogue.
CONFIGURATIONS: Final = StudyEntry(
    name="configurations",
    title="Ways to train, run by run",
    question="Is a way to train on a par with another, and do all runs say so?",
    source="Jaeger et al. (2023), fig. 10 and 11, tables 14 to 16, https://arxiv.org/abs/2211.15259",
    run=study_configurations,
    captions={
        "risks": "Selective risk on i.i.d. data as fractions, means over the runs.",
        "auroc": (
            "Failure AUROC as fractions: mean and standard deviation over the runs, and the run "
            "with the best accuracy."
        ),
        "runs": "A dot is one run. Thin: mean; thick: median.",
        "results": "Every number; of the published tables the printed ones.",
    },
    glossary={
        "Configuration": "An arm with a setting, of a folder; of the paper a row or column.",
        "Spread": "Standard deviation over the runs.",
    },
)
