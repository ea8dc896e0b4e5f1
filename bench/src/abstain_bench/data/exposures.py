"""`Exposure`: what a trained classifier is exposed to, one column of the benchmark's tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from abstain._foundation import checks
from abstain.errors import InputError
from abstain_bench.data.images import Images

#: Where failures come from, in the order of the tables, and what people read.
KINDS: Final = {
    "iid": "i.i.d.",
    "corruption": "corruption shift",
    "sub-class": "sub-class shift",
    "new-class": "semantic new-class shift",
    "far-new-class": "non-semantic new-class shift",
}


@dataclass(frozen=True)
class Exposure:
    """Pictures that a classifier is tested on, and why it may fail on them.

    Attributes
    ----------
    name : str
        The name scripts and tables use.
    kind : {"iid", "corruption", "sub-class", "new-class", "far-new-class"}
        Where failures come from.
    load : callable
        Returns the images; those of no known class have the label -1.
    corruption : str
        The name of a corruption that the images get, after the variation that belongs to the
        task; empty for none.
    severity : int
        Of the corruption, 1 to 5; 0 without one.
    ready : bool
        Whether `load` returns images that are corrupted already, by the authors of the data set;
        otherwise our own version of the corruption is applied to them.

    Raises
    ------
    InputError
        If the kind is unknown, corruption and severity do not go together, or images are ready
        that have no corruption.

    Examples
    --------
    >>> from abstain_bench.data import Exposure, textures
    >>> far = Exposure("textures", "far-new-class", lambda: textures(20))
    >>> far.title, far.load().n
    ('textures', 20)
    """

    name: str
    kind: str
    load: Callable[[], Images]
    corruption: str = ""
    severity: int = 0
    ready: bool = False

    def __post_init__(self) -> None:
        checks.one_of(self.kind, "kind", tuple(KINDS))
        if bool(self.corruption) != (self.kind == "corruption") or bool(self.severity) != bool(
            self.corruption
        ):
            raise InputError(
                f"the exposure {self.name!r} must have a corruption with a severity exactly when "
                f"its kind is 'corruption'; got {self.kind!r}, {self.corruption!r} and "
                f"{self.severity!r}"
            )
        if self.ready and not self.corruption:
            raise InputError(f"the exposure {self.name!r} has no corruption that could be `ready`")

    @property
    def key(self) -> str:
        """The name files use, the severity of a corruption in it, and whose corruption it is."""
        told = f"{self.name}-{self.severity}" if self.severity else self.name
        # Results on other images must not be taken for those.
        return f"{told}-official" if self.ready else told

    @property
    def title(self) -> str:
        """The name people read: with the severity of a corruption, and whose it is."""
        told = f"{self.name} {self.severity}" if self.severity else self.name
        return f"{told} (official)" if self.ready else told

    @property
    def new_classes(self) -> bool:
        """Whether its images are of no known class, so that accepting one is a failure."""
        return self.kind in {"new-class", "far-new-class"}
