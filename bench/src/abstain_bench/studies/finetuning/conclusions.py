"""What the fine-tuning experiment found, in tables, figures and sentences."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, stdev
from typing import Any

from abstain._foundation.notes import Note
from abstain.metrics.catalogue import CLASSIFIER_METRIC
from abstain_bench.runs.jobs import Outcome
from abstain_bench.studies._area_estimators import GLOSSARY
from abstain_bench.studies._sentences import signed
from abstain_bench.studies.finetuning import paper
from abstain_bench.studies.finetuning.experiment import BEFORE, Contender, Experiment
from abstain_bench.studies.finetuning.figure import DifferencesDisplay
from abstain_bench.studies.finetuning.results import (
    MEASURES,
    Against,
    Finals,
    by_seed,
    differences,
    values,
)

_BEFORE_TITLE = "before fine-tuning"

#: The columns of the table like the paper's: head, loss, metric, factor.
_COLUMNS = (
    ("accuracy_%", "zero_one", CLASSIFIER_METRIC, 100),
    *((m.column, m.loss, m.metric, 1000) for m in MEASURES if m.column),
)

_GLOSSARY = {
    "Part of the ranking, of the classifier": "AUGRC is the sum of what the error rate alone costs "
    "under a perfect ranking, and of what the ranking adds.",
    "AURC of CE": "The same area with the cross-entropy (CE) of each sample as its loss, in nats, "
    "in the place of the 0/1 error.",
    "New samples": "How far the difference may be otherwise with other test samples and the same "
    "trained models.",
    "New samples and seeds": "The same, and with models trained from other seeds.",
}

_CAPTIONS = {
    "objectives": "Test data, by softmax confidence: mean ± standard deviation over the seeds. "
    "Areas are multiplied by 1000, as in the literature.",
    "against_reference": "Objective minus reference on the same test samples, mean over the seeds, "
    "times 1000: the interval for these models on new samples, which decides, and the one for new "
    "samples and new seeds. Of these seeds only: the second one reaches zero.",
    "differences": "Every difference from the reference, as fractions.",
    "tuning": "Settings tried on validation data, with the mean over the tuning seeds.",
    paper.TABLE: paper.CAPTION,
    "jobs": "What was run. Kept: done in an earlier run.",
    "results": "One value a model.",
}

_NOTES = (
    (
        "All objectives start from the same pretrained model of a seed and take the same steps. "
        "What was chosen was chosen on validation data, among as many settings for each."
    ),
    (
        "The intervals that decide speak of these models on new samples. Those for new samples "
        "and seeds speak of new models too, as far as these few seeds tell."
    ),
)


_COPIES = (
    "Each test picture is taken {} times, distorted anew; the intervals treat the copies of one "
    "picture as one cluster."
)

#: Of every figure.
_DRAWN = (
    "Thick lines are intervals for new samples, thin lines for new samples and new seeds. "
    "Differences are multiplied by 1000."
)


def told(
    experiment: Experiment,
    finals: Finals,
    chosen: Mapping[str, int],
    tried: Sequence[Mapping[str, Any]],
    outcomes: Sequence[Outcome],
) -> dict[str, Any]:
    """Return the tables, figures and sentences of a result."""
    titles = {c.name: c.title for c in experiment.contenders} | {BEFORE: _BEFORE_TITLE}
    rows = values(finals)
    theirs = paper.tables(experiment, rows, chosen)
    copies = experiment.data.test_copies
    against = differences(finals, rows, experiment.reference, clustered=copies > 1)
    reference = titles[experiment.reference]
    compared = [a for a in against if a.objective != BEFORE]
    return {
        "tables": {
            "results": rows,
            "objectives": _objectives(rows, titles, experiment, chosen),
            "against_reference": [_short_row(a, titles) for a in compared if a.measure.column],
            "differences": [_difference_row(a, titles) for a in against],
            "tuning": list(tried),
            "jobs": [_job_row(outcome) for outcome in outcomes],
            **theirs,
        },
        "figures": _figures(compared, titles, reference),
        "verdict": (
            *_verdict(compared, titles, reference),
            *paper.said(experiment, theirs.get(paper.TABLE, ())),
        ),
        "notes": (
            *failures(experiment, {name for name, _ in finals}, outcomes),
            *_NOTES,
            *([_COPIES.format(copies)] if copies > 1 else []),
        ),
        "captions": _CAPTIONS | {m.figure: f"{m.words}. {_DRAWN}" for m in MEASURES if m.figure},
        "main_tables": ("objectives", *theirs, "against_reference"),
        "glossary": {word: GLOSSARY[word] for word in ("AURC", "AUGRC", "SELE")} | _GLOSSARY,
    }


def _figures(
    compared: Sequence[Against], titles: dict[str, str], reference: str
) -> dict[str, DifferencesDisplay]:
    own = {m: [a for a in compared if a.measure == m] for m in MEASURES if m.figure}
    return {
        m.figure: DifferencesDisplay(found, titles, m.words, reference) for m, found in own.items()
    }


def _objectives(
    rows: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    experiment: Experiment,
    chosen: Mapping[str, int],
) -> list[dict[str, Any]]:
    settings = {c.name: c.settings for c in experiment.contenders}
    columns = [(head, by_seed(rows, loss, m), by) for head, loss, m, by in _COLUMNS]
    out = []
    for name in columns[0][1]:
        row: dict[str, Any] = {"objective": titles[name]}
        for head, own, factor in columns:
            row[head] = factor * fmean(own[name])
            if len(own[name]) > 1:
                row[f"{head}_deviation"] = factor * stdev(own[name])
        row["setting"] = "–" if name == BEFORE else settings[name][chosen[name]].said
        out.append(row)
    return out


def _short_row(a: Against, titles: Mapping[str, str]) -> dict[str, Any]:
    return {
        "measure": a.measure.words,
        "objective": titles[a.objective],
        "difference": _signed(a.difference),
        "new_samples": _span(a.difference_low, a.difference_high),
        "new_samples_and_seeds": _span(a.wide_low, a.wide_high) if a.seeds > 1 else "–",
        "better_in": f"{a.better_seeds} of {a.seeds} seeds",
        "found": f"{a.verdict}{_only_these_seeds(a)}",
    }


def _span(low: float, high: float) -> str:
    if math.isnan(low + high):
        return "undefined"
    return f"{_signed(low)} to {_signed(high)}"


def _signed(value: float) -> str:
    return signed(1000 * value, "{:+.2f}")


def _difference_row(a: Against, titles: Mapping[str, str]) -> dict[str, Any]:
    own = asdict(a) | {"relative": a.relative, "verdict": a.verdict}
    return own | {"objective": a.objective, "title": titles[a.objective]}


def _job_row(outcome: Outcome) -> dict[str, Any]:
    return {
        "job": outcome.job.name,
        "status": outcome.status,
        "seconds": outcome.seconds,
        "error": outcome.error,
    }


def _verdict(
    against: Sequence[Against], titles: Mapping[str, str], reference: str
) -> Iterator[str]:
    """Say by each measure of the 0/1 loss that is printed what was found."""
    for measure in MEASURES:
        if measure.column and measure.loss == "zero_one":
            yield from _found([a for a in against if a.measure == measure], titles, reference)


def _found(against: Sequence[Against], titles: Mapping[str, str], reference: str) -> list[str]:
    """Say of one measure which objectives improve it, by how much, and which not."""
    own = sorted(against, key=lambda a: a.difference)
    words, single = own[0].measure.words, own[0].seeds == 1
    found = {v: [a for a in own if a.verdict == v] for v in ("better", "open", "worse")}
    if found["better"]:
        listed = "; ".join(_at_length(a, titles) for a in found["better"])
        start = _ONE_SEED.format(words) if single else f"Lower {words}"
        said = [f"{start} than {reference}, the interval excludes zero: {listed}."]
    else:
        nearest = "the least bad" if own[0].verdict == "worse" else "the nearest"
        first = f"{nearest}: {_at_length(own[0], titles)}"
        said = [f"No objective is found to lower the {words} of {reference}; {first}."]
    for verdict, start in (
        ("open", f"{words} not told apart from that of {reference}"),
        ("worse", f"Higher {words} than {reference}, the interval excludes zero"),
    ):
        listed = "; ".join(
            f"{titles[a.objective]} {_share(a)}{_only_these_seeds(a)}" for a in found[verdict]
        )
        said += [f"{start}: {listed}."] if listed else []
    return said


_ONE_SEED = (
    "With one seed, which compares trained models and not objectives (another seed may give "
    "another order), lower {}"
)


def _only_these_seeds(a: Against) -> str:
    """Qualify a result of these models: of one seed, or if the interval for seeds reaches zero."""
    if a.seeds == 1 and a.verdict != "open":
        return " (of one seed only)"
    return " (of these seeds only)" if a.verdict != "open" and a.wide_open else ""


def _at_length(a: Against, titles: Mapping[str, str]) -> str:
    said = f"{titles[a.objective]} {_share(a)} (times 1000: "
    said += f"{_signed(a.difference)}, {_span(a.difference_low, a.difference_high)}"
    if a.seeds > 1:
        said += f"; with new seeds {_span(a.wide_low, a.wide_high)}"
        said += ", which reaches zero" if a.wide_open else ""
        said += f"; better in {a.better_seeds} of {a.seeds} seeds"
    return f"{said})"


def _share(a: Against) -> str:
    if math.isnan(a.relative):
        return "(no share of 0)"
    return f"{signed(100 * a.relative)} %"


def failures(
    experiment: Experiment, compared: Collection[str], outcomes: Sequence[Outcome]
) -> list[Note]:
    """Return a warning for each objective of which jobs failed."""
    owned = {c.name: [o for o in outcomes if _belongs(o, c)] for c in experiment.contenders}
    of_objectives = {id(o) for own in owned.values() for o in own}
    shared = [o for o in outcomes if id(o) not in of_objectives]
    texts = []
    if any(o.status == "failed" for o in shared):
        lost = sum(o.status == "left out" for o in outcomes)
        texts.append(f"{_counted('pretrained models', shared)} {lost} jobs are left out.")
    for contender in experiment.contenders:
        own = owned[contender.name]
        if contender.name not in compared:
            start = f"{contender.title} is left out of the comparison"
            texts.append(_counted(start, own))
        elif any(o.status == "failed" for o in own):
            texts.append(f"{_counted(contender.title, own)} It is compared without them.")
    return [Note.warning("failed_jobs", text) for text in texts]


def _counted(start: str, own: Sequence[Outcome]) -> str:
    """Say how many jobs failed, and why the first of them did."""
    failed = [o for o in own if o.status == "failed"]
    first = next(iter(failed or (o for o in own if not o.there)), None)
    why = f" ({first.job.name}: {first.error})" if first else ""
    return f"{start}: {len(failed)} of {len(own)} jobs failed{why}."


def _belongs(outcome: Outcome, contender: Contender) -> bool:
    """Tell whether a job trains this objective."""
    name = re.escape(contender.name)
    return bool(re.fullmatch(rf"(tune-{name}-[0-9]+|final-{name})-seed[0-9]+", outcome.job.name))
