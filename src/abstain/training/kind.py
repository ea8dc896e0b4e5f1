"""What the catalogue knows of an objective; each file of objectives says it of its own."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from abstain._foundation import checks
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.training.objective import WARM_UP, Objective
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

    def shares_of_stages(
        self, epochs: int, stages: Mapping[str, int]
    ) -> tuple[dict[str, float], int]:
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
                raise InputError(
                    f"{self.name} has no stage {name!r}.{near} Its stages are: {listed}."
                )
        for name, option in self.stages.items():
            if name not in stages and self.options[option] > 0:
                raise InputError(
                    f"`stages` of {self.name} must name {name!r} too: it is there by default"
                )
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
                raise UnknownNameError(
                    f"{self.name} has no option `{option}`.{near} It has {listed}."
                )
        return self.build(rng=rng, **options)
