"""Methods that look at what the last layer of a plain classifier sees."""

from typing import Any

from abstain.benchmark.methods._entry import Method
from abstain.benchmark.methods.scoring import OnTraining
from abstain.confidence import FITTED

# Features that are 0 for every training picture, as after a ReLU, leave no inverse without it.
_SHRUNK = (("shrinkage", "ledoit_wolf"),)


def _entry(
    kind: str, *options: tuple[str, Any], last_layer: bool = False, also: str = ""
) -> Method:
    known = FITTED[kind]
    return Method(
        kind.replace("_", "-"),
        known.title,
        known.source,
        "cross-entropy",
        frozenset({"features", "last-layer"} if last_layer else {"features"}),
        OnTraining(kind, last_layer, options),
        "train",
        f"{known.meaning}{also}",
    )


#: In the order of tables.
ENTRIES = (
    _entry("mahalanobis", *_SHRUNK, also=" (Ledoit-Wolf shrinkage)"),
    _entry("relative_mahalanobis", *_SHRUNK, also=" (Ledoit-Wolf shrinkage)"),
    _entry("knn"),
    _entry("vim", last_layer=True),
    _entry("react", last_layer=True),
)
