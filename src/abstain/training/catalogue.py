"""Define the catalogue of training objectives, and create objectives by name."""

from typing import Any

from abstain._foundation.catalogue import Catalogue
from abstain.training.abstention import DEEP_GAMBLERS, SELF_ADAPTIVE
from abstain.training.branches import CONFIDNET, DEVRIES, SELECTIVENET
from abstain.training.classifiers import CROSS_ENTROPY, JOINT, RANK_WEIGHTED
from abstain.training.confidence_weighted import CONFIDENCE_WEIGHTED
from abstain.training.kind import ObjectiveKind
from abstain.training.objective import Objective
from abstain.typing import Rng

#: All objectives by name.
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
    """Create an objective by its name.

    An objective defines a loss, a network head and a confidence score.

    Parameters
    ----------
    name : str
        A name in `OBJECTIVES`.
    rng : int, numpy.random.Generator or None
        As in `Objective`.
    **options : dict
        Options of the objective. See ``OBJECTIVES[name].options``.

    Returns
    -------
    Objective
        The objective in its first phase.

    Raises
    ------
    UnknownNameError
        If no objective has this name, or if the objective has no such option. The message suggests
        a similar name.
    InputError
        If the value of an option is invalid.

    See Also
    --------
    Objective : Base class of objectives.

    Examples
    --------
    >>> from abstain import training
    >>> objective = training.make("deep-gamblers", reward=3.0, rng=0)
    >>> objective.reward, [phase.name for phase in objective.phases]
    (3.0, ['warm-up', 'gamble'])
    """
    return OBJECTIVES[name].make(rng=rng, **options)
