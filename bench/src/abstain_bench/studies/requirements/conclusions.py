"""What was found of all metrics in sentences, and what the tables and figures mean."""

from collections.abc import Iterable, Iterator
from typing import Final

from abstain_bench.studies._sentences import listed
from abstain_bench.studies.requirements.decisions import READINGS, REQUIREMENTS, JudgedMetric
from abstain_bench.studies.requirements.systems import FEW, MORE
from abstain_bench.studies.requirements.verdicts import BETTER, NEVER_WORSE

#: Names that a sentence lists before it counts the rest.
_LISTED: Final = 6


def verdict(judgments: Iterable[JudgedMetric]) -> Iterator[str]:
    """Say which metrics meet all, where R2 depends on its reading, and where the paper differs."""
    known = tuple(judgments)
    yield _meeting_all(known)
    one = [j for j in known if j.found[NEVER_WORSE].holds and not j.found[BETTER].holds]
    if one:
        yield (
            f"R2 depends on how it is read for {_named(one)}: never worse when accuracy or ranking "
            "improves, but not always better."
        )
    if any(j.metric.identity.violated_requirements is not None for j in known):
        yield _beside_the_paper(known)


def _meeting_all(judgments: tuple[JudgedMetric, ...]) -> str:
    met = [j for j in judgments if all(j.found[n].holds for n in READINGS if READINGS[n].of_paper)]
    of = f"the {len(judgments)} metrics" if len(judgments) > 1 else "one metric"
    if not met:
        return f"Of {of} none meets all five requirements as the paper words them."
    verb = "meet" if len(met) > 1 else "meets"
    return (
        f"Of {of} {len(met)} {verb} all five requirements as the paper words them: {_named(met)}."
    )


def _beside_the_paper(judgments: tuple[JudgedMetric, ...]) -> str:
    """Count the verdicts of the paper that all, some or none of the readings share."""
    counts, apart, unnamed = {"all": 0, "some": 0, "none": 0}, [], 0
    own = [
        j
        for j in judgments
        if j.metric.identity.violated_requirements is not None
        and not j.metric.identity.requirements_from
    ]
    for j in own:
        for requirement in REQUIREMENTS:
            if j.paper(requirement) is None:
                unnamed += 1
                continue
            agreeing, readings = j.agreeing(requirement), j.of(requirement)
            how = "all" if len(agreeing) == len(readings) else "some" if agreeing else "none"
            counts[how] += 1
            apart += [f"{requirement} of {j.metric.title}"] if how == "none" else []
    said = (
        f"Of {len(own)} metrics that the paper judges and that are here, it names "
        f"{sum(counts.values())} verdicts. {counts['all']} of them are found in every reading, "
        f"{counts['some']} in one of two, and {counts['none']} in none"
    )
    differing = f": {', '.join(apart)}" if apart else ""
    return (
        f"{said}{differing}. The paper does not name the other {unnamed} pairs of a metric and a "
        "requirement, which is no verdict. Variants of one metric, such as the estimators of the "
        "AURC, are counted once."
    )


def _named(judgments: list[JudgedMetric]) -> str:
    return listed([j.metric.title for j in judgments], _LISTED)


def note(orders: int) -> str:
    """Say what was tried, and how far a verdict goes."""
    return (
        f"Tried: all orders of right and wrong of 2 to {orders} samples, then those of {MORE} with "
        f"at most {FEW} failures. A counterexample is a proof; what holds here may break on more "
        "samples."
    )


_MARKS: Final = (
    "Filled marks are found here, hollow ones are the verdicts that the paper names. Empty: it "
    "names none."
)

CAPTIONS: Final = {
    "results": (
        "before and after: most confident sample first, o right, x wrong, capitals for the second "
        "class, ? wrong since of no known class; the same test set in both. For R3 two pairs put "
        "right and what each gains. n: the samples of the smallest counterexample; of what holds, "
        "those of which all was tried."
    ),
    "summary": (
        "Each reading of each requirement; the requirements that the paper says the metric breaks. "
        "The others are not named."
    ),
    "against-the-paper": (
        "Verdicts that the paper names and no reading shares. Variants of one metric are listed "
        "too."
    ),
    "turning-point": (
        "Of perfect rankings: the accuracy at which the F1-AUC is largest, by the number of "
        "samples; the last row is eq. 11."
    ),
    "toy": (
        "Most confident first, o right, x wrong. Looked for, since the paper's orders are a "
        "picture only: CSF-1 and CSF-2 have one accuracy and one failure AUROC, CSF-3 is worse in "
        "both than CSF-1."
    ),
    "toy-curves": (
        "A failure that is accepted early weighs on the selective risk of all that come after it, "
        "on the generalized risk not more than any other."
    ),
    "contributions": (
        "One failure among n samples, the others right. The paper's formula for the AUGRC, "
        "(N - k + 1)/N^2, is that of SELE; the trapezoid has half a sample less."
    ),
    "verdicts": _MARKS,
    "other-verdicts": _MARKS,
    "surface": "One color scale. The ranking term goes to 0 on the right and at the top.",
    "f1-auc": "Where a line falls, a better classifier with a perfect ranking is rated worse.",
}

GLOSSARY: Final = {
    **{reading.column: reading.asks for reading in READINGS.values()},
    "Failure AUROC": "The share of pairs of a failure and a success that are in the right order.",
    "Counterexample": "Two systems on the same samples; the better one has no better number.",
}
