"""The studies of a benchmark: which exposures are a column of its tables, and what counts there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.typing import BoolArray, FloatArray, IntArray
from abstain_bench.data.exposures import KINDS
from abstain_bench.runs.store import ExposureFacts, RunScores

__all__ = ["ERRORS", "Study", "StudyLoss", "judged", "studies_of"]

#: What is done with wrong answers about images of known classes, where there are new classes.
ERRORS: Final = {
    "kept": "wrong answers about known classes count, as accepted new classes do",
    "removed": "wrong answers about known classes are left out, for each method its own",
    "scod": "an accepted new class costs more than a wrong answer about a known one",
    "outlier": "accepting a new class is the only failure, and no answer about a known one is any",
}

_NEW: Final = ("new-class", "far-new-class")

#: How new classes are judged beside the usual way, and what people read.
_OTHERWISE: Final = {
    "kept": "errors on known classes kept",
    "scod": "failures by their cost",
    "outlier": "as outliers",
}


@dataclass(frozen=True)
class Study:
    """One column of the tables.

    Attributes
    ----------
    name : str
        "iid"; "corruption", the mean over the severities; "corruption-1" to "corruption-5", one
        severity with all types together; "corruption-pooled", all types and severities together;
        the name of each sub-class exposure; that of each new-class exposure, also with "-kept",
        "-scod" and "-outlier" behind it.
    title : str
        The name people read.
    kind : str
        In `abstain_bench.data.exposures.KINDS`.
    exposures : tuple of str
        Their keys. To a new-class exposure belong the i.i.d. images; those of a mean come part
        by part.
    errors : {"kept", "removed", "scod", "outlier"}
        What is done with wrong answers about known classes; see `ERRORS`.
    severity : int
        Of the corruptions, 0 for all.
    headline : bool
        Whether it is a column of the main table.
    parts : tuple of str
        The studies whose numbers are averaged, by name; empty where all images are taken
        together.
    """

    name: str
    title: str
    kind: str
    exposures: tuple[str, ...]
    errors: str = "kept"
    severity: int = 0
    headline: bool = True
    parts: tuple[str, ...] = ()


def studies_of(exposures: Sequence[ExposureFacts]) -> tuple[Study, ...]:
    """Arrange exposures as studies.

    Answers: which columns do the tables have, and which images is each about?

    Parameters
    ----------
    exposures : sequence of ExposureFacts
        All of a store.

    Returns
    -------
    tuple of Study
        In the order of the tables: i.i.d., corruptions, sub-classes, new classes.

    Raises
    ------
    InputError
        Two studies have one name, or there are new classes and no i.i.d. images beside them.

    Examples
    --------
    >>> from abstain_bench.runs.protocol import studies_of
    >>> from abstain_bench.runs.store import ExposureFacts
    >>> own = ExposureFacts("iid", "iid", "iid", "iid")
    >>> new = ExposureFacts("digits", "digits", "digits", "new-class")
    >>> [(study.name, study.errors) for study in studies_of([own, new])][2:]
    [('digits-kept', 'kept'), ('digits-scod', 'scod'), ('digits-outlier', 'outlier')]
    """
    found = [*_familiar(exposures), *_new(exposures)]
    names = [study.name for study in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f"every study must have a name of its own; got {twice[0]!r} twice. Rename an exposure"
        )
    return tuple(found)


def _familiar(exposures: Sequence[ExposureFacts]) -> Iterator[Study]:
    """Return the studies of known classes."""
    for one in _of(exposures, "iid"):
        yield Study(one.name, KINDS["iid"] if one.name == "iid" else one.title, "iid", (one.key,))
    yield from _corrupted(_of(exposures, "corruption"))
    for one in _of(exposures, "sub-class"):
        yield Study(one.name, _words(one.title), one.kind, (one.key,))


def _corrupted(exposures: Sequence[ExposureFacts]) -> Iterator[Study]:
    """Return the mean over the severities, each severity, and all images together."""
    each = [
        Study(
            f"corruption-{severity}",
            f"corruptions of severity {severity}",
            "corruption",
            tuple(one.key for one in exposures if one.severity == severity),
            severity=severity,
            headline=False,
        )
        for severity in sorted({one.severity for one in exposures})
    ]
    keys = tuple(key for study in each for key in study.exposures)
    if len(each) > 1:
        names = tuple(study.name for study in each)
        yield Study("corruption", "corruptions", "corruption", keys, parts=names)
        yield from each
        title = "corruptions, pooled"
        yield Study("corruption-pooled", title, "corruption", keys, headline=False)
    elif each:
        # Of one severity all three are the same.
        yield Study("corruption", "corruptions", "corruption", keys)
        yield from each


def _new(exposures: Sequence[ExposureFacts]) -> Iterator[Study]:
    """Return the studies of new classes, each beside the i.i.d. images, four times."""
    for one in (own for kind in _NEW for own in _of(exposures, kind)):
        beside = _of(exposures, "iid")
        if not beside:
            raise InputError(
                f"the new classes of {one.key!r} must be judged beside i.i.d. images, and there "
                'is no exposure of the kind "iid"'
            )
        keys, title = (beside[0].key, one.key), _words(one.title)
        yield Study(one.name, title, one.kind, keys, "removed")
        for errors, said in _OTHERWISE.items():
            name, told = f"{one.name}-{errors}", f"{title}, {said}"
            yield Study(name, told, one.kind, keys, errors, headline=False)


def _of(exposures: Sequence[ExposureFacts], kind: str) -> list[ExposureFacts]:
    return [one for one in exposures if one.kind == kind]


def _words(name: str) -> str:
    return name.replace("-", " ").replace("_", " ")


def gathered(study: Study, parts: Sequence[RunScores]) -> RunScores:
    """Put together what one run says of each exposure of a study, under the name of the study.

    Confidences are of the methods that every part has. Corruptions are of the same images, so
    their `places` are alike; those of new classes and of i.i.d. images are kept apart.
    """
    names = [m for m in parts[0].confidence if all(m in part.confidence for part in parts)]
    averaged = None
    if any(part.averaged is not None for part in parts):
        averaged = np.concatenate([part.predicted(averages=True) for part in parts])
    return RunScores(
        exposure=study.name,
        labels=np.concatenate([part.labels for part in parts]),
        places=_places(study, parts),
        prediction=np.concatenate([part.prediction for part in parts]),
        averaged=averaged,
        confidence={m: np.concatenate([part.confidence[m] for part in parts]) for m in names},
        reasons={name: why for part in parts for name, why in part.reasons.items()},
    )


def _places(study: Study, parts: Sequence[RunScores]) -> IntArray:
    if study.kind not in _NEW:
        return np.concatenate([part.places for part in parts])
    shifted, above = [], 0
    for part in parts:
        least = int(part.places.min(initial=0))
        shifted.append(part.places - least + above)
        above = int(shifted[-1].max(initial=above)) + 1
    return np.concatenate(shifted)


@dataclass(frozen=True, eq=False)
class StudyLoss:
    """What counts as a failure of one prediction in a study.

    Attributes
    ----------
    loss : bool or float64 ndarray of shape (n,)
        Whether the answer is wrong, or what it costs.
    weight : float64 ndarray of shape (n,) or None
        0 for samples that are left out, 1 for the others; None where all count.
    """

    loss: BoolArray | FloatArray
    weight: FloatArray | None = None


def judged(
    study: Study, scores: RunScores, *, averages: bool = False, outlier_cost: float = 2.0
) -> StudyLoss:
    """Say what counts as a failure of a prediction in a study, and which samples count.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.runs.protocol import Study, judged
    >>> from abstain_bench.runs.store import RunScores
    >>> answers = np.array([0, 1, 0])
    >>> scores = RunScores("digits", np.array([0, 0, -1]), np.arange(3), answers, None, {})
    >>> removed = judged(Study("digits", "", "new-class", ("iid", "digits"), "removed"), scores)
    >>> removed.loss.tolist(), removed.weight.tolist()
    ([False, True, True], [1.0, 0.0, 1.0])
    >>> scod = judged(Study("digits-scod", "", "new-class", ("iid", "digits"), "scod"), scores)
    >>> scod.loss.tolist()
    [0.0, 1.0, 2.0]
    >>> outlier = Study("digits-outlier", "", "new-class", ("iid", "digits"), "outlier")
    >>> judged(outlier, scores).loss.tolist()
    [False, False, True]
    """
    new = scores.labels < 0
    if study.errors == "outlier":
        return StudyLoss(new)
    wrong = (scores.predicted(averages) != scores.labels) | new
    if study.errors == "scod":
        return StudyLoss(np.where(new, float(outlier_cost), wrong.astype(np.float64)))
    if study.errors == "removed":
        return StudyLoss(wrong, (~wrong | new).astype(np.float64))
    return StudyLoss(wrong)
