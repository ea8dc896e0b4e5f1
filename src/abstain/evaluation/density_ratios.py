"""Estimate density ratios for a decision rule from unlabeled predictions (`estimate_ratios`)."""

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
from abstain.predictions.outputs import ClassScores
from abstain.shift import DensityRatios, LabelShift, fit_ratios, label_shift
from abstain.typing import Array, FloatArray, Rng

#: Lower bound of the log-probabilities that the domain classifier uses as features.
_MIN_LOG_PROBABILITY: Final = -30.0
#: Below this ratio of the effective sample size to the sample size, `notes` contains a warning.
_MIN_RELATIVE_SIZE: Final = 0.1
#: Above this AUROC of the domain classifier, `notes` warns that the data sets hardly overlap.
_MAX_AUROC: Final = 0.95

Shift = Literal["covariate", "label"]


@dataclass(frozen=True, eq=False)
class EstimatedRatios:
    """Density ratios of calibration predictions, with diagnostics.

    Attributes
    ----------
    ratios : DensityRatios
        Density ratio of each calibration sample. Pass it to `set_threshold` as `ratio`.
    shift : {"covariate", "label"}
        The assumed shift. "covariate" is a shift of the input distribution, and "label" is a shift
        of the class distribution.
    auroc : float or None
        AUROC of the classifier that separates the two data sets. The AUROC is 0.5 if the data sets
        cannot be separated. For a label shift, `auroc` is None.
    classes : LabelShift or None
        The ratio of each class with its standard error. For a covariate shift, `classes` is None.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> confidence, deployed_confidence = rng.beta(4, 1, 1000), rng.beta(3, 1, 1000)
    >>> calibration = ab.Predictions(confidence=confidence, loss=rng.random(1000) > confidence)
    >>> deployed = ab.Predictions(confidence=deployed_confidence, unlabeled=True)
    >>> estimate = ab.estimate_ratios(calibration, deployed)
    >>> estimate.shift, estimate.ratios.n, estimate.ratios.effective_size > 800
    ('covariate', 1000, True)
    """

    ratios: DensityRatios
    shift: Shift
    auroc: float | None = None
    classes: LabelShift | None = None

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the reliability of a decision rule that uses these ratios."""
        summary = Note("ratios", f"Of the calibration data {self.ratios}.")
        return (summary, *self._class_notes(), *self._reliability_warnings())

    def _class_notes(self) -> Iterator[Note]:
        """Yield the class ratios, and a warning if a label shift is implausible."""
        if self.classes is None:
            return
        yield Note("class_ratios", f"Ratios of the classes: {_format_class_ratios(self.classes)}.")
        if self.classes.doubtful:
            names = ", ".join(map(repr, self.classes.doubtful[:8]))
            yield Note.warning(
                "class_ratios",
                f"The estimated ratio of {names} is significantly below 0, so the shift is not "
                "only in the class frequencies. Try a covariate shift.",
            )

    def _reliability_warnings(self) -> Iterator[Note]:
        """Yield warnings if the data sets hardly overlap or the effective sample size is small."""
        if self.auroc is not None and self.auroc > _MAX_AUROC:
            yield Note.warning(
                "overlap",
                "The calibration data and the data in use hardly overlap: a classifier separates "
                f"them with an AUROC of {self.auroc:.3f}. Density ratios cannot correct this.",
            )
        if self.ratios.effective_size < _MIN_RELATIVE_SIZE * self.ratios.n:
            yield Note.warning(
                "worth",
                f"The effective size of the {self.ratios.n} calibration samples is "
                f"{self.ratios.effective_size:.0f}: a few samples determine the result. Clipped "
                "ratios have a larger effective size, but the guarantee is then for another "
                "population.",
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
    """Estimate the density ratio of deployed to calibration data at each calibration sample.

    Answers: how representative are my calibration data for unlabeled data from deployment?

    Parameters
    ----------
    predictions : Predictions
        The calibration data.
    deployed : Predictions
        Predictions from deployment. The function ignores their labels.
    shift : {"covariate", "label"}, default="covariate"
        The assumed shift. With "covariate", the input distribution changes, but similar inputs keep
        the same error rate (see `abstain.shift.fit_ratios`). With "label", the class distribution
        changes, but the input distribution within each class does not (see
        `abstain.shift.label_shift`).
    score : str or fitted score, optional
        The confidence score of the rule, for a covariate shift. The default is the same score as
        in `set_threshold`.
    clip : float, optional
        Upper bound of the ratios, in multiples of their mean (`abstain.shift.density_ratios`).
    rng : int, Generator or None, default=0
        Seed of the cross-validation folds and of the resamples.

    Returns
    -------
    EstimatedRatios
        The density ratios of the calibration samples, with diagnostics.

    Raises
    ------
    InputError
        If `shift` is unknown, or `clip` is passed for a label shift.
    MissingInputError
        If the data sets have no input columns in common. For a label shift, this error is also
        raised if a data set has no predicted classes.
    ShapeError, DomainError
        If the functions of `abstain.shift` reject the inputs.

    Notes
    -----
    For a covariate shift, a classifier learns to distinguish the two data sets. The inputs of the
    classifier are the confidence and the features, or the logarithms of the class probabilities if
    there are no features. Additional inputs can reveal additional kinds of shift, but increase the
    variance of the ratios.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> labels, prediction = np.repeat(["a", "b"], 200), np.tile(["a", "a", "a", "b"], 100)
    >>> prediction = np.where(labels == "b", np.where(prediction == "a", "b", "a"), prediction)
    >>> calibration = ab.Predictions(prediction=prediction, labels=labels)
    >>> deployed = ab.Predictions(prediction=np.repeat(["a", "b"], [100, 200]), unlabeled=True)
    >>> estimate = ab.estimate_ratios(calibration, deployed, shift="label")
    >>> estimate.classes.classes, estimate.classes.ratio.round(2).tolist()
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
    features, deployed_features = _columns(predictions, deployed, score)
    fitted = fit_ratios(features, deployed_features, clip=clip, rng=rng)
    return EstimatedRatios(fitted.ratios, shift, auroc=fitted.auroc)


def _label_shift(predictions: Predictions, deployed: Predictions, rng: Rng) -> LabelShift:
    """Check that both data sets have classes, and estimate the ratio of each class."""
    for name, data in (("predictions", predictions), ("deployed", deployed)):
        if not data.has_prediction:
            raise MissingInputError(
                f"a label shift is seen in predicted classes, and `{name}` hold none"
            )
    labels = _texts(predictions.class_names, predictions.label_codes)
    if (predictions.label_codes < 0).any():
        raise InputError(
            "a label shift is about known classes; leave out the samples of no known class from "
            "the calibration data"
        )
    predicted = _texts(predictions.class_names, predictions.prediction_codes)
    return label_shift(
        labels, predicted, _texts(deployed.class_names, deployed.prediction_codes), rng=rng
    )


def _texts(names: tuple[Hashable, ...], codes: Array) -> Array:
    """Convert class names to text, because files may store the same names with different types."""
    return np.array([*map(str, names), ""])[codes]


def _columns(
    predictions: Predictions, deployed: Predictions, score: "str | ScoreState | None"
) -> tuple[FloatArray, FloatArray]:
    """Return the features of the domain classifier for both data sets, shapes (n, d) and (m, d)."""
    confidence = compute_confidence(predictions, score, where="calibration")
    deployed_confidence = compute_confidence(deployed, score, where="the data to come")
    columns = [_clipped_column(confidence.values)]
    deployed_columns = [_clipped_column(deployed_confidence.values)]
    if predictions.features is not None and deployed.features is not None:
        columns.append(np.asarray(predictions.features, dtype=np.float64))
        deployed_columns.append(np.asarray(deployed.features, dtype=np.float64))
    elif predictions.class_scores is not None and deployed.class_scores is not None:
        columns.append(_log_probability_columns(predictions.class_scores))
        deployed_columns.append(_log_probability_columns(deployed.class_scores))
    return np.concatenate(columns, axis=1), np.concatenate(deployed_columns, axis=1)


def _clipped_column(confidence: Array) -> FloatArray:
    """Return finite confidences as a column of shape (n, 1)."""
    clipped: FloatArray = np.clip(confidence.astype(np.float64), -1e12, 1e12)
    return clipped[:, None]


def _log_probability_columns(class_scores: ClassScores) -> FloatArray:
    """Return the logarithms of the class probabilities, clipped from below."""
    return np.maximum(log_probabilities(class_scores), _MIN_LOG_PROBABILITY)


def _format_class_ratios(shift: LabelShift) -> str:
    """Return a text that lists the classes with the largest changes of their frequencies."""
    largest = np.argsort(-np.abs(np.log(np.maximum(shift.ratio, 1e-3))), kind="stable")[:8]
    texts = [
        f"{shift.classes[i]!s} {shift.ratio[i]:.2g} (standard error {shift.standard_error[i]:.2g})"
        for i in largest
    ]
    more = " and others" if len(shift.classes) > len(texts) else ""
    return ", ".join(texts) + more
