"""Compare two formulas of the population AURC on many data sets."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation.random import as_seed, named_generator
from abstain.metrics import aurc, metric_interval, population_aurc
from abstain.metrics.catalogue import POPULATION_AREA_METRIC
from abstain.plots.agreement import AgreementDisplay, Pair
from abstain.predictions import Predictions
from abstain.simulate import POPULATIONS, LogitPopulation
from abstain.typing import FloatArray, Rng
from abstain_bench.studies._area_estimators import GLOSSARY, PAPER_URL, loss_title
from abstain_bench.studies._display import (
    Row,
    average_over_models,
    counted,
    group_rows,
    unique_values,
)
from abstain_bench.studies._inputs import (
    LOGITS,
    DataArgument,
    PopulationsArgument,
    StudyRequest,
    check_sizes,
)
from abstain_bench.studies._sources import UNNAMED, ScoredCase
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

#: Maximum number of data sets for which each data set has its own color in the figures.
_MAX_COLORS: Final = 8


@timed
def study_population_forms(
    data: DataArgument = None,
    *,
    populations: PopulationsArgument = (),
    scores: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    sizes: Sequence[int] = (1000, 10_000),
    rng: Rng = 0,
) -> StudyResult:
    """Compare a reweighted formula of the population AURC with its definition.

    The study answers the question: does the mean of the rank-weighted losses equal the mean
    selective risk? A case is one combination of file, split (``--by``), score and loss.

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Predictions. Each data set is treated as a complete population.
    populations : sequence of str, Population or LogitPopulation, optional
        Populations from which one sample of each size is drawn. The default is all populations of
        ``abstain list populations`` if neither `data` nor `populations` is set.
    scores : sequence of str, optional
        Scores of the data (``abstain list scores``). The default is the six scores that the paper
        evaluates.
    losses : sequence of str, optional
        Losses of the data. The default is zero_one and, if the data have class scores, also
        cross_entropy.
    sizes : sequence of int, default=(1000, 10000)
        Sizes of the samples from populations, at least 2.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set, loss and score) and "differences" (paired
        differences by sample size); figures "agreement" (figure S7 of the paper) and "difference".

    Raises
    ------
    InputError
        If a name does not exist or a size is below 2.

    Notes
    -----
    AURC_a is the estimate with logarithmic weights, as in the code of the paper. AURC_p is the AURC
    according to its definition. AURC_p is the mean of the selective risk over the confidences of
    all samples. The column "reweighted" contains the limit of AURC_a for large samples.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 3 and 8, appendix A.5, fig. S7, https://arxiv.org/abs/2410.15361

    .. rubric:: Captions

    results
        One row for each data set, loss and score.
    differences
        AURC_a minus AURC_p of each case. Errors: standard errors of the AURC as an estimate.
    agreement
        On the dotted line, both forms give the same number.

    .. rubric:: Glossary

    AURC_a
        Mean of loss x -ln(1 - r/(n + 1)): the log form, as in the code of the paper.
    AURC_p
        Mean over the samples of the selective risk at the threshold of the sample.
    Reweighted
        Mean of loss x -ln(1 - u), averaged over the ranks u of a tie group.

    Examples
    --------
    >>> result = study_population_forms(populations=["uniform-scores"], sizes=[1000])
    >>> bool(abs(result.frame()["difference"][0]) < 1e-3)
    True
    """
    distinct_sizes = check_sizes(sizes, minimum=2)
    seed = as_seed(rng)
    request = StudyRequest(data, populations, scores, losses)
    cases = [case for data in request.scored_datasets for case in data.cases()]
    for name, population in request.select_populations((*POPULATIONS, LOGITS)):
        generator = named_generator(seed, name)
        for n in distinct_sizes:
            if isinstance(population, LogitPopulation):
                z, labels = population.sample_logits(n, rng=generator)
                predictions = Predictions(logits=z, labels=labels)
                cases += request.compute_scores(name, predictions).cases()
            else:
                loss = "zero_one" if population.binary else UNNAMED
                sample = population.sample(n, rng=generator)
                cases.append(ScoredCase(name, loss, UNNAMED, *sample))
    rows = [_row(case) for case in cases]
    averaged_columns = ("AURC_a", "AURC_p", "difference")
    averages = average_over_models(rows, set(request.datasets), ("loss", "score"), averaged_columns)
    return FORMS.result(
        parameters={
            "data": unique_values(rows, "data"),
            "cases": len(rows),
            "sizes": tuple(sorted({row["n"] for row in rows})),
        },
        tables={"results": rows, "differences": _differences(rows), **averages},
        figures=_figures(rows),
        notes=(*request.omission_notes, _note_on_pairing(rows)),
        verdict=tuple(_conclusions(rows)),
    )


def _row(case: ScoredCase) -> dict[str, Any]:
    """Return a table row with AURC_a, AURC_p and their difference."""
    confidence = case.confidence
    losses = case.losses
    n = losses.size
    definition = population_aurc(confidence, losses, form="definition")
    log_form = aurc(confidence, losses, estimator="log")
    difference = log_form - definition
    error = metric_interval(confidence, losses, metric=POPULATION_AREA_METRIC).standard_error
    return {
        "data": case.data,
        "loss": case.loss,
        "score": case.score,
        "n": n,
        "tied_share": 1 - np.unique(confidence).size / n,
        "AURC_a": log_form,
        "AURC_p": definition,
        "reweighted": population_aurc(confidence, losses),
        "difference": difference,
        "relative_difference": difference / definition if definition else float("nan"),
        "n_x_difference": n * difference,
        "standard_error": error,
        "difference_in_errors": difference / error if error else float("nan"),
    }


def _differences(rows: Sequence[Row]) -> list[Row]:
    """Summarize the paired differences by sample size, with and without ties."""
    with_ties = ({**row, "has_ties": row["tied_share"] > 0} for row in rows)
    summary: list[Row] = []
    for (n, has_ties), group in sorted(group_rows(with_ties, "n", "has_ties").items()):
        relative = _finite_column(group, "relative_difference")
        in_errors = _finite_column(group, "difference_in_errors")
        nan = float("nan")
        summary.append({
            "n": n,
            "ties": "with ties" if has_ties else "no ties",
            "cases": len(group),
            "mean_relative_difference": float(relative.mean()) if relative.size else nan,
            "sd": float(relative.std(ddof=1)) if relative.size > 1 else nan,
            "largest_relative_difference": float(max(abs(relative), default=nan)),
            "largest_n_x_difference": max(abs(row["n_x_difference"]) for row in group),
            "largest_in_errors": float(max(abs(in_errors), default=nan)),
        })  # fmt: skip
    return summary


def _finite_column(rows: Sequence[Row], column: str) -> FloatArray:
    numbers: FloatArray = np.array([row[column] for row in rows], dtype=np.float64)
    return np.asarray(numbers[np.isfinite(numbers)])


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Plot AURC_a, and its relative difference from AURC_p, against AURC_p."""
    positive = [row for row in rows if row["AURC_p"] > 0]
    if not positive:
        return {}
    n_data = len(unique_values(positive, "data"))
    pairs = []
    for row in positive:
        # Each score or data set has a color, unless there are too many.
        if n_data == 1:
            color_group = row["score"]
        elif n_data <= _MAX_COLORS:
            color_group = row["data"]
        else:
            color_group = f"n = {row['n']}" + (", ties" if row["tied_share"] > 0 else "")
        name = f"{row['data']}, {row['score']}, n = {row['n']}"
        panel = loss_title(row["loss"])
        pairs.append(Pair(name, color_group, row["AURC_p"], row["AURC_a"], panel))
    return {
        "agreement": AgreementDisplay(
            tuple(pairs),
            "The reweighted form of the AURC against its definition",
            "AURC_p, the definition",
            "AURC_a, reweighted",
        ),
        "difference": AgreementDisplay(
            tuple(pairs),
            "Difference of the two forms relative to the AURC",
            "AURC_p, the definition",
            "(AURC_a - AURC_p) / AURC_p",
            is_relative_difference=True,
        ),
    }


def _conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Report the difference of the two formulas for cases with and without ties."""
    with_loss = [row for row in rows if row["AURC_p"]]
    without_ties = [row for row in with_loss if row["tied_share"] == 0]
    with_ties = [row for row in with_loss if row["tied_share"] > 0]
    if without_ties:
        median = float(np.median(np.abs(_finite_column(without_ties, "relative_difference"))))
        yield (
            f"Without ties ({counted(len(without_ties), 'case')}), the median relative difference "
            f"between AURC_a and AURC_p is {median:.2g} and the largest is "
            f"{_largest_difference(without_ties)}. It is due to the weights of a finite sample "
            "and converges to 0 as n grows."
        )
    if with_ties:
        largest_row = max(with_ties, key=_absolute_difference)
        detail = f", with {largest_row['tied_share']:.1%} tied confidences"
        yield (
            f"With ties ({counted(len(with_ties), 'case')}), the relative difference is at most "
            f"{_largest_difference(with_ties, detail)}. The definition accepts all samples of a "
            "tie group together; the weights average over the group."
        )
    if not with_loss:
        yield "No case has any loss, so both forms are 0."
    in_errors = np.abs(_finite_column(rows, "difference_in_errors"))
    if in_errors.size:
        yield (
            f"The largest difference is {in_errors.max():.2g} standard errors of the AURC, the "
            f"median {np.median(in_errors):.2g}."
        )


def _absolute_difference(row: Row) -> float:
    return abs(float(row["relative_difference"]))


def _largest_difference(rows: Sequence[Row], detail: str = "") -> str:
    """Format the largest relative difference, followed by its case in parentheses."""
    row = max(rows, key=_absolute_difference)
    case = row["data"] if row["score"] == UNNAMED else f"{row['data']}, {row['score']}"
    return f"{_absolute_difference(row):.2g} ({case}, n = {row['n']}{detail})"


def _note_on_pairing(rows: Sequence[Row]) -> str:
    """Explain why the unpaired test in the paper is not used, with its p-value for a 10% change."""
    from scipy.stats import ttest_ind

    note = (
        "Both forms are computed on the same samples, so the differences are paired. The unpaired "
        "t-test of the paper compares them with the standard deviation of the AURC between data "
        "sets"
    )
    definition = np.array([row["AURC_p"] for row in rows])
    if definition.size > 2 and definition.std() > 0:
        p_value = float(ttest_ind(definition, 1.1 * definition).pvalue)
        note += (
            f"; here it would give p = {p_value:.2g} even if one form were 10% larger everywhere"
        )
    return f"{note}. The cases are not independent, so no p-value is given."


#: The study in the catalogue.
FORMS: Final = StudyEntry(
    name="population-forms",
    title="Two forms of the population AURC",
    question="Does the mean of the rank-weighted losses equal the mean selective risk?",
    source=f"Zhou et al. (2025), fig. S7, {PAPER_URL}",
    run=study_population_forms,
    quick={"sizes": (1000,)},
    terms={term: GLOSSARY[term] for term in ("AURC", "Rank u", "CSF")},
)
