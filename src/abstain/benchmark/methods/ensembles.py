"""Methods of several networks that were trained alike, from different seeds.

`abstain.benchmark.outputs.ensemble_outputs` puts together what they say; each network is then what
a pass with dropout is to the methods of one network.
"""

from abstain.benchmark.methods._entry import Method
from abstain.benchmark.methods.scoring import Named

_SOURCE = "Lakshminarayanan et al. (2017), https://arxiv.org/abs/1612.01474"
_NEEDS = frozenset({"ensemble"})

#: Methods of deep ensembles.
ENTRIES = tuple(
    Method(
        f"ens-{short}",
        f"Ensemble, {title}",
        source,
        "cross-entropy",
        _NEEDS,
        Named(f"mcd_{short}", samples=True),
        meaning=meaning,
    )
    for short, title, source, meaning in (
        ("msr", "maximum softmax response", _SOURCE, "log-odds of the largest mean probability"),
        ("pe", "predictive entropy", _SOURCE, "minus the entropy of the mean probabilities"),
        (
            "mi",
            "mutual information",
            f"{_SOURCE}; Houlsby et al. (2011), https://arxiv.org/abs/1112.5745",
            "whether the networks agree: minus their mutual information with the class",
        ),
    )
)
