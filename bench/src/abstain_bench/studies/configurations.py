"""Compare training configurations by selective risk at fixed coverages and failure AUROC."""

from collections.abc import Iterator, Mapping, Sequence
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
from abstain_bench.studies._display import Row, counted, group_rows, unique_values
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

#: Coverages of table 14.
COVERAGES: Final = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)
#: Scores in the tables and figures.
SCORES: Final = (
    "msr",
    "mls",
    "mahalanobis",
    "mahalanobis_predicted",
    "confidnet",
    "dg_res",
    "devries",
)

_RISK = "risk"
_AUROC = "failure AUROC"
_ACCURACY = "accuracy"
#: Failure AUROC of a published run that was selected by its accuracy.
_BEST_RUN_AUROC = "failure AUROC of the best run"
_IID: Final = "iid"
_RISK_COLUMN: Final = "risk@"


@timed
def study_configurations(
    *,
    runs: Sequence[str | Path] = (),
    scores: Sequence[str] = SCORES,
    coverages: Sequence[float] = COVERAGES,
) -> StudyResult:
    """Compare training configurations by selective risk at fixed coverages and failure AUROC.

    The study answers the question: do two training configurations perform equally, and does this
    hold for all runs?

    Parameters
    ----------
    runs : sequence of str or Path, optional
        Folders of runs. A configuration is a combination of training objective and setting. The
        default is the comparison of the configurations in the published tables 14 to 16.
    scores : sequence of str, optional
        Confidence scores to evaluate. Runs without a score omit it. The default is the scores of
        the paper.
    coverages : sequence of float, default=(1, 0.95, 0.9, 0.85, 0.8, 0.75)
        Coverages of the selective risk on i.i.d. data.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each number), "risks" (table 14) and "auroc" (tables 15 and
        16: mean, standard deviation over runs, and the run with the best accuracy); figures "risks"
        and, for folders of runs, "runs" (figures 10 and 11).

    Raises
    ------
    InputError
        If none of the scores is available in a run.
    DomainError
        If a coverage is not in (0, 1].

    Notes
    -----
    As in the released code, the risk at a coverage is the lowest risk among all thresholds with at
    least this coverage. In studies of new classes, wrong predictions of known classes are excluded.
    Standard deviations over n runs use n - 1 degrees of freedom.

    References
    ----------
    .. [1] Jaeger et al. (2023), fig. 10 and 11, tables 14 to 16, https://arxiv.org/abs/2211.15259

    .. rubric:: Captions

    risks
        Selective risk on i.i.d. data as a fraction, mean over the runs.
    auroc
        Failure AUROC as a fraction: mean and standard deviation over the runs, and the run with the
        best accuracy.
    runs
        Dot: one run; thin line: mean; thick line: median.
    results
        Every number; for the published tables, the printed numbers.

    .. rubric:: Glossary

    Configuration
        Arm and setting of a folder of runs, or a row or column of the published tables.
    SD
        Standard deviation over the runs.

    Examples
    --------
    >>> result = study_configurations()
    >>> [round(row["risk@1"], 4) for row in result.rows("risks")]
    [0.0494, 0.0612]
    """
    coverage_values = tuple(checks.fraction(coverage, "coverages") for coverage in coverages)
    if runs:
        rows = list(_evaluate_folders(runs, scores, coverage_values))
    else:
        rows = list(_published_rows())
    if not rows:
        raise InputError(f"no run in these folders has one of the scores {', '.join(scores)}")
    risks = list(_mean_risks(rows))
    aurocs = list(_summarize_aurocs(rows))
    figures: dict[str, Any] = {"risks": _risk_display(risks)}
    if runs:
        figures["runs"] = _run_display(rows)
    return CONFIGURATIONS.result(
        parameters={
            "configurations": unique_values(rows, "configuration"),
            "scores": unique_values(rows, "score"),
        },
        tables={"results": rows, "risks": risks, "auroc": aurocs},
        figures=figures,
        verdict=(*_conclude_risks(risks), *_conclude_aurocs(aurocs)),
    )


def _row(
    measure: str, value: float, *, coverage: float | None = None, sd: float | None = None
) -> dict[str, Any]:
    """Return the table columns for one number and its kind."""
    return {"measure": measure, "coverage": coverage, "value": value, "sd": sd}


def _published_rows() -> Iterator[dict[str, Any]]:
    """Yield a row for each number in tables 14 to 16."""
    for number in (14, 15, 16):
        for cell in table(f"fd_shifts_table_{number}"):
            block = cell["block"] or _table_15_configuration(cell["printed"])
            configuration = block.removesuffix(", mean").removesuffix(", best")
            yield {
                "configuration": f"table {number}: {configuration}",
                "score": cell["method"],
                "study": cell["study"] if number < 16 else f"{cell['dataset']}, {cell['study']}",
                "run": "printed",
                **_published_number(cell),
            }


def _published_number(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number in a cell with its kind, coverage and standard deviation."""
    sd = float(cell["spread"]) / 100 if cell["spread"] else None
    percent = cell["metric"].partition("@")[2].removesuffix("cov")
    if percent:
        return _row(_RISK, cell["number"], coverage=float(percent) / 100, sd=sd)
    measure = _BEST_RUN_AUROC if cell["block"].endswith("best") else _AUROC
    return _row(measure, cell["number"], sd=sd)


def _table_15_configuration(printed: str) -> str:
    """Return the training configuration for a row of table 15."""
    if "ours" in printed:
        return "ours"
    version = "improved" if "improved" in printed else "baseline"
    return f"Vaze et al. (2022), {version}"


def _evaluate_folders(
    folders: Sequence[str | Path], scores: Sequence[str], coverages: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield the metrics of all tested runs in the folders."""
    from abstain_bench.runs.store import Store

    for folder in folders:
        store = Store.read(Path(folder))
        prefix = f"{store.folder.name}: " if len(folders) > 1 else ""
        for run in store.tested_runs:
            configuration = prefix + " ".join(filter(None, (run.arm, run.setting)))
            for row in _evaluate_run(store, run, scores, coverages):
                yield {"configuration": configuration, **row}


def _evaluate_run(
    store: Any, run: Any, scores: Sequence[str], coverages: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield the metrics of a run for each headline study and score."""
    from abstain_bench.runs.methods import METHODS
    from abstain_bench.runs.studies import concatenate_scores, studies_of, study_loss

    for study in studies_of(store.exposures):
        is_relevant = study.kind == _IID or study.errors == "removed"
        if not study.headline or study.parts or not is_relevant:
            continue
        outputs = concatenate_scores(study, [store.scores(run, key) for key in study.exposures])
        for score in scores:
            if score not in outputs.confidence:
                continue
            uses_mean = score in METHODS and METHODS[score].uses_mean_prediction
            losses = study_loss(study, outputs, uses_mean_prediction=uses_mean)
            rows = _evaluate_score(outputs.confidence[score], losses, study.kind, coverages)
            for row in rows:
                yield {"score": score, "study": study.name, "run": str(run.seed), **row}


def _evaluate_score(
    confidence: FloatArray, losses: Any, study_kind: str, coverages: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield the failure AUROC and, without shift, the accuracy and the selective risks."""
    yield _row(_AUROC, float(failure_auroc(confidence, losses.loss, weight=losses.weight)))
    if study_kind == _IID and coverages:
        yield _row(_ACCURACY, 1 - float(np.mean(losses.loss)))
        for coverage in coverages:
            risk = float(selective_risk(confidence, losses.loss, coverage=coverage))
            yield _row(_RISK, risk, coverage=coverage)


def _with_measure(rows: Sequence[Row], measure: str) -> list[Row]:
    return [row for row in rows if row["measure"] == measure]


def _mean_risks(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the mean selective risk over runs at each coverage, by configuration and score."""
    risk_rows = _with_measure(rows, _RISK)
    for (configuration, score), group in group_rows(risk_rows, "configuration", "score").items():
        means = {}
        for coverage, rows_at_coverage in group_rows(group, "coverage").items():
            risks = [row["value"] for row in rows_at_coverage]
            means[f"{_RISK_COLUMN}{coverage:g}"] = float(np.mean(risks))
        yield {"configuration": configuration, "score": score, **means}


def _summarize_aurocs(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the mean and SD of the failure AUROC, and its value for the most accurate run."""
    keys = ("configuration", "score", "study")
    published_best = group_rows(_with_measure(rows, _BEST_RUN_AUROC), *keys)
    for key, group in group_rows(_with_measure(rows, _AUROC), *keys).items():
        values = [row["value"] for row in group if np.isfinite(row["value"])]
        if not values:
            continue
        sd = group[0]["sd"]
        if sd is None and len(values) > 1:
            sd = float(np.std(values, ddof=1))
        best_run = _most_accurate_run(rows, *key[:2])
        best_rows = [row for row in group if row["run"] == best_run] or published_best.get(key)
        yield {
            **dict(zip(keys, key, strict=True)),
            "mean": float(np.mean(values)),
            "sd": sd,
            "best_run": best_rows[0]["value"] if best_rows else None,
            "runs": len(values),
        }


def _most_accurate_run(rows: Sequence[Row], configuration: str, score: str) -> str | None:
    """Return the run with the highest accuracy, or None if no accuracy is available."""
    accuracies = {
        row["run"]: row["value"]
        for row in _with_measure(rows, _ACCURACY)
        if (row["configuration"], row["score"]) == (configuration, score)
    }
    return max(accuracies, key=lambda run: accuracies[run], default=None)


def _risk_display(risks: Sequence[Row]) -> SeriesDisplay:
    """Plot the mean selective risk of each configuration against coverage."""
    series = []
    for row in risks:
        risk_by_coverage = {
            float(column.removeprefix(_RISK_COLUMN)): risk
            for column, risk in row.items()
            if column.startswith(_RISK_COLUMN)
        }
        coverages = tuple(sorted(risk_by_coverage))
        mean_risks = tuple(risk_by_coverage[coverage] for coverage in coverages)
        series.append(Series(row["configuration"], coverages, mean_risks, panel=row["score"]))
    return SeriesDisplay(
        tuple(series),
        "Selective risk at fixed coverages",
        "Coverage",
        "Selective risk",
        log_x=False,
    )


def _run_display(rows: Sequence[Row]) -> SpreadDisplay:
    """Plot the failure AUROC of each individual run."""
    finite = [row for row in _with_measure(rows, _AUROC) if np.isfinite(row["value"])]
    groups = group_rows(finite, "study", "score", "configuration")
    spreads = []
    for (study, score, configuration), group in groups.items():
        aurocs = tuple(row["value"] for row in group)
        spreads.append(SpreadValues(study, score, configuration, aurocs))
    return SpreadDisplay(tuple(spreads), "Failure AUROC of every run")


def _conclude_risks(risks: Sequence[Row]) -> Iterator[str]:
    """Report which configuration has the lowest risk at the most coverages."""
    for score, group in group_rows(risks, "score").items():
        if len(group) < 2:
            continue
        columns = [name for name in group[0] if name.startswith(_RISK_COLUMN)]
        lowest = {column: min(row[column] for row in group) for column in columns}
        n_lowest = {
            row["configuration"]: sum(row[column] <= lowest[column] for column in columns)
            for row in group
        }
        best = max(n_lowest, key=lambda name: n_lowest[name])
        yield (
            f"{score}: {best} has the lowest risk of {counted(len(group), 'configuration')} at "
            f"{n_lowest[best]} of {counted(len(columns), 'coverage')}."
        )


def _conclude_aurocs(aurocs: Sequence[Row]) -> Iterator[str]:
    """For each score and study, compare the two highest mean failure AUROCs relative to the SD."""
    for (score, study), group in group_rows(aurocs, "score", "study").items():
        if len(group) < 2:
            continue
        first, second = sorted(group, key=lambda row: -row["mean"])[:2]
        difference = 100 * (first["mean"] - second["mean"])
        sd = 100 * max(first["sd"] or 0, second["sd"] or 0)
        relation = "more" if difference > sd else "less"
        comparison = f", {relation} than the standard deviation over runs ({sd:.2g})" if sd else ""
        yield (
            f"{score}, {study}: {first['configuration']} has the highest failure AUROC "
            f"({100 * first['mean']:.2f}), {difference:.2f} points above "
            f"{second['configuration']}{comparison}."
        )


#: The study in the catalogue.
CONFIGURATIONS: Final = StudyEntry(
    name="configurations",
    title="Comparison of training configurations",
    question="Do two training configurations perform equally, and does this hold for all runs?",
    source="Jaeger et al. (2023), fig. 10 and 11, tables 14 to 16, https://arxiv.org/abs/2211.15259",
    run=study_configurations,
)
