"""`estimate_ratios`: from labeled predictions and unlabeled ones to density ratios for a rule."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.notes import Note
from abstain.confidence import ScoreState
from abstain.errors import InputError, MissingInputError
from abstain.evaluation.rules.data import compute_confidence
from abstain.predictions import Predictions
from abstain.predictions.class_view import log_probabilities
from abstain.shift import DensityRatios, LabelShift, fit_ratios, label_shift
from abstain.typing import Array, FloatArray, Rng

#: Log-probabilities below this are this: a classifier of data sets needs no more.
_LEAST: Final = -30.0
#: Where the ratios are worth less than this part of the samples, that is a warning.
_WORTH_LITTLE: Final = 0.1
#: Above this the two data sets hardly overlap.
_APART: Final = 0.95

Shift = Literal["covariate", "label"]


@dataclass(frozen=True, eq=False)
class EstimatedRatios:
    """Density ratios of calibration predictions, and what to know of them.

    Attributes
    ----------
    ratios : DensityRatios
        Of the calibration samples: what `ratio=` of `set_threshold` takes.
    shift : {"covariate", "label"}
        What is taken to have changed: which inputs come up, or which classes.
    auroc : float or None
        For a covariate shift: how well a classifier tells the data sets apart (0.5: not at all).
    classes : LabelShift or None
        For a label shift: the ratio of each class with its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> sure, new = rng.beta(4, 1, 1000), rng.beta(3, 1, 1000)
    >>> here = ab.Predictions(confidence=sure, loss=rng.random(1000) > sure)
    >>> there = ab.Predictions(confidence=new, unlabeled=True)
    >>> found = ab.estimate_ratios(here, there)
    >>> found.shift, found.ratios.n, found.ratios.effective_size > 800
    ('covariate', 1000, True)
    """

    ratios: DensityRatios
    shift: Shift
    auroc: float | None = None
    classes: LabelShift | None = None

    def notes(self) -> tuple[Note, ...]:
        """Return what the reader of a rule that rests on them should know, in sentences."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[Note]:
        yield Note("ratios", f"Of the calibration data {self.ratios}.")
        if self.classes is not None:
            yield Note("class_ratios", f"Ratios of the classes: {_classes_said(self.classes)}.")
        if self.classes is not None and self.classes.doubtful:
            names = ", ".join(map(repr, self.classes.doubtful[:8]))
            yield Note.warning(
                "class_ratios",
                f"The ratio of {names} came out below 0 by more than chance explains: more has "
                "changed than how often classes come up. Try a covariate shift.",
            )
        if self.auroc is not None and self.auroc > _APART:
            yield Note.warning(
                "overlap",
                "The calibration data and the data to come hardly overlap: a classifier tells them "
                f"apart with an AUROC of {self.auroc:.3f}. No ratio makes one of the other.",
            )
        if self.ratios.effective_size < _WORTH_LITTLE * self.ratios.n:
            yield Note.warning(
                "worth",
                f"The {self.ratios.n} calibration samples are worth "
                f"{self.ratios.effective_size:.0f}: a few of them decide. Clipping the ratios "
                "keeps more, for another promise.",
            )


def estimate_ratios(
    predictions: Predictions,
    deployed: Predictions,
    *,
    shift: Shift = "covariate",
    score: str | ScoreState | None = None,
    clip: float | None = None,
    rng: Rng = 0,
) -> EstimatedRatios:
    """Estimate how much more often each calibration sample comes up where a rule is used.

    Answers: nobody labeled the data that the rule is for; what are my calibration data worth there?

    Parameters
    ----------
    predictions : Predictions
        The calibration data.
    deployed : Predictions
        From where the rule is used; what is right there is not looked at.
    shift : {"covariate", "label"}, default="covariate"
        "covariate": other inputs come up, and those that look alike are wrong equally often
        (`abstain.shift.fit_ratios`). "label": other classes come up, and each class looks as
        before (`abstain.shift.label_shift`).
    score : str or fitted score, optional
        The confidence of the rule, for a covariate shift; by default as for `set_threshold`.
    clip : float, optional
        Cut ratios to this many times their mean (`abstain.shift.density_ratios`).
    rng : int, Generator or None, default=0
        Of folds and resamples.

    Returns
    -------
    EstimatedRatios
        `ratios` for the rule, `findings()` for the reader.

    Raises
    ------
    InputError
        No such shift; a label shift with `clip`.
    MissingInputError
        Nothing that both data sets have; for a label shift, no classes.
    ShapeError, DomainError
        As the functions of `abstain.shift`.

    Notes
    -----
    A covariate shift is looked for in the features where both have them, else in the logarithms
    of the class probabilities, and in the confidence of the score. The more columns, the more of a
    shift can be seen, and the less sure is each ratio.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> labels, prediction = np.repeat(["a", "b"], 200), np.tile(["a", "a", "a", "b"], 100)
    >>> prediction = np.where(labels == "b", np.where(prediction == "a", "b", "a"), prediction)
    >>> here = ab.Predictions(prediction=prediction, labels=labels)
    >>> there = ab.Predictions(prediction=np.repeat(["a", "b"], [100, 200]), unlabeled=True)
    >>> found = ab.estimate_ratios(here, there, shift="label")
    >>> found.classes.classes, found.classes.ratio.round(2).tolist()
    (('a', 'b'), [0.33, 1.67])
    """
    checks.one_of(shift, "shift", ("covariate", "label"))
    if shift == "label":
        if clip is not None:
            raise InputError(
                "`clip` is for a covariate shift: the ratio of a class is estimated from many"
            )
        classes = _label_shift(predictions, deployed, rng)
        labels = _texts(predictions.class_names, predictions.label_codes)
        return EstimatedRatios(classes.ratios(labels), shift, classes=classes)
    here, there = _columns(predictions, deployed, score)
    found = fit_ratios(here, there, clip=clip, rng=rng)
    return EstimatedRatios(found.ratios, shift, auroc=found.auroc)


def _label_shift(predictions: Predictions, deployed: Predictions, rng: Rng) -> LabelShift:
    for name, data in (("predictions", predictions), ("deployed", deployed)):
        if not data.has_prediction:
            raise MissingInputError(
                f"a label shift is seen in predicted classes, and `{name}` hold none"
            )
    known = _texts(predictions.class_names, predictions.label_codes)
    if (predictions.label_codes < 0).any():
        raise InputError(
            "a label shift is about known classes; leave out the samples of no known class from "
            "the calibration data"
        )
    said = _texts(predictions.class_names, predictions.prediction_codes)
    return label_shift(
        known, said, _texts(deployed.class_names, deployed.prediction_codes), rng=rng
    )


def _texts(names: tuple[Hashable, ...], codes: Array) -> Array:
    """Return class names as text: a file without labels may read them as another type."""
    return np.array([*map(str, names), ""])[codes]


def _columns(
    one: Predictions, other: Predictions, score: "str | ScoreState | None"
) -> tuple[FloatArray, FloatArray]:
    """Return what both data sets say of each sample, shape (n, d) and (m, d)."""
    confidences = [
        _finite(compute_confidence(data, score, where=where).values)
        for data, where in ((one, "calibration"), (other, "the data to come"))
    ]
    blocks = [[values[:, None]] for values in confidences]
    if one.features is not None and other.features is not None:
        for own, data in zip(blocks, (one, other), strict=True):
            own.append(np.asarray(data.features, dtype=np.float64))
    elif one.class_scores is not None and other.class_scores is not None:
        for own, scores in zip(blocks, (one.class_scores, other.class_scores), strict=True):
            own.append(np.maximum(log_probabilities(scores), _LEAST))
    here, there = (np.concatenate(own, axis=1) for own in blocks)
    return here, there


def _finite(values: Array) -> FloatArray:
    out: FloatArray = np.clip(values.astype(np.float64), -1e12, 1e12)
    return out


def _classes_said(found: LabelShift) -> str:
    """Write the ratios of the classes that changed most."""
    far = np.argsort(-np.abs(np.log(np.maximum(found.ratio, 1e-3))), kind="stable")[:8]
    parts = [
        f"{found.classes[i]!s} {found.ratio[i]:.2g} (standard error {found.standard_error[i]:.2g})"
        for i in far
    ]
    more = " and others" if len(found.classes) > len(parts) else ""
    return ", ".join(parts) + more
