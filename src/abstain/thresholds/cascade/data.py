"""What a cascade is chosen and checked on: the same samples as every stage sees them."""

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
        Of the stages.
    confidences : tuple of ndarray of shape (n,)
        One for each stage, in their order.
    losses : tuple of ndarray of shape (n,), or None
        One for each stage and the person's last, in [0, 1]; None where it is not known what is
        right.
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
        """Validate arrays.

        Parameters
        ----------
        names : sequence of str
            Of the stages.
        confidences, losses : sequence of array of shape (n,)
            One for each stage. Without losses, only who answers can be told.
        person : array of shape (n,), or float
            The loss of each answer of the person, or their mean.

        Returns
        -------
        CascadeData
            In double precision.
        """
        if not names:
            raise MissingInputError("`stages` is empty; at least one is needed")
        length: int | None = None
        found = []
        for name, given in zip(names, confidences, strict=True):
            values = checks.confidence(given, f"confidence of {name!r}", length=length)
            found.append(np.asarray(values))
            length = values.size
        n = found[0].size
        if losses is None:
            return cls(tuple(names), tuple(found), None)
        own = [_losses(x, n, name) for name, x in zip(names, losses, strict=True)]
        if isinstance(person, int | float):
            rate = checks.fraction(person, "person_error")
            own.append(np.full(n, rate))
        else:
            own.append(_losses(person, n, PERSON))
        return cls(tuple(names), tuple(found), tuple(own))

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.confidences[0].size)

    @property
    def required_losses(self) -> tuple[FloatArray, ...]:
        """The losses; refused where there are none."""
        if self.losses is None:
            raise MissingInputError(
                "a cascade is chosen on samples of which it is known what is right; give losses"
            )
        return self.losses

    @property
    def is_binary(self) -> bool:
        """Whether every loss is 0 or 1."""
        return all(bool(((x == 0) | (x == 1)).all()) for x in self.required_losses)

    def subset(self, rows: Array) -> "CascadeData":
        """Return some of the samples."""
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
