"""Conclusions of the requirements study."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from abstain_bench.studies._sentences import counted, listed
from abstain_bench.studies.requirements.decisions import READINGS, REQUIREMENTS, JudgedMetric
from abstain_bench.studies.requirements.systems import MAX_FEW_FAILURES, N_LARGE
from abstain_bench.studies.requirements.verdicts import BETTER, NEVER_WORSE

#: Largest number of names that a sentence lists.
_MAX_LISTED: Final = 6


def conclusions(judgments: Iterable[JudgedMetric]) -> Iterator[str]:
    """Yield conclusions: metrics that meet all requirements, readings of R2, and the paper."""
    judged = tuple(judgments)
    yield _conclude_all_requirements(judged)
    only_weak = [
        j for j in judged if j.verdicts[NEVER_WORSE].holds and not j.verdicts[BETTER].holds
    ]
    if only_weak:
        yield (
            f"The verdict on R2 depends on its reading for {_titles(only_weak)}: these metrics "
            "never get worse when accuracy or ranking improves, but do not always get better."
        )
    if any(j.metric.identity.violated_requirements is not None for j in judged):
        yield _compare_with_paper(judged)


def _conclude_all_requirements(judgments: Sequence[JudgedMetric]) -> str:
    paper_readings = [name for name, reading in READINGS.items() if reading.is_from_paper]
    complete = [j for j in judgments if all(j.verdicts[name].holds for name in paper_readings)]
    n_metrics = counted(len(judgments), "metric")
    if not complete:
        return f"None of {n_metrics} meets all five requirements as the paper states them."
    verb = "meet" if len(complete) > 1 else "meets"
    return (
        f"{len(complete)} of {n_metrics} {verb} all five requirements as the paper states them: "
        f"{_titles(complete)}."
    )


def _compare_with_paper(judgments: Sequence[JudgedMetric]) -> str:
    """Count the verdicts of the paper that agree with all, some or none of the readings."""
    # Variants of a metric are counted once.
    in_paper = [
        j
        for j in judgments
        if j.metric.identity.violated_requirements is not None
        and not j.metric.identity.requirements_from
    ]
    counts = {"all": 0, "some": 0, "none": 0}
    disagreements, n_unstated = [], 0
    for judgment in in_paper:
        for requirement in REQUIREMENTS:
            if judgment.paper_verdict(requirement) is None:
                n_unstated += 1
                continue
            n_agreeing = len(judgment.readings_like_paper(requirement))
            if n_agreeing == len(judgment.readings_of(requirement)):
                counts["all"] += 1
            elif n_agreeing:
                counts["some"] += 1
            else:
                counts["none"] += 1
                disagreements.append(f"{requirement} of {judgment.metric.title}")
    details = f" ({', '.join(disagreements)})" if disagreements else ""
    return (
        f"The paper states {sum(counts.values())} verdicts on {len(in_paper)} of these metrics. "
        f"{counts['all']} of them agree with every reading, {counts['some']} with one of two, and "
        f"{counts['none']} with none{details}. It states no verdict on the other {n_unstated} "
        "pairs of a metric and a requirement. Variants of a metric, such as the estimators of the "
        "AURC, are counted once."
    )


def _titles(judgments: Sequence[JudgedMetric]) -> str:
    return listed([j.metric.title for j in judgments], _MAX_LISTED)


def scope_note(orders: int) -> str:
    """Return a note about the tested systems and the validity of a verdict."""
    return (
        f"Tested systems: all orders of successes and failures of 2 to {orders} samples, and of "
        f"{N_LARGE} samples with at most {MAX_FEW_FAILURES} failures. A counterexample is a proof. "
        "A requirement that holds here may be violated with more samples."
    )
