"""Methods that need the logits of a plain classifier, and no more."""

from dataclasses import replace

from abstain.benchmark.methods._entry import Method
from abstain.benchmark.methods.scoring import Named, OnValidation, Tempered
from abstain.confidence import FITTED, SCORES

_PLAIN = "cross-entropy"
_NONE: frozenset[str] = frozenset()
_GUO = "temperature: Guo et al. (2017), https://arxiv.org/abs/1706.04599"
#: Who calls the largest probability of tempered logits "TEMP-MLS".
TRAUB = "Traub et al. (2024), https://arxiv.org/abs/2407.01032, A.2"


def _named(name: str) -> Method:
    known = SCORES[name]
    return Method(
        name, known.title, known.source, _PLAIN, _NONE, Named(name), meaning=known.meaning
    )


def renamed(method: Method, name: str, title: str, source: str) -> Method:
    """Return a method under another name."""
    meaning = f"`{method.name}` by another name: {method.meaning}"
    return replace(
        method, name=name, title=title, source=source, meaning=meaning, same_as=method.name
    )


_MSR = SCORES["msr"]
_TEMPERED = Method(
    "temp-msr",
    f"{_MSR.title}, with a temperature",
    f"{_MSR.source}; {_GUO}",
    _PLAIN,
    _NONE,
    Tempered("msr"),
    "validation",
    f"{_MSR.meaning}; the logits divided by the most likely temperature",
)
_NORM = FITTED["pnorm"]

#: In the order of tables.
ENTRIES = (
    *map(_named, ("msr", "mls", "pe")),
    _TEMPERED,
    renamed(_TEMPERED, "temp-mls", "TEMP-MLS of FD-Shifts", f"{TRAUB}; {_GUO}"),
    *map(_named, ("energy", "margin", "gini")),
    Method(
        "pnorm",
        _NORM.title,
        _NORM.source,
        _PLAIN,
        _NONE,
        OnValidation("pnorm"),
        "validation",
        f"{_NORM.meaning}; chosen by AUGRC",
    ),
    _named("gen"),
)
