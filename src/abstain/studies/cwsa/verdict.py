"""What was found, in sentences that follow from the numbers."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from abstain.studies._study import Row
from abstain.studies.cwsa.answers import Answers
from abstain.studies.cwsa.claims import FAILS, HOLDS, PARTLY, Claim
from abstain.studies.cwsa.experiments import SHARPENING, SHIFT, boldest
from abstain.studies.cwsa.models import (
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
    judged: Answers,
) -> Iterator[str]:
    """Say what follows, the most important first."""
    yield _bolder(found[SHARPENING], judged)
    counted = {v: sum(c.verdict == v for c in said) for v in (HOLDS, PARTLY, FAILS)}
    yield (
        f"Of {len(said)} claims that these data decide, {counted[HOLDS]} hold, {counted[PARTLY]} "
        f"hold in part and {counted[FAILS]} fail."
    )
    yield from _ranking({model.name: model for model in simulated})
    yield _agreement(simulated)
    if found[SHIFT]:
        yield _shifted(found[SHIFT])


def _bolder(rows: Sequence[Row], judged: Answers) -> str:
    best = list(boldest(rows))
    n, proper = len(best), best[0][2]
    bolder = sum(cwsa < proper for cwsa, _, proper in best)
    plus = sum(cwsa_plus < proper for _, cwsa_plus, proper in best)
    what = "rewards bolder claims than are true" if 2 * bolder > n else "asks for no bold claims"
    return (
        f"On {judged.name} CWSA {what}: with the same answers it is best at a lower temperature "
        f"than {proper:g}, the most honest of those tried by the Brier score, at {bolder} of {n} "
        f"thresholds, and CWSA+ at {plus}. A sample that is right with probability q adds "
        "(2q - 1) times its weight to CWSA in expectation, so that the claim of certainty is best "
        "wherever q is above 1/2."
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


def _shifted(rows: Sequence[Row]) -> str:
    first, last = rows[0], min(rows, key=lambda row: row["right"])
    names = {"share right": "right", "selective accuracy": "selective_accuracy"}
    names |= {"CWSA": "cwsa", "CWSA+": "cwsa_plus"}
    parts = [
        f"{said} {first[key]:.3f} to {last[key]:.3f}"
        for said, key in names.items()
        if first[key] is not None and last[key] is not None
    ]
    return f"From {first['data']} to {last['data']}: {', '.join(parts)}."
