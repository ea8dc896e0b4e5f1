"""Define studies, which are the columns in the tables of a benchmark.

A study combines exposures with a definition of failure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.typing import BoolArray, FloatArray, IntArray
from abstain_bench.data.images import KINDS
from abstain_bench.runs.store import ExposureFacts, RunScores

#: Treatment of wrong predictions for images of known classes in studies with new classes.
ERROR_RULES: Final = {
    "kept": "wrong predictions for known classes are failures, as accepted new classes are",
    "removed": "wrong predictions for known classes are left out, for each method its own",
    "scod": "an accepted new class costs more than a wrong prediction for a known class",
    "outlier": "accepted new classes are the only failures",
}

_NEW_CLASS_KINDS: Final = ("new-class", "far-new-class")

#: Error rules of the additional studies of new classes, with the end of the title of each study.
_TITLES_BY_ERROR_RULE: Final = {
    "kept": "errors on known classes kept",
    "scod": "failures by their cost",
    "outlier": "as outliers",
}


@dataclass(frozen=True)
class Study:
    """A column in the tables of a benchmark.

    Attributes
    ----------
    name : str
        Name of the study. "corruption" is the mean over the severities. "corruption-1" to
        "corruption-5" pool all corruptions of one severity. "corruption-pooled" pools all
        corruptions and severities. All other studies are named after an exposure. Studies with new
        classes have variants with the suffix "-kept", "-scod" or "-outlier".
    title : str
        Title of the column.
    kind : str
        Kind of shift, in `abstain_bench.data.images.KINDS`.
    exposures : tuple of str
        Keys of the exposures. Studies with new classes also include the unshifted test images.
    errors : {"kept", "removed", "scod", "outlier"}
        Treatment of wrong predictions for known classes, as described in `ERROR_RULES`.
    severity : int
        Severity of the corruptions, or 0 for all severities.
    headline : bool
        Whether the study is a column of the main table.
    parts : tuple of str
        Names of the studies whose values are averaged. If empty, all images are pooled.
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
    """Return the studies that can be computed from the given exposures.

    Parameters
    ----------
    exposures : sequence of ExposureFacts
        All exposures of a store.

    Returns
    -------
    tuple of Study
        Studies in table order: unshifted images, corruptions, sub-classes and new classes.

    Raises
    ------
    InputError
        If two studies have the same name. If there are new classes but no unshifted exposure.

    Examples
    --------
    >>> from abstain_bench.runs.studies import studies_of
    >>> from abstain_bench.runs.store import ExposureFacts
    >>> iid = ExposureFacts("iid", "iid", "iid", "iid")
    >>> new = ExposureFacts("digits", "digits", "digits", "new-class")
    >>> [(study.name, study.errors) for study in studies_of([iid, new])][2:]
    [('digits-kept', 'kept'), ('digits-scod', 'scod'), ('digits-outlier', 'outlier')]
    """
    studies = [*_known_class_studies(exposures), *_new_class_studies(exposures)]
    names = [study.name for study in studies]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise InputError(
            f"the names of studies must be unique; got {duplicates[0]!r} twice. Rename an exposure"
        )
    return tuple(studies)


def _known_class_studies(exposures: Sequence[ExposureFacts]) -> list[Study]:
    """Return the studies of i.i.d. images, corruptions and sub-classes."""
    studies = []
    for exposure in _exposures_of_kind(exposures, "iid"):
        title = KINDS["iid"] if exposure.name == "iid" else exposure.title
        studies.append(Study(exposure.name, title, "iid", (exposure.key,)))
    studies += _corruption_studies(_exposures_of_kind(exposures, "corruption"))
    for exposure in _exposures_of_kind(exposures, "sub-class"):
        title = _with_spaces(exposure.title)
        studies.append(Study(exposure.name, title, "sub-class", (exposure.key,)))
    return studies


def _corruption_studies(exposures: Sequence[ExposureFacts]) -> list[Study]:
    """Return the mean over severities, a study for each severity, and the pooled study."""
    by_severity = []
    for severity in sorted({exposure.severity for exposure in exposures}):
        keys = tuple(exposure.key for exposure in exposures if exposure.severity == severity)
        name = f"corruption-{severity}"
        title = f"corruptions of severity {severity}"
        by_severity.append(
            Study(name, title, "corruption", keys, severity=severity, headline=False)
        )
    if not by_severity:
        return []
    all_keys = tuple(key for study in by_severity for key in study.exposures)
    if len(by_severity) == 1:
        # The mean and the pooled study would equal the study of the severity.
        return [Study("corruption", "corruptions", "corruption", all_keys), *by_severity]
    names = tuple(study.name for study in by_severity)
    mean = Study("corruption", "corruptions", "corruption", all_keys, parts=names)
    pooled = Study(
        "corruption-pooled", "corruptions, pooled", "corruption", all_keys, headline=False
    )
    return [mean, *by_severity, pooled]


def _new_class_studies(exposures: Sequence[ExposureFacts]) -> list[Study]:
    """Return four studies per exposure with new classes, including the unshifted images."""
    iid = _exposures_of_kind(exposures, "iid")
    studies = []
    for kind in _NEW_CLASS_KINDS:
        for exposure in _exposures_of_kind(exposures, kind):
            if not iid:
                raise InputError(
                    f"the new classes of {exposure.key!r} require i.i.d. images for comparison; "
                    'add an exposure of the kind "iid"'
                )
            keys = (iid[0].key, exposure.key)
            title = _with_spaces(exposure.title)
            studies.append(Study(exposure.name, title, kind, keys, "removed"))
            for errors, ending in _TITLES_BY_ERROR_RULE.items():
                name = f"{exposure.name}-{errors}"
                full_title = f"{title}, {ending}"
                studies.append(Study(name, full_title, kind, keys, errors, headline=False))
    return studies


def _exposures_of_kind(exposures: Sequence[ExposureFacts], kind: str) -> list[ExposureFacts]:
    return [exposure for exposure in exposures if exposure.kind == kind]


def _with_spaces(name: str) -> str:
    return name.replace("-", " ").replace("_", " ")


def concatenate_scores(study: Study, scores: Sequence[RunScores]) -> RunScores:
    """Concatenate the scores of a run for all exposures of a study.

    The result contains the methods that are available for all exposures. Samples with equal
    `source_indices` are copies of one image, such as its corrupted versions.
    """
    methods = [
        method
        for method in scores[0].confidence
        if all(method in part.confidence for part in scores)
    ]
    confidence = {
        method: np.concatenate([part.confidence[method] for part in scores]) for method in methods
    }
    mean_prediction = None
    if any(part.mean_prediction is not None for part in scores):
        mean_prediction = np.concatenate(
            [part.prediction_for(uses_mean_prediction=True) for part in scores]
        )
    reasons: dict[str, str] = {}
    for part in scores:
        reasons |= part.reasons
    return RunScores(
        exposure=study.name,
        labels=np.concatenate([part.labels for part in scores]),
        source_indices=_concatenate_source_indices(study, scores),
        prediction=np.concatenate([part.prediction for part in scores]),
        mean_prediction=mean_prediction,
        confidence=confidence,
        reasons=reasons,
    )


def _concatenate_source_indices(study: Study, scores: Sequence[RunScores]) -> IntArray:
    """Concatenate the source indices of exposures.

    In studies with new classes, the exposures contain different images, so their indices are
    shifted to avoid collisions.
    """
    if study.kind not in _NEW_CLASS_KINDS:
        return np.concatenate([part.source_indices for part in scores])
    shifted = []
    next_index = 0
    for part in scores:
        lowest_index = int(part.source_indices.min(initial=0))
        indices = part.source_indices - lowest_index + next_index
        shifted.append(indices)
        next_index = int(indices.max(initial=next_index)) + 1
    return np.concatenate(shifted)


@dataclass(frozen=True, eq=False)
class StudyLoss:
    """Losses and weights of the predictions of a run in a study.

    Attributes
    ----------
    loss : bool or float64 ndarray of shape (n,)
        The cost of each sample, or whether the sample is a failure.
    weight : float64 ndarray of shape (n,) or None
        Weight of each sample, which is 0 for samples that are left out and 1 for all others. None
        if all samples are included.
    """

    loss: BoolArray | FloatArray
    weight: FloatArray | None = None


def study_loss(
    study: Study,
    scores: RunScores,
    *,
    uses_mean_prediction: bool = False,
    outlier_cost: float = 2.0,
) -> StudyLoss:
    """Return the loss and the weight of each sample in a study.

    If `uses_mean_prediction` is True, the mean predictions of the run are used if they exist.
    `outlier_cost` is the cost of an accepted image of a new class for the error rule "scod".

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.runs.studies import Study, study_loss
    >>> from abstain_bench.runs.store import RunScores
    >>> prediction = np.array([0, 1, 0])
    >>> scores = RunScores("digits", np.array([0, 0, -1]), np.arange(3), prediction, None, {})
    >>> removed = study_loss(Study("digits", "", "new-class", ("iid", "digits"), "removed"), scores)
    >>> removed.loss.tolist(), removed.weight.tolist()
    ([False, True, True], [1.0, 0.0, 1.0])
    >>> scod = study_loss(Study("digits-scod", "", "new-class", ("iid", "digits"), "scod"), scores)
    >>> scod.loss.tolist()
    [0.0, 1.0, 2.0]
    >>> outlier = Study("digits-outlier", "", "new-class", ("iid", "digits"), "outlier")
    >>> study_loss(outlier, scores).loss.tolist()
    [False, False, True]
    """
    is_new = scores.labels < 0
    if study.errors == "outlier":
        return StudyLoss(is_new)
    is_failure = (scores.prediction_for(uses_mean_prediction) != scores.labels) | is_new
    if study.errors == "scod":
        cost = np.where(is_new, float(outlier_cost), is_failure.astype(np.float64))
        return StudyLoss(cost)
    if study.errors == "removed":
        return StudyLoss(is_failure, (~is_failure | is_new).astype(np.float64))
    return StudyLoss(is_failure)
