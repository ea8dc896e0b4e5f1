"""`Exposure`: test images of a trained classifier, one column of the benchmark's tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from abstain._foundation import checks
from abstain.errors import InputError
from abstain_bench.data.images import Images

#: Kinds of shift in the order of the tables, with their titles.
KINDS: Final = {
    "iid": "i.i.d.",
    "corruption": "corruption shift",
    "sub-class": "sub-class shift",
    "new-class": "semantic new-class shift",
    "far-new-class": "non-semantic new-class shift",
}


@dataclass(frozen=True)
class Exposure:
    """Images that a classifier is tested on, and their kind of shift.

    Attributes
    ----------
    name : str
        Name for scripts and tables.
    kind : {"iid", "corruption", "sub-class", "new-class", "far-new-class"}
        Kind of shift.
    load : callable
        Function that returns the images; images of no known class have the label -1.
    corruption : str
        Name of the corruption that is applied to the images, after a variation that is part of the
        task; empty for none.
    severity : int
        Severity of the corruption, 1 to 5; 0 without a corruption.
    is_corrupted : bool
        Whether `load` returns images that the authors of the data set corrupted. Otherwise our
        version of the corruption is applied.

    Raises
    ------
    InputError
        If the kind is unknown, corruption and severity are inconsistent, or `is_corrupted` is set
        without a corruption.

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
    is_corrupted: bool = False

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
        if self.is_corrupted and not self.corruption:
            raise InputError(
                f"the exposure {self.name!r} must have a corruption if `is_corrupted` is set"
            )

    @property
    def key(self) -> str:
        """Name for files, with the severity of a corruption, and "official" for official ones."""
        key = f"{self.name}-{self.severity}" if self.severity else self.name
        # Results for official and for our corruptions must have different keys.
        return f"{key}-official" if self.is_corrupted else key

    @property
    def title(self) -> str:
        """Name for people, with the severity of a corruption, and "official" for official ones."""
        title = f"{self.name} {self.severity}" if self.severity else self.name
        return f"{title} (official)" if self.is_corrupted else title
