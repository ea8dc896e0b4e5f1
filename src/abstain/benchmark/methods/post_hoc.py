"""Methods that need the logits of a plain classifier, and no more."""

from abstain.benchmark.methods._entry import Method
from abstain.benchmark.methods.scoring import Named, OnValidation, Tempered
from abstain.confidence import FITTED, SCORES

_PLAIN = "cross-entropy"
_NONE: frozenset[str] = frozenset()
_GUO = "temperature: Guo et al. (2017), https://arxiv.org/abs/1706.04599"


def _named(name: str) -> Method:
    known = SCORES[name]
    return Method(
        name, known.title, known.source, _PLAIN, _NONE, Named(name), meaning=known.meaning
    )


def _tempered(name: str) -> Method:
    known = SCORES[name]
    return Method(
        f"temp-{name}",
        f"{known.title}, with a temperature",
        f"{known.source}; {_GUO}",
        _PLAIN,
        _NONE,
        Tempered(name),
        "validation",
        f"{known.meaning}; the logits divided by the most likely temperature",
    )


_NORM = FITTED["pnorm"]

#: In the order of tables.
ENTRIES = (
    *map(_named, ("msr", "mls", "pe")),
    *map(_tempered, ("msr", "mls")),
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
