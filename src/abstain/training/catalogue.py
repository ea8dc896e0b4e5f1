"""The catalogue of objectives, read by the benchmark, the docs and the tests; and `make`."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.training.abstention import REWARDS, DeepGamblers, SelfAdaptiveTraining
from abstain.training.branches import COVERAGES, ConfidNet, DeVries, SelectiveNet
from abstain.training.cross_entropy import CrossEntropy
from abstain.training.objective import WARM_UP, Objective
from abstain.training.rank_objective import Joint, RankWeighted
from abstain.typing import Rng

#: Phases whose share of the epochs is an option, with its name.
_SHARES: Final = {WARM_UP: "warm_up", "confidence": "confidence_share", "fine-tune": "fine_tune"}


@dataclass(frozen=True)
class ObjectiveKind:
    """What the catalogue knows of an objective.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    build : type
        The class; its keyword options are those of the objective.
    meaning : str
        One plain sentence.
    score : str
        What its confidence is, in words.
    source : str
        The paper.
    grid : mapping of str to tuple
        For each option that the literature chooses on validation data, the values it tries.
    """

    name: str
    title: str
    build: type[Objective]
    meaning: str
    score: str
    source: str
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """Names of the options, `rng` apart, with their defaults."""
        found = inspect.signature(self.build).parameters
        return {name: found[name].default for name in found if name != "rng"}

    @property
    def needs_index(self) -> bool:
        """Whether the loss must know which training samples a batch holds."""
        return self.build.needs_index

    @property
    def stages(self) -> dict[str, str]:
        """Names of the phases that can have epochs of their own, with the option of their share."""
        return {phase: option for phase, option in _SHARES.items() if option in self.options}

    def staged(self, epochs: int, stages: Mapping[str, int]) -> tuple[dict[str, float], int]:
        """Turn epochs of single phases into the shares that are options of the objective.

        Parameters
        ----------
        epochs : int
            Of the phase that is none of `stages`: the classifier's, or the main one.
        stages : mapping from str to int
            Epochs of phases by name, on top of these; empty where shares are left as they are.

        Returns
        -------
        options : dict
            The shares, for `make`.
        epochs : int
            Of all phases together.

        Raises
        ------
        InputError
            The objective has no such phase, a number is not positive, or a phase that is there by
            default is not named.

        Examples
        --------
        >>> from abstain.training import OBJECTIVES
        >>> kind = OBJECTIVES["confidnet"]
        >>> shares, epochs = kind.staged(250, {"confidence": 200, "fine-tune": 20})
        >>> plan = [phase.name for phase in kind.make(**shares).plan(epochs)]
        >>> epochs, [plan.count(name) for name in dict.fromkeys(plan)]
        (470, [250, 200, 20])
        """
        if not stages:
            return {}, epochs
        for name in stages:
            if name not in self.stages:
                listed = ", ".join(map(repr, self.stages)) or "none"
                near = suggest(name, self.stages)
                msg = f"{self.name} has no stage {name!r}.{near} Its stages are: {listed}."
                raise InputError(msg)
        for name, option in self.stages.items():
            if name not in stages and self.options[option] > 0:
                msg = f"`stages` of {self.name} must name {name!r} too: it is there by default"
                raise InputError(msg)
        whole = epochs + sum(checks.positive_int(n, f"stages.{k}") for k, n in stages.items())
        return {self.stages[name]: own / whole for name, own in stages.items()}, whole

    def make(self, *, rng: Rng = None, **options: Any) -> Objective:
        """Make the objective.

        Parameters
        ----------
        rng : int, numpy.random.Generator or None
            As in `Objective`.
        **options : dict
            Those of the class; others are refused by name.

        Returns
        -------
        Objective
            In its first phase.

        Raises
        ------
        UnknownNameError
            There is no such option.
        InputError
            An option has a value that is not allowed.
        """
        for option in options:
            if option not in self.options:
                listed = ", ".join(f"`{known}`" for known in self.options) or "none but `rng`"
                near = suggest(option, self.options)
                msg = f"{self.name} has no option `{option}`.{near} It has {listed}."
                raise UnknownNameError(msg)
        return self.build(rng=rng, **options)


#: Every objective, by name.
OBJECTIVES: Catalogue[ObjectiveKind] = Catalogue("objective")

for _kind in (
    ObjectiveKind(
        "cross-entropy",
        "Cross-entropy",
        CrossEntropy,
        "A plain classifier, trusted by its softmax.",
        "log-odds of the most probable class",
        "Hendrycks & Gimpel (2017), https://arxiv.org/abs/1610.02136",
    ),
    ObjectiveKind(
        "rank-weighted",
        "Rank-weighted loss",
        RankWeighted,
        "The area under a risk-coverage curve, with its rank weights as weights of the loss.",
        "the score that the samples are ranked by",
        "Zhou et al. (2025), https://arxiv.org/abs/2410.15361",
        {"weights": ("aurc", "aurc-log", "sele", "augrc")},
    ),
    ObjectiveKind(
        "joint",
        "Cross-entropy and an area",
        Joint,
        "Cross-entropy plus the area under a risk-coverage curve of the 0/1 loss, by soft ranks.",
        "the score that the samples are ranked by",
        "abstain",
        {"strength": (3.0, 10.0, 30.0)},
    ),
    ObjectiveKind(
        "deep-gamblers",
        "DeepGamblers",
        DeepGamblers,
        "An additional class keeps the stake: abstaining pays where no class is likely enough.",
        "log-odds of not abstaining (reservation score)",
        "Liu et al. (2019), https://arxiv.org/abs/1907.00208",
        {"reward": REWARDS},
    ),
    ObjectiveKind(
        "confidnet",
        "ConfidNet",
        ConfidNet,
        "A branch on a frozen classifier learns the probability of the true class.",
        "logit of the learned true class probability",
        "Corbière et al. (2019), https://arxiv.org/abs/1910.04851",
    ),
    ObjectiveKind(
        "devries",
        "DeVries & Taylor",
        DeVries,
        "A branch asks for hints about the label, for a price that keeps them within a budget.",
        "logit of the confidence branch",
        "DeVries & Taylor (2018), https://arxiv.org/abs/1802.04865",
        {"budget": (0.3,)},
    ),
    ObjectiveKind(
        "selectivenet",
        "SelectiveNet",
        SelectiveNet,
        "A selection is trained with the classifier for low risk at a target coverage.",
        "logit of the selection",
        "Geifman & El-Yaniv (2019), https://arxiv.org/abs/1901.09192",
        {"coverage": COVERAGES},
    ),
    ObjectiveKind(
        "self-adaptive",
        "Self-adaptive training",
        SelfAdaptiveTraining,
        "Labels that the network comes to doubt turn into abstentions.",
        "log-odds of not abstaining",
        "Huang et al. (2020), https://arxiv.org/abs/2002.10319",
        {"momentum": (0.99,)},
    ),
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
