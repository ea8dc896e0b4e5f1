"""Define the catalogue of populations, and create populations by name."""

from typing import Any

from abstain._foundation.catalogue import Catalogue
from abstain.errors import InputError
from abstain.simulate.beta_scores import BETA_SCORES, OVERCONFIDENT, UNDERCONFIDENT, UNIFORM_SCORES
from abstain.simulate.blocks import BLOCKS
from abstain.simulate.by_rank import ORACLE_ORDER, RANDOM_ORDER, TWO_SELE_COUNTEREXAMPLE
from abstain.simulate.continuous_loss import CONTINUOUS_LOSS
from abstain.simulate.gaussians import GAUSSIAN_SCORES, TWO_CLASS_LOGITS, TWO_GAUSSIANS
from abstain.simulate.population import Population, PopulationEntry
from abstain.simulate.tied import DISCRETE_SCORES, TWO_GAUSSIANS_CUT, TWO_GAUSSIANS_SATURATED

#: All populations with a name, simplest first. `rank_scores` needs a function, so it has no name.
POPULATIONS: Catalogue[PopulationEntry] = Catalogue("population")
for _entry in (
    TWO_GAUSSIANS,
    TWO_GAUSSIANS_CUT,
    TWO_GAUSSIANS_SATURATED,
    GAUSSIAN_SCORES,
    UNIFORM_SCORES,
    BETA_SCORES,
    OVERCONFIDENT,
    UNDERCONFIDENT,
    TWO_CLASS_LOGITS,
    DISCRETE_SCORES,
    CONTINUOUS_LOSS,
    RANDOM_ORDER,
    ORACLE_ORDER,
    TWO_SELE_COUNTEREXAMPLE,
    *BLOCKS,
):
    POPULATIONS.add(_entry)


def make(name: str, **options: Any) -> Population:
    """Create a population of the catalogue by name.

    Parameters
    ----------
    name : str
        A name in `POPULATIONS`.
    **options
        Parameters of the population. ``POPULATIONS[name].options`` contains the default values.

    Returns
    -------
    Population
        The population with these parameters.

    Raises
    ------
    UnknownNameError
        If no population has this name. The message suggests a similar name.
    InputError
        If the population has no such parameter, or if a value is invalid.

    Examples
    --------
    >>> from abstain import simulate
    >>> simulate.make("uniform-scores").aurc()
    0.25
    >>> simulate.make("two-gaussians", risk=0.2).risk
    0.2
    """
    if name == "logits":
        raise InputError(
            "'logits' has class scores instead of a confidence; use `ab.simulate.logits(...)`"
        )
    return POPULATIONS[name].make(**options)
