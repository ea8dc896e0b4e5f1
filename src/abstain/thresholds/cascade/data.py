"""Calibration and test data of a cascade: confidences and losses of every stage."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError, MissingInputError
from abstain.thresholds.cascade.stage import PERSON
from abstain.typing import AnyArray, Array, FloatArray


@dataclass(frozen=True, eq=False)
class CascadeData:
    """Confidences and losses of n samples under each stage.

    Attributes
    ----------
    names : tuple of str
        Names of the stages.
    confidences : tuple of ndarray of shape (n,)
        One for each stage, in their order.
    losses : tuple of ndarray of shape (n,), or None
        One for each stage, and that of the person last, in [0, 1]; None without labels.
    """

    names: tuple[str, ...]
    confidences: tuple[Array, ...]
    losses: tuple[FloatArray, ...] | None

    @classmethod
    def from_arrays(
        cls,
        names: Sequence[str],
        confidences: Sequence[AnyArray],
        losses: Sequence[AnyArray] | None,
        person: AnyArray | float = 0.0,
    ) -> "CascadeData":
        """Build the data from arrays, with validation.

        Parameters
        ----------
        names : sequence of str
            Names of the stages.
        confidences, losses : sequence of array of shape (n,)
            One for each stage. Without losses, only the answering stage can be determined.
        person : array of shape (n,), or float
            Loss of each answer of the person, or the mean loss.

        Returns
        -------
        CascadeData
            The data in double precision.
        """
        if not names:
            raise MissingInputError("`stages` is empty; at least one is needed")
        length: int | None = None
        validated = []
        for name, confidence in zip(names, confidences, strict=True):
            values = checks.confidence(confidence, f"confidence of {name!r}", length=length)
            validated.append(np.asarray(values))
            length = values.size
        n = validated[0].size
        if losses is None:
            return cls(tuple(names), tuple(validated), None)
        all_losses = [_losses(x, n, name) for name, x in zip(names, losses, strict=True)]
        if isinstance(person, int | float):
            rate = checks.fraction(person, "person_error")
            all_losses.append(np.full(n, rate))
        else:
            all_losses.append(_losses(person, n, PERSON))
        return cls(tuple(names), tuple(validated), tuple(all_losses))

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.confidences[0].size)

    @property
    def required_losses(self) -> tuple[FloatArray, ...]:
        """The losses; MissingInputError if there are none."""
        if self.losses is None:
            raise MissingInputError("a cascade is selected on labeled samples; pass losses")
        return self.losses

    @property
    def is_binary(self) -> bool:
        """Whether every loss is 0 or 1."""
        return all(bool(((x == 0) | (x == 1)).all()) for x in self.required_losses)

    def subset(self, rows: Array) -> "CascadeData":
        """Return a subset of the samples."""
        losses = None if self.losses is None else tuple(x[rows] for x in self.losses)
        return replace(self, confidences=tuple(x[rows] for x in self.confidences), losses=losses)

    def losses_of_answers(self, answered: Array) -> FloatArray:
        """Return the loss of each sample by the stage that answered it."""
        out: FloatArray = np.choose(answered, self.required_losses)
        return out


def _losses(x: AnyArray, n: int, name: str) -> FloatArray:
    try:
        values = checks.loss(x, length=n)
        checks.unit_interval(values, "loss", hint="Divide by the largest loss possible.")
    except InputError as error:
        raise type(error)(f"stage {name!r}: {error}") from error
    return np.asarray(values, dtype=np.float64)
