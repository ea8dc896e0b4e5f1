"""`Corruption`: what the catalogue knows of a way to spoil pictures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: float32 of shape (n, channels, height, width), or a part of that.
Pictures: TypeAlias = NDArray[np.float32]

#: How many strengths each corruption has.
SEVERITIES = 5

Group = Literal["noise", "blur", "weather", "digital"]


@dataclass(frozen=True)
class Corruption:
    """A way to spoil pictures, in five strengths.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    group : {"noise", "blur", "weather", "digital"}
        What the table of results puts it under.
    meaning : str
        One plain sentence.
    constants : mapping of str to tuple of float
        For each constant its values at severities 1 to 5.
    apply : callable
        From float32 pictures (n, channels, height, width) in [0, 1], a generator and one value of
        each constant by its name, to spoiled pictures, which `corrupt` clips to [0, 1]. It leaves
        what it is given untouched. It calls one method of the generator once, with the pictures
        on the first axis, so that what a picture gets does not depend on those behind it.

    Examples
    --------
    >>> from abstain.benchmark.data.corruptions import CORRUPTIONS
    >>> fog = CORRUPTIONS["fog"]
    >>> fog.group, list(fog.constants)
    ('weather', ['opacity'])
    """

    name: str
    title: str
    group: Group
    meaning: str
    constants: Mapping[str, tuple[float, ...]]
    apply: Callable[..., Pictures]

    def at(self, severity: int) -> dict[str, float]:
        """Return the constants of a severity, from 1 to 5, by their names."""
        return {name: values[severity - 1] for name, values in self.constants.items()}
