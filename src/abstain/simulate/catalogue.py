"""The catalogue of populations: made by name, with options; what tests and studies run over."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue
from abstain.errors import InputError, suggest
from abstain.simulate.beta_scores import beta_scores
from abstain.simulate.by_rank import oracle_order, random_order, two_sele_counterexample
from abstain.simulate.continuous_loss import continuous_loss
from abstain.simulate.gaussians import gaussian_scores, two_class_logits, two_gaussians
from abstain.simulate.population import Population
from abstain.simulate.tied import cut, discrete_scores, saturate


@dataclass(frozen=True)
class PopulationEntry:
    """A population of the catalogue.

    Attributes
    ----------
    name : str
        What `make` takes.
    title : str
        What a table prints.
    meaning : str
        What it models, in one sentence.
    build : callable
        From keyword options to the population; `options` lists them.

    Examples
    --------
    >>> from abstain import simulate
    >>> entry = simulate.POPULATIONS["two-gaussians"]
    >>> entry.options
    {'risk': 0.1, 'separation': 1.6}
    >>> entry.make(risk=0.2).risk
    0.2
    """

    name: str
    title: str
    meaning: str
    build: Callable[..., Population]

    @property
    def options(self) -> dict[str, Any]:
        """The options and their defaults."""
        found = inspect.signature(self.build).parameters
        return {name: parameter.default for name, parameter in found.items()}

    def make(self, **options: Any) -> Population:
        """Build the population; `InputError` for an option that it does not have.

        Parameters
        ----------
        **options
            Of `options`; the others keep their defaults.

        Returns
        -------
        Population
            The population.
        """
        for name in options:
            if name not in self.options:
                known = ", ".join(f"`{option}`" for option in self.options)
                near = suggest(name, self.options)
                msg = f"the population {self.name!r} has no option `{name}`.{near} It has {known}."
                raise InputError(msg)
        return self.build(**options)


def _cut_gaussians(risk: float = 0.1, separation: float = 1.6, *, levels: int = 20) -> Population:
    """Cut the scores into levels, the highest of which holds nearly half of the successes."""
    base = two_gaussians(risk, separation)
    if checks.positive_int(levels, "levels") < 2:
        msg = f"`levels` must be an integer of at least 2; got {levels!r}"
        raise InputError(msg)
    highest = max(float(separation), 0.0) + 0.1
    return cut(base, np.linspace(highest, -1.5, levels - 1)[::-1])


def _saturated_gaussians(
    risk: float = 0.1, separation: float = 1.6, *, share: float = 0.45
) -> Population:
    return saturate(two_gaussians(risk, separation), share)


#: Every population with a name, simplest first. `rank_scores` takes a function and has none.
POPULATIONS: Catalogue[PopulationEntry] = Catalogue("population")
for _entry in (
    PopulationEntry(
        "two-gaussians",
        "two Gaussians",
        "Normal scores; those of the successes lie higher by a distance (binormal).",
        two_gaussians,
    ),
    PopulationEntry(
        "two-gaussians-cut",
        "two Gaussians, cut into levels",
        "The same scores, coarse: every confidence is tied.",
        _cut_gaussians,
    ),
    PopulationEntry(
        "two-gaussians-saturated",
        "two Gaussians, saturated",
        "The same scores, of which the most confident share is tied, as softmax outputs of 1.0.",
        _saturated_gaussians,
    ),
    PopulationEntry(
        "gaussian-scores",
        "Gaussian scores",
        "Normal scores; the failure probability falls with the score as a probit or logistic.",
        gaussian_scores,
    ),
    PopulationEntry(
        "uniform-scores",
        "uniform probabilities",
        "Calibrated confidences, uniform on [0, 1]: AURC 1/4, AUGRC 1/6.",
        partial(beta_scores, a=1.0, b=1.0),
    ),
    PopulationEntry(
        "beta-scores",
        "beta probabilities",
        "Calibrated confidences: of those of 0.8, 80 % are right.",
        beta_scores,
    ),
    PopulationEntry(
        "overconfident",
        "overconfident probabilities",
        "Confidences c that are right with probability c²: less often than they claim.",
        partial(beta_scores, power=2.0),
    ),
    PopulationEntry(
        "underconfident",
        "underconfident probabilities",
        "Confidences c that are right with probability sqrt(c): more often than they claim.",
        partial(beta_scores, power=0.5),
    ),
    PopulationEntry(
        "two-class-logits",
        "two-class softmax",
        "Top probability of a classifier of two Gaussian classes, tempered.",
        two_class_logits,
    ),
    PopulationEntry(
        "discrete-scores",
        "discrete scores",
        "A few distinct confidences, each with its mass and its risk.",
        discrete_scores,
    ),
    PopulationEntry(
        "continuous-loss",
        "continuous losses",
        "Gamma or lognormal losses with a mean that falls with the confidence.",
        continuous_loss,
    ),
    PopulationEntry(
        "random-order",
        "random order",
        "The confidence says nothing about the loss: the far end.",
        random_order,
    ),
    PopulationEntry(
        "oracle-order",
        "perfect order",
        "Every failure lies below every success: the near end.",
        oracle_order,
    ),
    PopulationEntry(
        "two-sele-counterexample",
        "failures among the most confident",
        "The AURC exceeds 2 x SELE, which bounds it only where risk falls with confidence.",
        two_sele_counterexample,
    ),
):
    POPULATIONS.add(_entry)


def make(name: str, **options: Any) -> Population:
    """Make a population of the catalogue by name.

    Answers: how do I get the population of that name, with these parameters?

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
        If the population has no such option, or a value breaks one of its rules.

    Examples
    --------
    >>> from abstain import simulate
    >>> simulate.make("uniform-scores").aurc()
    0.25
    >>> simulate.make("two-gaussians", risk=0.2).risk
    0.2
    """
    if name == "logits":
        msg = "'logits' has class scores, not one confidence; make it by `ab.simulate.logits(...)`"
        raise InputError(msg)
    return POPULATIONS[name].make(**options)
