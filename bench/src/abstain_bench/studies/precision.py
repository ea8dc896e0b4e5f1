"""What a softmax in 16, 32 or 64 bits costs the softmax response: ties at 1, and its ranking."""

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
from abstain_bench.studies._data import Data, named_data
from abstain_bench.studies._sentences import value_range
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed

#: By what the papers call them.
PRECISIONS: Final = {"16bit": np.float16, "32bit": np.float32, "64bit": np.float64}
#: The same ranking without a softmax: nothing is rounded to 1.
ODDS: Final = "log-odds"

#: Of the simulated classifier, which is right in about 93 of 100 samples.
_CLASSES, _SEPARATION = 10, 4.5
_LARGEST_HALF: Final = float(np.finfo(np.float16).max)


@timed
def study_precision(
    data: Data = None,
    *,
    temperatures: Sequence[float] = (1.0, 0.5, 0.25),
    n: int = 20_000,
    rng: Rng = 0,
) -> StudyResult:
    """Compute the softmax response in 16, 32 and 64 bits, and what is lost.

    Answers: how many confidences are rounded to 1, and how much worse do they rank for it? The
    table "published" has the numbers of the paper.

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        With logits; without any, simulated ones are studied.
    temperatures : sequence of float, default=(1, 0.5, 0.25)
        What the simulated logits are divided by: the lower, the surer the classifier.
    n : int, default=20000
        Simulated samples, of ten classes.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set and precision, and one for the log-odds, which
        are not rounded) and "published" (table 2 of the paper, in the same columns); figure "loss".

    Raises
    ------
    MissingInputError
        If data have no logits.
    InputError
        If logits are beyond the range of 16 bits, or an option is out of its range.

    Notes
    -----
    As the released code does, logits are rounded to the precision and the softmax is computed in
    it; classes are predicted by that softmax. Logits that a file holds in 16 bits lost their last
    digits before, which no precision brings back. Cost: a softmax and a sort for each precision.

    References
    ----------
    .. [1] Jaeger et al. (2023), table 2, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> found = study_precision(n=2000, temperatures=[0.25])
    >>> found.frame().select("precision", "rounded_to_1").head(2).rows()
    [('16bit', 0.8245), ('32bit', 0.6265)]
    """
    seed, count = as_seed(rng), checks.positive_int(n, "n")
    cases = dict(_given(data)) if data is not None else dict(_simulated(temperatures, count, seed))
    rows = [row for name, (z, labels) in cases.items() for row in _rows(name, z, labels)]
    printed = _published()
    return PRECISION.result(
        parameters={"data": tuple(cases), "n": max(len(z) for z, _ in cases.values())},
        tables={"results": rows, "published": printed},
        figures={"loss": _figure([*rows, *printed])},
        notes=tuple(_notes(cases)),
        verdict=(*_verdict(rows), *_of_paper(printed)),
        shown=("results",),
    )


def _given(data: Data) -> Iterator[tuple[str, tuple[Array, Array]]]:
    """Yield the logits and labels of data sets by their names."""
    for name, part in named_data(data).items():
        if not part.has_logits or not part.has_labels:
            raise MissingInputError(
                f"the precision of a softmax needs logits and labels; {name!r} lacks them"
            )
        yield name, _known(name, part)


def _known(name: str, part: Predictions) -> tuple[Array, Array]:
    z = np.asarray(part.logits)
    largest = float(np.abs(z).max())
    if largest > _LARGEST_HALF:
        raise InputError(
            f"logits must be within {_LARGEST_HALF:g}, the largest number of 16 bits; those of "
            f"{name!r} go up to {largest:.3g}"
        )
    return z, np.asarray(part.label_codes)


def _simulated(
    temperatures: Sequence[float], n: int, seed: int
) -> Iterator[tuple[str, tuple[Array, Array]]]:
    for t in temperatures:
        # The same samples at every temperature, as one network made surer.
        population = logits(_CLASSES, separation=_SEPARATION, temperature=t)
        z, labels = population.sample_logits(n, rng=named_generator(seed, "logits"))
        yield f"T = {t:g}", (z, labels)


def softmax_in(z: Array, precision: Any) -> Array:
    """Return the softmax of rounded logits, every step of it in one precision."""
    x = z.astype(precision)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    out: Array = e / e.sum(axis=1, keepdims=True)
    return out


def _rows(name: str, z: Array, labels: Array) -> Iterator[dict[str, Any]]:
    for said, precision in PRECISIONS.items():
        p = softmax_in(z, precision)
        top = p.max(axis=1)
        found = _numbers(top.astype(np.float64), np.argmax(p, axis=1) != labels)
        yield {"data": name, "precision": said, "rounded_to_1": float((top == 1).mean()), **found}
    odds = np.asarray(max_softmax_response(z.astype(np.float64)))
    found = _numbers(odds, np.argmax(z, axis=1) != labels)
    yield {"data": name, "precision": ODDS, "rounded_to_1": 0.0, **found}


def _numbers(confidence: FloatArray, wrong: Array) -> dict[str, float]:
    return {
        "AURC": float(aurc(confidence, wrong)),
        "AUROC_f": float(failure_auroc(confidence, wrong)),
        "right": float(1 - wrong.mean()),
        "tied": 1 - np.unique(confidence).size / confidence.size,
    }


def _published() -> list[dict[str, Any]]:
    """Return table 2 of the paper in the columns of the results."""
    columns = ("rounded_to_1", "AURC", "AUROC_f", "right")
    found: dict[tuple[str, str], dict[str, float]] = {}
    for cell in table("fd_shifts_table_2"):
        name = f"{cell['classifier']}, {cell['dataset']}"
        # Accuracy is printed once for all precisions.
        for block in [cell["block"]] if cell["block"] in PRECISIONS else list(PRECISIONS):
            own = found.setdefault((name, block), {})
            own[_column(cell["metric"])] = cell["number"]
    return [
        {"data": name, "precision": block, **{c: own.get(c) for c in columns}}
        for (name, block), own in found.items()
    ]


def _column(metric: str) -> str:
    """Return the column of a metric of the table."""
    known = {aurc.__name__: "AURC", failure_auroc.__name__: "AUROC_f"}
    return known.get(metric, "rounded_to_1" if metric.startswith("round") else "right")


def _by_precision(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    out: dict[str, dict[str, Row]] = {}
    for row in rows:
        out.setdefault(row["data"], {})[row["precision"]] = row
    return out


def _cost(own: Mapping[str, Row], precision: str) -> float:
    """Return by which factor the AURC is larger than in 64 bits."""
    least = own["64bit"]["AURC"]
    return float(own[precision]["AURC"] / least) if least else float("nan")


def _figure(rows: Sequence[Row]) -> SeriesDisplay:
    series = []
    for name, own in _by_precision(rows).items():
        panel, _, short = name.partition(", ")
        x = tuple(100 * own[precision]["rounded_to_1"] for precision in reversed(PRECISIONS))
        y = tuple(_cost(own, precision) for precision in reversed(PRECISIONS))
        known = panel if short else ""
        shown = f"{known} (table 2)" if known in {"CNN", "ViT"} else "studied here"
        series.append(Series(short if known in {"CNN", "ViT"} else name, x, y, panel=shown))
    return SeriesDisplay(
        tuple(series),
        "What is rounded to 1, and what it costs: 64, 32 and 16 bits from left to right",
        "Confidences rounded to 1, %",
        "AURC over that in 64 bits",
        log_x=False,
        share_y=True,
        level=dict.fromkeys({one.panel for one in series}, 1.0),
        level_name="no loss",
    )


def _notes(cases: Mapping[str, tuple[Array, Array]]) -> Iterator[str]:
    half = [name for name, (z, _) in cases.items() if z.dtype == np.float16]
    if half:
        yield (
            f"The logits of {', '.join(half)} are stored in 16 bits: what was lost in storing is "
            "lost in all rows."
        )


def _verdict(rows: Sequence[Row]) -> Iterator[str]:
    found = _by_precision(rows)
    for precision in ("32bit", "16bit"):
        shares = [100 * own[precision]["rounded_to_1"] for own in found.values()]
        costs = [_cost(own, precision) for own in found.values()]
        drops = [
            # To the digits that are said, without the sign of a zero.
            round(100 * (own["64bit"]["AUROC_f"] - own[precision]["AUROC_f"]), 2) + 0.0
            for own in found.values()
        ]
        yield (
            f"In {precision.removesuffix('bit')} bits {value_range(shares, '{:.3g}')} % of the "
            f"confidences are rounded to 1; the AURC is {value_range(costs, '{:.3g}')} times that "
            f"in 64 bits, and the failure AUROC falls by {value_range(drops, '{:.2f}')} points."
        )
    left = [own["64bit"]["AURC"] / own[ODDS]["AURC"] for own in found.values() if own[ODDS]["AURC"]]
    if any(ratio > 1.0005 for ratio in left):
        yield (
            f"64 bits are not always enough: their AURC is {value_range(left, '{:.4g}')} times "
            "that of the log-odds, which order the same probabilities and are not rounded."
        )
    else:
        yield "64 bits lose nothing that counts here: the log-odds, which are not rounded, agree."


def _of_paper(rows: Sequence[Row]) -> Iterator[str]:
    found = _by_precision(rows)
    parts = []
    for kind in ("CNN", "ViT"):
        own = [entry for name, entry in found.items() if name.startswith(kind)]
        costs = [_cost(entry, "32bit") for entry in own]
        parts.append(f"{value_range(costs, '{:.3g}')} times for the {kind}")
    yield f"In table 2 of the paper, 32 bits raise the AURC {' and '.join(parts)}."


#: The study in the catalogue.
PRECISION: Final = StudyEntry(
    name="precision",
    title="The precision of the softmax",
    question=(
        "How many softmax responses does a precision of 16, 32 or 64 bits round to 1, and how much "
        "worse do they rank?"
    ),
    source="Jaeger et al. (2023), table 2, https://arxiv.org/abs/2211.15259",
    run=study_precision,
    captions={
        "results": "Shares, AURC and failure AUROC are fractions; tied: share that another equals.",
        "published": "Table 2 of the paper as fractions; accuracy is printed for one precision.",
        "loss": "A line of each data set; the farther right, the more ties at 1.",
    },
    glossary={
        "Rounded to 1": "The largest probability is exactly 1 in this precision.",
        "Log-odds": "ln p - ln(1 - p) of the largest probability, computed from the logits.",
        "AUROC_f": "Failure AUROC: the chance that a right answer is trusted more than a wrong.",
    },
    quick={"n": 5000},
)
