"""Measure how the floating-point precision affects the maximum softmax response."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_seed, named_generator
from abstain.confidence import max_softmax_response
from abstain.errors import InputError, MissingInputError
from abstain.metrics import aurc, failure_auroc
from abstain.plots.series import Series, SeriesDisplay
from abstain.predictions import Predictions
from abstain.simulate import logits
from abstain.typing import Array, FloatArray, Rng
from abstain_bench.published import table
from abstain_bench.studies._display import Row, group_rows, value_range
from abstain_bench.studies._inputs import DataArgument, named_datasets
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

#: Floating-point types by the names in the paper.
PRECISIONS: Final = {"16bit": np.float16, "32bit": np.float32, "64bit": np.float64}
#: Name of the reference score, which has the same ranking and is not rounded to 1.
LOG_ODDS: Final = "log-odds"

#: Number of classes of the simulated classifier.
_N_CLASSES = 10
#: Class separation of the simulated classifier, for an accuracy of about 93%.
_SEPARATION = 4.5
_MAX_FLOAT16: Final = float(np.finfo(np.float16).max)

#: A pair of logits and labels.
_LabeledLogits = tuple[Array, Array]


@timed
def study_precision(
    data: DataArgument = None,
    *,
    temperatures: Sequence[float] = (1.0, 0.5, 0.25),
    n: int = 20_000,
    rng: Rng = 0,
) -> StudyResult:
    """Measure how the floating-point precision affects the maximum softmax response.

    The study answers the questions: how many confidences are rounded to 1, and how much worse is
    the ranking? The table "published" contains the corresponding numbers of the paper.

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Predictions with logits. The default is simulated logits of ten classes.
    temperatures : sequence of float, default=(1, 0.5, 0.25)
        Divisors of the simulated logits. Lower temperatures lead to higher confidences.
    n : int, default=20000
        Number of simulated samples.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set and precision, and one row for the log-odds) and
        "published" (table 2 of the paper with the same columns); figure "loss".

    Raises
    ------
    MissingInputError
        If the data have no logits.
    InputError
        If a logit is too large for 16 bits, or if `n` or a temperature is out of range.

    Notes
    -----
    As in the released code, logits are rounded before the softmax is computed in the same
    precision. The predicted class is the class with the largest rounded probability. Logits that
    are stored in 16 bits were rounded before this study.

    References
    ----------
    .. [1] Jaeger et al. (2023), table 2, https://arxiv.org/abs/2211.15259

    .. rubric:: Captions

    results
        Shares, AURC and failure AUROC are fractions. Tied: share of confidences that equal another
        one.
    published
        Table 2 of the paper as fractions. The accuracy is printed for one precision only.
    loss
        One line for each data set. The share of ties at 1 increases from left to right.

    .. rubric:: Glossary

    Rounded to 1
        The largest probability is exactly 1 in this precision.
    Log-odds
        ln p - ln(1 - p) of the largest probability, computed from the logits.
    AUROC_f
        Failure AUROC: the probability that a correct prediction has a higher confidence than a
        wrong one.

    Examples
    --------
    >>> result = study_precision(n=2000, temperatures=[0.25])
    >>> result.frame().select("precision", "rounded_to_1").head(2).rows()
    [('16bit', 0.8245), ('32bit', 0.6265)]
    """
    seed = as_seed(rng)
    n_samples = checks.positive_int(n, "n")
    if data is None:
        cases = dict(_simulate(temperatures, n_samples, seed))
    else:
        cases = {
            name: _check_logits(name, dataset) for name, dataset in named_datasets(data).items()
        }
    rows = [row for name, (z, labels) in cases.items() for row in _rows(name, z, labels)]
    published = _published_rows()
    return PRECISION.result(
        parameters={"data": tuple(cases), "n": max(len(z) for z, _ in cases.values())},
        tables={"results": rows, "published": published},
        figures={"loss": _figure([*rows, *published])},
        notes=tuple(_notes(cases)),
        verdict=(*_conclusions(rows), _conclude_published(published)),
        main_tables=("results",),
    )


def _check_logits(name: str, dataset: Predictions) -> _LabeledLogits:
    """Return the logits and labels of a data set, or raise an error if 16 bits are too few."""
    if not dataset.has_logits or not dataset.has_labels:
        raise MissingInputError(
            f"the precision of a softmax needs logits and labels; {name!r} lacks them"
        )
    z = np.asarray(dataset.logits)
    largest = float(np.abs(z).max())
    if largest > _MAX_FLOAT16:
        raise InputError(
            f"logits must be within ±{_MAX_FLOAT16:g}, the largest number of 16 bits; the largest "
            f"of {name!r} is {largest:.3g}"
        )
    return z, np.asarray(dataset.label_codes)


def _simulate(
    temperatures: Sequence[float], n: int, seed: int
) -> Iterator[tuple[str, _LabeledLogits]]:
    """Yield the name and the logits of one simulated data set per temperature."""
    for temperature in temperatures:
        # All temperatures use the same random numbers.
        population = logits(_N_CLASSES, separation=_SEPARATION, temperature=temperature)
        z, labels = population.sample_logits(n, rng=named_generator(seed, "logits"))
        yield f"T = {temperature:g}", (z, labels)


def softmax_in(z: Array, precision: Any) -> Array:
    """Compute the softmax of rounded logits in the given floating-point precision."""
    rounded = z.astype(precision)
    exponentials = np.exp(rounded - rounded.max(axis=1, keepdims=True))
    probabilities: Array = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities


def _rows(name: str, z: Array, labels: Array) -> Iterator[dict[str, Any]]:
    """Yield a row for each precision, and a row in which log-odds are the confidence."""
    for precision, dtype in PRECISIONS.items():
        probabilities = softmax_in(z, dtype)
        confidence = probabilities.max(axis=1)
        is_failure = np.argmax(probabilities, axis=1) != labels
        yield {
            "data": name,
            "precision": precision,
            "rounded_to_1": float((confidence == 1).mean()),
            **_metrics(confidence.astype(np.float64), is_failure),
        }
    log_odds = np.asarray(max_softmax_response(z.astype(np.float64)))
    is_failure = np.argmax(z, axis=1) != labels
    yield {
        "data": name,
        "precision": LOG_ODDS,
        "rounded_to_1": 0.0,
        **_metrics(log_odds, is_failure),
    }


def _metrics(confidence: FloatArray, is_failure: Array) -> dict[str, float]:
    return {
        "AURC": float(aurc(confidence, is_failure)),
        "AUROC_f": float(failure_auroc(confidence, is_failure)),
        "accuracy": float(1 - is_failure.mean()),
        "tied": 1 - np.unique(confidence).size / confidence.size,
    }


def _published_rows() -> list[dict[str, Any]]:
    """Return table 2 of the paper with the same columns as the table "results"."""
    number_by_column: dict[tuple[str, str], dict[str, float]] = {}
    for cell in table("fd_shifts_table_2"):
        name = f"{cell['classifier']}, {cell['dataset']}"
        # A cell without a precision contains the accuracy, which the paper prints only once.
        precisions = [cell["block"]] if cell["block"] in PRECISIONS else list(PRECISIONS)
        for precision in precisions:
            numbers = number_by_column.setdefault((name, precision), {})
            numbers[_column(cell["metric"])] = cell["number"]
    columns = ("rounded_to_1", "AURC", "AUROC_f", "accuracy")
    return [
        {
            "data": name,
            "precision": precision,
            **{column: numbers.get(column) for column in columns},
        }
        for (name, precision), numbers in number_by_column.items()
    ]


def _column(metric: str) -> str:
    """Return the column of the table "results" that corresponds to a published metric."""
    if metric.startswith("round"):
        return "rounded_to_1"
    columns = {aurc.__name__: "AURC", failure_auroc.__name__: "AUROC_f"}
    return columns.get(metric, "accuracy")


def _rows_by_precision(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Return the rows of each data set by precision."""
    return {
        name: {row["precision"]: row for row in group}
        for name, group in group_rows(rows, "data").items()
    }


def _aurc_ratio(row_by_precision: Mapping[str, Row], precision: str) -> float:
    """Divide the AURC in a given precision by the AURC in 64 bits."""
    reference = row_by_precision["64bit"]["AURC"]
    if not reference:
        return float("nan")
    return float(row_by_precision[precision]["AURC"] / reference)


def _figure(rows: Sequence[Row]) -> SeriesDisplay:
    """Plot the relative AURC against the fraction of confidences that are rounded to 1."""
    series = []
    for name, row_by_precision in _rows_by_precision(rows).items():
        classifier, _, dataset = name.partition(", ")
        is_published = bool(dataset) and classifier in {"CNN", "ViT"}
        panel = f"{classifier} (table 2)" if is_published else "this study"
        precisions = list(reversed(PRECISIONS))
        shares = [100 * row_by_precision[name]["rounded_to_1"] for name in precisions]
        ratios = [_aurc_ratio(row_by_precision, name) for name in precisions]
        title = dataset if is_published else name
        series.append(Series(title, tuple(shares), tuple(ratios), panel=panel))
    return SeriesDisplay(
        tuple(series),
        "Confidences rounded to 1, and AURC: 64, 32 and 16 bits from left to right",
        "Confidences rounded to 1, %",
        "AURC divided by the AURC in 64 bits",
        log_x=False,
        share_y=True,
        level=dict.fromkeys((line.panel for line in series), 1.0),
        level_name="no change",
    )


def _notes(cases: Mapping[str, _LabeledLogits]) -> Iterator[str]:
    half = [name for name, (z, _) in cases.items() if z.dtype == np.float16]
    if half:
        yield (
            f"The logits of {', '.join(half)} are stored in 16 bits, so all rows include the "
            "rounding of the stored logits."
        )


def _conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Report the effect of each precision, and whether 64 bits are sufficient."""
    datasets = _rows_by_precision(rows).values()
    for precision in ("32bit", "16bit"):
        shares = [100 * dataset[precision]["rounded_to_1"] for dataset in datasets]
        ratios = [_aurc_ratio(dataset, precision) for dataset in datasets]
        # The addition of 0.0 converts negative zero to zero.
        drops = [
            round(100 * (dataset["64bit"]["AUROC_f"] - dataset[precision]["AUROC_f"]), 2) + 0.0
            for dataset in datasets
        ]
        yield (
            f"In {precision.removesuffix('bit')} bits, {value_range(shares, '{:.3g}')}% of the "
            f"confidences are rounded to 1. The AURC is {value_range(ratios, '{:.3g}')} times the "
            f"AURC in 64 bits, and the failure AUROC decreases by {value_range(drops, '{:.2f}')} "
            "percentage points."
        )
    ratios = [
        dataset["64bit"]["AURC"] / dataset[LOG_ODDS]["AURC"]
        for dataset in datasets
        if dataset[LOG_ODDS]["AURC"]
    ]
    if any(ratio > 1.0005 for ratio in ratios):
        yield (
            f"64 bits are not always sufficient: the AURC is {value_range(ratios, '{:.4g}')} times "
            "the AURC of the log-odds, which rank the same probabilities without rounding."
        )
    else:
        yield "64 bits are sufficient: the log-odds, which are not rounded, have the same AURC."


def _conclude_published(rows: Sequence[Row]) -> str:
    """Report the relative AURC in 32 bits according to the published table."""
    datasets = _rows_by_precision(rows)
    ranges = []
    for classifier in ("CNN", "ViT"):
        ratios = [
            _aurc_ratio(row_by_precision, "32bit")
            for name, row_by_precision in datasets.items()
            if name.startswith(classifier)
        ]
        ranges.append(f"{value_range(ratios, '{:.3g}')} for the {classifier}")
    return (
        "In table 2 of the paper, the AURC in 32 bits divided by the AURC in 64 bits is "
        f"{' and '.join(ranges)}."
    )


#: The study in the catalogue.
PRECISION: Final = StudyEntry(
    name="precision",
    title="Floating-point precision of the softmax",
    question=(
        "How many softmax responses are rounded to 1 in a precision of 16, 32 or 64 bits, and how "
        "much does the ranking deteriorate?"
    ),
    source="Jaeger et al. (2023), table 2, https://arxiv.org/abs/2211.15259",
    run=study_precision,
    quick={"n": 5000},
)
