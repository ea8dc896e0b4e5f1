"""Methods of networks that were trained to know when they are wrong."""

from abstain.benchmark.methods._entry import Method
from abstain.benchmark.methods.post_hoc import TRAUB, renamed
from abstain.benchmark.methods.scoring import Named, Tempered, own, own_mean
from abstain.confidence import SCORES

_CORBIERE = "Corbière et al. (2019), https://arxiv.org/abs/1910.04851"
_LIU = "Liu et al. (2019), https://arxiv.org/abs/1907.00208"
_DEVRIES = "DeVries & Taylor (2018), https://arxiv.org/abs/1802.04865"
_JAEGER = "Jaeger et al. (2023), https://arxiv.org/abs/2211.15259"
_OWN = frozenset({"own"})
_GAMBLERS = "deep-gamblers"
_RENORMALIZED = "of the classes without abstention"


def _gamblers(name: str, title: str) -> Method:
    known = SCORES[name]
    return Method(
        f"dg-{name.replace('_', '-')}",
        f"DeepGamblers, {title}",
        f"{_LIU}; {_JAEGER}",
        _GAMBLERS,
        frozenset({"samples"} if name.startswith("mcd_") else ()),
        Named(name, samples=name.startswith("mcd_")),
        meaning=f"{known.meaning}; {_RENORMALIZED}",
    )


_TEMPERED = Method(
    "dg-temp-msr",
    "DeepGamblers, maximum softmax response, with a temperature",
    f"{_LIU}; {_JAEGER}",
    _GAMBLERS,
    frozenset(),
    Tempered("msr"),
    "validation",
    f"{SCORES['msr'].meaning}; {_RENORMALIZED}, divided by the most likely temperature",
)

#: In the order of tables.
ENTRIES = (
    Method(
        "confidnet",
        "ConfidNet",
        _CORBIERE,
        "confidnet",
        _OWN,
        own,
        meaning="the learned probability of the true class, as log-odds",
    ),
    Method(
        "mcd-confidnet",
        "Monte-Carlo ConfidNet",
        f"{_CORBIERE}; {_JAEGER} (in the code only: tcp_mcd)",
        "confidnet",
        _OWN | {"samples"},
        own_mean,
        meaning="the mean of that probability over passes with dropout on, as log-odds",
    ),
    Method(
        "dg-res",
        "DeepGamblers, reservation score",
        _LIU,
        _GAMBLERS,
        _OWN,
        own,
        meaning="the probability of not abstaining, as log-odds",
    ),
    _gamblers("msr", "maximum softmax response"),
    _gamblers("pe", "predictive entropy"),
    _gamblers("mcd_msr", "Monte-Carlo maximum softmax response"),
    _TEMPERED,
    renamed(_TEMPERED, "dg-temp-mls", "DG-TEMP-MLS of FD-Shifts", f"{_LIU}; {TRAUB}"),
    Method(
        "devries",
        "DeVries & Taylor",
        _DEVRIES,
        "devries",
        _OWN,
        own,
        meaning="the output of the confidence branch, as log-odds",
    ),
)
