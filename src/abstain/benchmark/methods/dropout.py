"""Methods that let a plain classifier answer several times, with dropout on."""

from abstain.benchmark.methods._entry import Method
from abstain.benchmark.methods.scoring import Named
from abstain.confidence import SCORES

_GAL = "dropout: Gal & Ghahramani (2016), https://arxiv.org/abs/1506.02142"


def _entry(short: str) -> Method:
    known = SCORES[f"mcd_{short}"]
    return Method(
        f"mcd-{short}",
        known.title if "Monte-Carlo" in known.title else f"Monte-Carlo {known.title.lower()}",
        f"{known.source}; {_GAL}",
        "cross-entropy",
        frozenset({"samples"}),
        Named(known.name, samples=True),
        meaning=known.meaning,
    )


#: In the order of tables.
ENTRIES = tuple(map(_entry, ("msr", "mls", "pe", "ee", "mi")))
