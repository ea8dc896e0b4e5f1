"""Measure the effect of wrong labels on AURC, AUGRC and failure AUROC."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator, as_seed
from abstain._foundation.scored import Scored
from abstain.curves import risk_coverage_curve, thin
from abstain.errors import InputError
from abstain.inference.ranking import ranks
from abstain.metrics.areas.augrc import AUGRC
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.contributions import compute_contributions
from abstain.metrics.failure_ranking import FAILURE_AUROC
from abstain.plots.series import Series, SeriesDisplay
from abstain.predictions import Predictions, per_sample_loss
from abstain.simulate import logits
from abstain.typing import BoolArray, FloatArray, IntArray, Rng
from abstain_bench.studies._display import (
    Row,
    column_series,
    counted,
    group_rows,
    signed,
    unique_values,
)
from abstain_bench.studies._inputs import named_datasets
from abstain_bench.studies._sources import compute_confidence, default_scores
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

#: Areas, for which the contribution of label errors is computed.
_AREAS: Final = (AURC, AUGRC)
#: Metrics that the study compares.
_METRICS: Final = (*_AREAS, FAILURE_AUROC)

#: Coverages at which accepted failures are counted.
_COVERAGES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

#: Default name of the column with the corrected labels.
_CORRECTED: Final = "corrected_labels"

_MIN_SAMPLES: Final = 100


@timed
def study_label_noise(
    file: str | Path | None = None,
    *,
    label: str | None = None,
    corrected: str = _CORRECTED,
    scores: Sequence[str] | None = None,
    noise: float = 0.01,
    n: int = 10_000,
    rng: Rng = 0,
) -> StudyResult:
    """Compare metrics for the original labels with metrics for the corrected labels.

    The study answers the questions: how many silent failures are label errors, and which metric
    changes most when label errors are corrected?

    Parameters
    ----------
    file : str or Path, optional
        File of predictions with two columns (or arrays) of labels. By default, class scores are
        simulated, and a fraction of the labels is replaced at random.
    label : str, optional
        Column with the original labels. By default, the column is found by its name.
    corrected : str, default="corrected_labels"
        Column with the corrected labels.
    scores : sequence of str, optional
        Scores of the file. By default, the study uses the scores of the study ``estimators``. If
        none applies, the default is the scores stored in the file.
    noise : float, default=0.01
        Share of wrong labels in the simulation, from 0 to 1.
    n : int, default=10000
        Number of simulated samples, at least 100.
    rng : int, Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (metrics and ranks of each score by both kinds of labels, and contributions
        of label errors to the areas) and "silent" (numbers of failures and of label errors by
        coverage); figures "silent" and "curves".

    Raises
    ------
    InputError
        If both label columns are identical, or if `noise` or `n` is out of range.
    UnknownNameError
        If a column or a score does not exist.

    Notes
    -----
    A label error is a prediction that is wrong by the original label and correct by the corrected
    label. A hidden failure is a prediction that is correct by the original label and wrong by the
    corrected label. If only labels that differ from predictions were reviewed, few hidden failures
    are found.

    References
    ----------
    .. [1] Traub et al. (2024), section 4.2, https://arxiv.org/abs/2407.01032
    .. [2] Northcutt et al. (2021), Pervasive label errors in test sets,
       https://arxiv.org/abs/2103.14749

    .. rubric:: Captions

    results
        Label error share: contribution of label errors to the area by the original labels. Ranks
        are among the scores; ties have the lowest rank.
    silent
        Label errors: failures by the original labels that are successes by the corrected ones.
        Hidden: failures by the corrected labels only.
    curves
        The most confident samples are at the left, where few failures cause a high selective risk.

    .. rubric:: Glossary

    Silent failure
        An accepted failure: a failure with high confidence.

    Examples
    --------
    >>> result = study_label_noise(n=2000)
    >>> last = result.rows("silent")[-1]
    >>> last["samples"], last["failures"] > last["label_errors"] > 0
    (2000, True)
    """
    parameters: dict[str, Any]
    if file is None:
        noise_share = checks.fraction(noise, "noise", high=1.0)
        n_samples = checks.positive_int(n, "n")
        if n_samples < _MIN_SAMPLES:
            raise InputError(
                f"`n` must be at least {_MIN_SAMPLES}, so that there are failures; got {n_samples}"
            )
        datasets = {"simulated": _simulate(n_samples, noise_share, rng)}
        parameters = {"noise": noise_share, "n": n_samples, "seed": as_seed(rng)}
    else:
        datasets = _read(file, label, corrected)
        parameters = {"file": str(file), "corrected": corrected}
    cases: list[LabeledScore] = []
    results: list[Row] = []
    for name, (original, corrected_data) in datasets.items():
        cases_of_data = list(_score_cases(name, original, corrected_data, scores))
        cases += cases_of_data
        results += _metric_rows(cases_of_data)
    silent = [row for case in cases for row in case.count_silent_failures()]
    return LABEL_NOISE.result(
        parameters=parameters,
        tables={"results": results, "silent": silent},
        figures=_figures(cases, silent),
        verdict=tuple(_conclusions(cases, results)),
        main_tables=("results", "silent"),
    )


# --------------------------------------------------------------------------------- labels
#: Predictions with the original labels and predictions with the corrected labels.
_PredictionPair = tuple[Predictions, Predictions]


def _read(file: str | Path, label: str | None, corrected: str) -> dict[str, _PredictionPair]:
    """Read the predictions of a file with the original and with the corrected labels."""
    from abstain.tables import read_predictions

    original = named_datasets(read_predictions(file, label=label))
    corrected_datasets = named_datasets(read_predictions(file, label=corrected))
    for name, dataset in original.items():
        if np.array_equal(dataset.labels, corrected_datasets[name].labels):
            raise InputError(
                f"`label` and `corrected` must differ in some rows; the original labels of "
                f"{name!r} equal the column {corrected!r}"
            )
    names = [Path(file).stem] if len(original) == 1 else list(original)
    return {
        name: (original[key], corrected_datasets[key])
        for name, key in zip(names, original, strict=True)
    }


def _simulate(n: int, noise: float, rng: Rng) -> _PredictionPair:
    """Simulate class scores and labels, and replace each label with probability `noise`."""
    sample_rng, noise_rng = as_generator(rng).spawn(2)
    sample = logits().sample_logits(n, rng=sample_rng)
    n_classes = sample.logits.shape[1]
    labels = np.asarray(sample.labels)
    is_wrong = noise_rng.random(n) < noise
    wrong_labels = (labels + noise_rng.integers(1, n_classes, n)) % n_classes
    original_labels = np.where(is_wrong, wrong_labels, labels)
    original = Predictions(logits=sample.logits, labels=original_labels)
    corrected = Predictions(logits=sample.logits, labels=labels)
    return original, corrected


# ------------------------------------------------------------------------------ one score
@dataclass(frozen=True, eq=False)
class LabeledScore:
    """A confidence score of one data set, with its losses for both sets of labels.

    Attributes
    ----------
    data, score : str
        Names of the data set and of the score.
    original, corrected : Scored
        Samples with the losses by the original labels and by the corrected labels.
    is_changed : bool ndarray of shape (n,)
        Whether the corrected label of a sample differs from the original label.
    """

    data: str
    score: str
    original: Scored
    corrected: Scored
    is_changed: BoolArray

    @cached_property
    def is_label_error(self) -> BoolArray:
        """Mask of failures by the original label that are successes by the corrected label."""
        return np.asarray((self.original.loss > 0) & (self.corrected.loss == 0))

    @cached_property
    def is_hidden_failure(self) -> BoolArray:
        """Mask of successes by the original label that are failures by the corrected label."""
        return np.asarray((self.original.loss == 0) & (self.corrected.loss > 0))

    def label_error_share(self, area: str) -> float:
        """Return the fraction of an area that label errors contribute."""
        contributions = np.asarray(compute_contributions(self.original, area))
        return float(contributions[self.is_label_error].sum() / contributions.sum())

    @cached_property
    def order(self) -> IntArray:
        """Indices that sort the samples by descending confidence; ties keep their order."""
        return np.asarray(np.argsort(-self.original.confidence, kind="stable"))

    def count_silent_failures(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each coverage with the numbers of accepted failures and label errors."""
        for coverage in _COVERAGES:
            accepted = self.order[: max(round(coverage * self.original.n_rows), 1)]
            n_failures = int(np.count_nonzero(self.original.loss[accepted]))
            n_errors = int(np.count_nonzero(self.is_label_error[accepted]))
            yield {
                "data": self.data,
                "score": self.score,
                "coverage": coverage,
                "samples": len(accepted),
                "failures": n_failures,
                "label_errors": n_errors,
                "share": n_errors / n_failures if n_failures else None,
                "hidden": int(np.count_nonzero(self.is_hidden_failure[accepted])),
            }


def _score_cases(
    name: str, original: Predictions, corrected: Predictions, scores: Sequence[str] | None
) -> Iterator[LabeledScore]:
    """Yield a `LabeledScore` for each score of a data set."""
    original_loss = per_sample_loss(original, None).astype(np.float64)
    corrected_loss = per_sample_loss(corrected, None).astype(np.float64)
    is_changed = np.asarray(original.labels) != np.asarray(corrected.labels)
    for score in tuple(scores or ()) or default_scores(original):
        confidence = np.asarray(compute_confidence(score, original).values)
        yield LabeledScore(
            name,
            score,
            Scored(confidence, original_loss),
            Scored(confidence, corrected_loss),
            is_changed,
        )


def _metric_rows(cases: Sequence[LabeledScore]) -> Iterator[dict[str, Any]]:
    """Yield a row for each combination of metric, data set and score."""
    for metric in _METRICS:
        values = np.array([
            [float(metric.compute(scored).value) for scored in (case.original, case.corrected)]
            for case in cases
        ])  # fmt: skip
        metric_ranks = ranks(values, lower_is_better=metric.lower_is_better, ties="min")
        for i, case in enumerate(cases):
            original, corrected = values[i].tolist()
            label_error_share = None
            if metric in _AREAS:
                label_error_share = case.label_error_share(metric.name)
            yield {
                "data": case.data,
                "score": case.score,
                "metric": metric.title,
                "original": original,
                "corrected": corrected,
                "change": corrected / original - 1 if original else None,
                "label_error_share": label_error_share,
                "rank_original": int(metric_ranks[i, 0]),
                "rank_corrected": int(metric_ranks[i, 1]),
            }


# --------------------------------------------------------------------------------- figures
def _figures(cases: Sequence[LabeledScore], silent: Sequence[Row]) -> dict[str, SeriesDisplay]:
    """Plot label errors and risks against coverage, for the first score of each data set."""
    rows_by_case = group_rows(silent, "data", "score")
    shares = []
    curves = []
    for case in _first_cases(cases):
        rows = rows_by_case[case.data, case.score]
        shares.append(column_series(f"{case.score}, {case.data}", rows, "coverage", "share"))
        for kind in ("selective", "generalized"):
            panel = f"{case.data}, {case.score}: {kind} risk"
            original = Series("original labels", *_risk_curve(case.original, kind), panel=panel)
            corrected = Series("corrected labels", *_risk_curve(case.corrected, kind), panel=panel)
            curves += [original, corrected]
    coverage = "Coverage"
    return {
        "silent": SeriesDisplay(
            tuple(shares),
            "Share of label errors among the accepted failures",
            coverage,
            "Label errors / failures",
        ),
        "curves": SeriesDisplay(
            tuple(curves), "Risk by the original and by the corrected labels", coverage, "Risk"
        ),
    }


def _first_cases(cases: Sequence[LabeledScore]) -> list[LabeledScore]:
    """Return the first score of each data set."""
    first: dict[str, LabeledScore] = {}
    for case in cases:
        first.setdefault(case.data, case)
    return list(first.values())


def _risk_curve(scored: Scored, kind: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the coverages and the selective or generalized risks of a risk-coverage curve."""
    curve = thin(risk_coverage_curve(scored.confidence, scored.loss))
    coverage: FloatArray = np.asarray(curve.coverage)
    risk = np.asarray(curve.risk)
    if kind == "generalized":
        risk = risk * coverage
    return tuple(coverage.tolist()), tuple(risk.tolist())


# ------------------------------------------------------------------------------ conclusions
def _conclusions(cases: Sequence[LabeledScore], results: Sequence[Row]) -> Iterator[str]:
    """Yield conclusions about the first score of each data set and about the ranks."""
    rows_by_data = group_rows(results, "data")
    for case in _first_cases(cases):
        rows = rows_by_data[case.data]
        row_by_metric = {row["metric"]: row for row in rows if row["score"] == case.score}
        yield _conclude_label_errors(case)
        yield _conclude_changes(case, row_by_metric)
        yield _conclude_ranks(case.data, rows)


def _conclude_label_errors(case: LabeledScore) -> str:
    """Report how many labels changed, and how many label errors and hidden failures there are."""
    n_failures = int(np.count_nonzero(case.original.loss))
    n_errors = int(np.count_nonzero(case.is_label_error))
    n_hidden = int(np.count_nonzero(case.is_hidden_failure))
    at_10 = next(row for row in case.count_silent_failures() if row["coverage"] == 0.1)
    silent = "there are no failures"
    if at_10["failures"]:
        silent = f"{at_10['label_errors']} of {counted(at_10['failures'], 'failure')}"
    hidden = counted(n_hidden, "failure is", "failures are")
    return (
        f"{case.data}: {np.count_nonzero(case.is_changed)} of {case.original.n_rows} labels "
        f"differ. {n_errors} of {n_failures} failures ({100 * n_errors / n_failures:.1f}%) are "
        f"label errors; at 10% coverage by {case.score}: {silent}. {hidden} hidden by the "
        "original labels."
    )


def _conclude_changes(case: LabeledScore, row_by_metric: Mapping[str, Row]) -> str:
    """Report the relative change of AURC, AUGRC and error rate."""
    aurc, augrc = (row_by_metric[metric.title] for metric in _AREAS)
    larger = aurc if abs(aurc["change"]) > abs(augrc["change"]) else augrc
    error_rate_change = case.corrected.loss.mean() / case.original.loss.mean() - 1
    changes = "; ".join(
        f"{row['metric']} by {signed(100 * row['change'])}% (contribution of label errors: "
        f"{100 * row['label_error_share']:.1f}%)"
        for row in (aurc, augrc)
    )
    return (
        f"{case.data}, {case.score}: the correction changes {changes}, and the error rate by "
        f"{signed(100 * error_rate_change)}%. {larger['metric']} changes more."
    )


def _conclude_ranks(data: str, rows: Sequence[Row]) -> str:
    """Report for each metric how many scores change their rank."""
    n_scores = len(unique_values(rows, "score"))
    counts = []
    for metric, group in group_rows(rows, "metric").items():
        n_changed = sum(row["rank_original"] != row["rank_corrected"] for row in group)
        counts.append(f"{n_changed} by {metric}")
    return (
        f"{data}: number of the {counted(n_scores, 'score')} whose rank changes: "
        f"{', '.join(counts)}."
    )


#: The study in the catalogue.
LABEL_NOISE: Final = StudyEntry(
    name="label-noise",
    title="Silent failures that are label errors",
    question=(
        "How many of the most confident failures are label errors, and how much do the metrics and "
        "the ranking of the scores change when the labels are corrected?"
    ),
    source="Traub et al. (2024), section 4.2, https://arxiv.org/abs/2407.01032",
    run=study_label_noise,
    quick={"n": 2000},
)
