"""The catalogue of populations, which tests and studies iterate over."""

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

#: All named populations, simplest first. `rank_scores` requires a function and has no name.
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

    Answers: how do I obtain a population with this name and these parameters?

    Parameters
    ----------
    name : str
        A name of `POPULATIONS`.
    **options
        Parameters of the population; ``POPULATIONS[name].options`` lists them with their defaults.

    Returns
    -------
    Population
        The population.

    Raises
    ------
    UnknownNameError
        If there is no such population; the nearest name is suggested.
    InputError
        If the population has no such option, or a value is invalid.

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
