"""The conclusions of the study, in sentences that follow from the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from abstain_bench.studies._tables import Row
from abstain_bench.studies.cwsa.claims import FAILS, HOLDS, OPEN, PARTLY, Claim, verdict_by_claim
from abstain_bench.studies.cwsa.experiments import COMPARISON, SHARPENING, SHIFT, boldest, by_data
from abstain_bench.studies.cwsa.models import (
    CALIBRATED,
    OVERCONFIDENT,
    OVERCONFIDENT_TEXT,
    PERFECT_TEXT,
    QUANTITIES,
    Simulated,
    area_of,
)


def verdict_of(
    said: Sequence[Claim],
    simulated: Sequence[Simulated],
    found: Mapping[str, Sequence[Row]],
) -> Iterator[str]:
    """Write the conclusions, the most important first."""
    for data, rows in by_data(found[SHARPENING]).items():
        yield _bolder(data, rows)
    yield _BOLDEST
    yield _counted(said)
    yield from _ranking({model.name: model for model in simulated})
    yield _agreement(simulated)
    if found[SHIFT]:
        yield _shifted(found[SHIFT])
    if found[COMPARISON]:
        yield _compared(found[COMPARISON])


_BOLDEST: Final = (
    "A sample that is right with probability q adds (2q - 1) times its weight to CWSA in "
    "expectation, so that the claim of certainty is best wherever q is above 1/2."
)


def _counted(said: Sequence[Claim]) -> str:
    """Count the claims by verdict, each once in all its readings and on all data sets."""
    verdicts = list(verdict_by_claim(said).values())
    counts = {verdict: verdicts.count(verdict) for verdict in (HOLDS, PARTLY, FAILS, OPEN)}
    undecided = f"; these data do not decide {counts[OPEN]}" if counts[OPEN] else ""
    return (
        f"Of {len(verdicts)} claims {counts[HOLDS]} hold, {counts[PARTLY]} hold in part (in some "
        f"readings, at some thresholds or on some data) and {counts[FAILS]} fail{undecided}."
    )


def _bolder(data: str, rows: Sequence[Row]) -> str:
    best = list(boldest(rows))
    n, proper = len(best), best[0][2]
    bolder = sum(cwsa < proper for cwsa, _, proper in best)
    plus = sum(cwsa_plus < proper for _, cwsa_plus, proper in best)
    what = "rewards bolder claims than are true" if 2 * bolder > n else "asks for no bold claims"
    return (
        f"On {data} CWSA {what}: with the same answers it is best at a lower temperature "
        f"than {proper:g}, the most honest of those tried by the Brier score, at {bolder} of {n} "
        f"thresholds, and CWSA+ at {plus}."
    )


def _ranking(models: Mapping[str, Simulated]) -> Iterator[str]:
    good, bold = models[CALIBRATED].expected, models[OVERCONFIDENT_TEXT].expected
    ahead = [int((bold[name] > good[name]).sum()) for name in ("cwsa", "cwsa_plus")]
    n = good["cwsa"].size
    errors = {name: models[name].ece for name in (OVERCONFIDENT_TEXT, CALIBRATED)}
    of_code = int((models[OVERCONFIDENT].expected["cwsa"] > good["cwsa"]).sum())
    yield (
        "Of two simulated models that are right equally often, the one that is called "
        f"overconfident has the higher CWSA in expectation at {ahead[0]} of {n} thresholds and the "
        f"higher CWSA+ at {ahead[1]}. By its ECE, {errors[OVERCONFIDENT_TEXT]:.4f} against "
        f"{errors[CALIBRATED]:.4f}, it is the better calibrated one. The overconfident model of "
        f"the released code, right in 80 %, has the higher CWSA at {of_code}."
    )
    certain = models[PERFECT_TEXT].expected
    area = area_of(certain["cwsa_plus"], certain["coverage"])
    mine = area_of(good["cwsa_plus"], good["coverage"])
    yield (
        f"The AUC-MCC of CWSA+ is {area:.3f} for a model that is always right and certain and "
        f"{mine:.3f} for the calibrated one: it counts only coverages between those of the first "
        "and the last threshold, and compares no models."
    )


def _agreement(simulated: Sequence[Simulated]) -> str:
    """Set the mean of repeated samples against the closed forms."""
    away = []
    for model in simulated:
        for name in QUANTITIES:
            drawn = model.drawn[name]
            error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
            known = np.isfinite(error) & (error > 1e-12)
            away += list(np.abs(drawn.mean(axis=0) - model.expected[name])[known] / error[known])
    if not away:
        return "No number of the simulated models varies."
    return (
        f"The means of repeated samples lie within {max(away):.1f} standard errors of the closed "
        f"forms, over {len(away)} numbers."
    )


#: The quantities of a comparison, by the names of the sentence.
_COMPARED: Final = {
    "share right": "right",
    "selective accuracy": "selective_accuracy",
    "CWSA": "cwsa",
    "CWSA+": "cwsa_plus",
}


def _shifted(rows: Sequence[Row]) -> str:
    """Compare the first row, of the reference, with the worst shift for the same score."""
    reference, *others = (row for row in rows if row["score"] == rows[0]["score"])
    worst = min(others, key=lambda row: row["right"])
    parts = [
        f"{title} {reference[key]:.3f} to {worst[key]:.3f}"
        for title, key in _COMPARED.items()
        if reference[key] is not None and worst[key] is not None
    ]
    return f"From {reference['data']} to {worst['data']}: {', '.join(parts)}."


def _compared(rows: Sequence[Row]) -> str:
    """List the values of data sets of which none is known to be a shift of another."""
    texts = [
        ", ".join(
            f"{title} {row[key]:.3f}" for title, key in _COMPARED.items() if row[key] is not None
        )
        for row in rows
    ]
    listed = "; ".join(f"{row['data']}: {text}" for row, text in zip(rows, texts, strict=True))
    return (
        f"{listed}. If one of these is the data set that the model was made for, name it with "
        "--reference to read the others as shifts of it."
    )
