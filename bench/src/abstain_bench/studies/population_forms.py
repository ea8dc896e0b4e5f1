"""Two ways to write the AURC of a population, compared on many data sets."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation.random import named_generator, seed_of
from abstain.metrics import aurc, metric_interval, population_aurc
from abstain.metrics.catalogue import POPULATION_AREA_METRIC
from abstain.plots.agreement import AgreementDisplay, Pair
from abstain.predictions import Predictions
from abstain.simulate import POPULATIONS, LogitPopulation, Population
from abstain.typing import Rng
from abstain_bench.studies._data import (
    LOGITS,
    Data,
    Populations,
    StudyRequest,
    checked_sizes,
)
from abstain_bench.studies._models import CAPTION, OVER_MODELS, over_models, tables_of
from abstain_bench.studies._sentences import counted
from abstain_bench.studies._sources import OWN, ScoredCase
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed
from abstain_bench.studies._words import PAPER, WORDS, loss_said


@timed
def study_population_forms(
    data: Data = None,
    *,
    populations: Populations = (),
    scores: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    sizes: Sequence[int] = (1000, 10_000),
    rng: Rng = 0,
) -> StudyResult:
    """Compare the reweighted form of the AURC with its definition on many data sets.

    Answers: is the mean of rank-weighted losses the same number as the mean selective risk? Every
    file, every part of it (``--by``), score and loss is one case.

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Every one is taken for a whole population.
    populations : sequence of str, Population or LogitPopulation, optional
        One sample of each size is drawn from every one. Without data and populations: all of
        ``abstain list populations``.
    scores : sequence of str, optional
        Scores of the data (``abstain list scores``); by default the six of the paper.
    losses : sequence of str, optional
        Losses of the data; by default zero_one and, with class scores, cross_entropy.
    sizes : sequence of int, default=(1000, 10000)
        Sizes of the samples of populations, at least 2.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set, loss and score) and "differences" (the paired
        differences by size); figures "agreement" (figure S7) and "difference".

    Raises
    ------
    InputError
        If a name is unknown or a size is below 2.

    Notes
    -----
    AURC_a is the log form, as in the code of the paper; AURC_p the definition: the mean over
    samples of the selective risk at the sample's own threshold. "reweighted" is the exact limit of
    AURC_a. Cost: a few sorts for each case.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 3 and 8, appendix A.5, fig. S7, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> found = study_population_forms(populations=["uniform-scores"], sizes=[1000])
    >>> bool(abs(found.frame()["difference"][0]) < 1e-3)
    True
    """
    chosen, seed = checked_sizes(sizes, least=2), seed_of(rng)
    asked = StudyRequest(data, populations, scores, losses)
    cases = [case for known in asked.scored for case in known.cases()]
    for name, p in asked.drawn((*POPULATIONS, LOGITS)):
        draw = named_generator(seed, name)
        cases += [case for n in chosen for case in _drawn(name, p, n, asked, draw)]
    rows = [_row(case) for case in cases]
    differences = _differences(rows)
    over = over_models(rows, set(asked.parts), ("loss", "score"), _VALUES)
    return FORMS.result(
        parameters={
            "data": tuple(dict.fromkeys(row["data"] for row in rows)),
            "cases": len(rows),
            "sizes": tuple(sorted({row["n"] for row in rows})),
        },
        tables={"results": rows, "differences": differences} | tables_of(over),
        figures=_figures(rows),
        notes=(*asked.left_out, _why_paired(rows)),
        verdict=_verdict(rows),
    )


#: What is averaged over the files.
_VALUES: Final = {
    "AURC_a": lambda row: row["AURC_a"],
    "AURC_p": lambda row: row["AURC_p"],
    "difference": lambda row: row["difference"],
}


def _drawn(
    name: str,
    population: Population | LogitPopulation,
    n: int,
    asked: StudyRequest,
    rng: np.random.Generator,
) -> Iterator[ScoredCase]:
    if isinstance(population, LogitPopulation):
        z, labels = population.sample_logits(n, rng=rng)
        yield from asked.score(name, Predictions(logits=z, labels=labels)).cases()
    else:
        loss = "zero_one" if population.binary else OWN
        yield ScoredCase(name, loss, OWN, *population.sample(n, rng=rng))


def _row(case: ScoredCase) -> dict[str, Any]:
    pair = case.confidence, case.losses
    definition = population_aurc(*pair, form="definition")
    log = aurc(*pair, estimator="log")
    error = metric_interval(*pair, metric=POPULATION_AREA_METRIC).standard_error
    n = case.losses.size
    distinct = np.unique(case.confidence).size
    return {
        "data": case.data,
        "loss": case.loss,
        "score": case.score,
        "n": n,
        "tied_share": 1 - distinct / n,
        "AURC_a": log,
        "AURC_p": definition,
        "reweighted": population_aurc(*pair),
        "difference": log - definition,
        "relative_difference": (log - definition) / definition if definition else float("nan"),
        "n_x_difference": n * (log - definition),
        "standard_error": error,
        "difference_in_errors": (log - definition) / error if error else float("nan"),
    }


def _differences(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Summarize the paired differences for each size, those with ties apart."""
    out = []
    for n, tied in sorted({(row["n"], row["tied_share"] > 0) for row in rows}):
        mine = [row for row in rows if (row["n"], row["tied_share"] > 0) == (n, tied)]
        relative = np.array([row["relative_difference"] for row in mine])
        relative = relative[np.isfinite(relative)]
        some = relative.size > 0
        errors = np.array([abs(row["difference_in_errors"]) for row in mine])
        errors = errors[np.isfinite(errors)]
        out.append({
            "n": n,
            "ties": "with ties" if tied else "no ties",
            "cases": len(mine),
            "mean_relative_difference": float(relative.mean()) if some else float("nan"),
            "sd": float(relative.std(ddof=1)) if relative.size > 1 else float("nan"),
            "largest_relative_difference": float(np.abs(relative).max()) if some else float("nan"),
            "largest_n_x_difference": max(abs(row["n_x_difference"]) for row in mine),
            "largest_in_errors": float(errors.max()) if errors.size else float("nan"),
        })  # fmt: skip
    return out


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    shown = [row for row in rows if row["AURC_p"] > 0]
    if not shown:
        return {}
    by = "data" if len({row["data"] for row in shown}) > 1 else "score"
    pairs = tuple(
        Pair(
            f"{row['data']}, {row['score']}, n = {row['n']}",
            row[by] if by == "score" else _group(row, shown),
            row["AURC_p"],
            row["AURC_a"],
            loss_said(row["loss"]),
        )
        for row in shown
    )
    return {
        "agreement": AgreementDisplay(
            pairs,
            "The reweighted form of the AURC against its definition",
            "AURC_p, the definition",
            "AURC_a, reweighted",
        ),
        "difference": AgreementDisplay(
            pairs,
            "Their difference as a share of the AURC",
            "AURC_p, the definition",
            "(AURC_a - AURC_p) / AURC_p",
            difference=True,
        ),
    }


def _group(row: Row, rows: Sequence[Row]) -> str:
    """Color by data set while those can be told apart, else by size."""
    if len({r["data"] for r in rows}) <= 8:
        return str(row["data"])
    return f"n = {row['n']}" + (", ties" if row["tied_share"] > 0 else "")


def _case_said(row: Row) -> str:
    return row["data"] if row["score"] == OWN else f"{row['data']}, {row['score']}"


def _verdict(rows: Sequence[Row]) -> tuple[str, ...]:
    """Say how far the two forms differ."""
    free = [row for row in rows if row["tied_share"] == 0 and row["AURC_p"]]
    out = []
    if free:
        worst = max(free, key=lambda row: abs(row["relative_difference"]))
        typical = float(np.median([abs(row["relative_difference"]) for row in free]))
        out.append(
            f"Without ties ({counted(len(free), 'case')}) AURC_a and AURC_p differ by "
            f"{typical:.2g} of the AURC in the median and "
            f"{abs(worst['relative_difference']):.2g} at most ({_case_said(worst)}, "
            f"n = {worst['n']}): the difference of the weights of a finite sample, which goes away "
            "as n grows."
        )
    tied = [row for row in rows if row["tied_share"] > 0 and row["AURC_p"]]
    if tied:
        worst = max(tied, key=lambda row: abs(row["relative_difference"]))
        out.append(
            f"With ties ({counted(len(tied), 'case')}) the definition moreover accepts a tie as a "
            "whole, where the weights accept it in part: in all they differ by up to "
            f"{abs(worst['relative_difference']):.2g} of the AURC ({_case_said(worst)}, "
            f"n = {worst['n']}, where {worst['tied_share']:.1%} of the confidences repeat another)."
        )
    errors = [
        abs(r["difference_in_errors"]) for r in rows if np.isfinite(r["difference_in_errors"])
    ]
    if not (free or tied):
        out.append("No case has any loss, so both forms are 0.")
    if errors:
        out.append(
            f"The largest difference is {max(errors):.2g} standard errors of the AURC itself, the "
            f"median {np.median(errors):.2g}."
        )
    return tuple(out)


def _why_paired(rows: Sequence[Row]) -> str:
    """Say why the columns are not compared by an unpaired test, with what one would miss."""
    from scipy.stats import ttest_ind

    said = (
        "Both forms are computed on the same samples, so they are compared pair by pair. An "
        "unpaired t-test of the two columns, as in the paper, holds their difference against the "
        "spread of the AURC between data sets"
    )
    one = np.array([row["AURC_p"] for row in rows])
    if one.size > 2 and one.std() > 0:
        missed = float(ttest_ind(one, 1.1 * one).pvalue)
        said += (
            f"; here it would give p = {missed:.2g} even if one form were 10 % larger everywhere"
        )
    return f"{said}. Nor are the cases independent draws, so no p-value is given."


#: The study in the catalogue.
FORMS: Final = StudyEntry(
    name="population-forms",
    title="Two forms of the population AURC",
    question="Is the mean of rank-weighted losses the same number as the mean selective risk?",
    source=f"Zhou et al. (2025), fig. S7, {PAPER}",
    run=study_population_forms,
    quick={"sizes": (1000,)},
    captions={
        "results": "One row for each data set, loss and score.",
        "differences": (
            "Paired: AURC_a minus AURC_p of each case; errors: of the AURC as an estimate."
        ),
        OVER_MODELS: CAPTION,
        "agreement": "On the dotted line both forms give the same number.",
    },
    glossary={
        "AURC_a": "Mean of loss x -ln(1 - r/(n + 1)): the log form, as in the code of the paper.",
        "AURC_p": "Mean over samples of the selective risk at the sample's own threshold.",
        "Reweighted": "Mean of loss x -ln(1 - u), averaged over the ranks u that a tie covers.",
        **{word: WORDS[word] for word in ("AURC", "Rank u", "CSF")},
    },
)
