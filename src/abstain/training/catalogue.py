"""The catalogue of objectives, read by the benchmark, the docs and the tests; and `make`."""

from typing import Any

from abstain._foundation.catalogue import Catalogue
from abstain.training.abstention import DEEP_GAMBLERS, SELF_ADAPTIVE
from abstain.training.branches import CONFIDNET, DEVRIES, SELECTIVENET
from abstain.training.classifiers import CROSS_ENTROPY, JOINT, RANK_WEIGHTED
from abstain.training.confidence_weighted import CONFIDENCE_WEIGHTED
from abstain.training.kind import ObjectiveKind
from abstain.training.objective import Objective
from abstain.typing import Rng

#: Every objective, by name.
OBJECTIVES: Catalogue[ObjectiveKind] = Catalogue("objective")

for _kind in (
    CROSS_ENTROPY,
    RANK_WEIGHTED,
    JOINT,
    DEEP_GAMBLERS,
    CONFIDNET,
    DEVRIES,
    SELECTIVENET,
    SELF_ADAPTIVE,
    CONFIDENCE_WEIGHTED,
):
    OBJECTIVES.add(_kind)


def make(name: str, *, rng: Rng = None, **options: Any) -> Objective:
    """Make an objective by its name.

    Answers: what do I minimize, with which head, to get a classifier that knows when it is wrong?

    Parameters
    ----------
    name : str
        A name in `OBJECTIVES`.
    rng : int, numpy.random.Generator or None
        As in `Objective`.
    **options : dict
        Those of the objective, see ``OBJECTIVES[name].options``.

    Returns
    -------
    Objective
        In its first phase.

    Raises
    ------
    UnknownNameError
        There is no such objective, or it has no such option; the nearest name is suggested.
    InputError
        An option has a value that is not allowed.

    See Also
    --------
    Objective : What a training loop does with it.

    Examples
    --------
    >>> from abstain import training
    >>> objective = training.make("deep-gamblers", reward=3.0, rng=0)
    >>> objective.reward, [phase.name for phase in objective.phases]
    (3.0, ['warm-up', 'gamble'])
    """
    return OBJECTIVES[name].make(rng=rng, **options)
