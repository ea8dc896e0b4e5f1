"""Define `ObjectiveKind`, the catalogue entry of an objective."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from abstain._foundation import checks
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.training.objective import WARM_UP, Objective
from abstain.typing import Rng

#: Phases whose share of the epochs is an option, and the names of these options.
_SHARES: Final = {WARM_UP: "warm_up", "confidence": "confidence_share", "fine-tune": "fine_tune"}


@dataclass(frozen=True)
class ObjectiveKind:
    """The catalogue entry of an objective.

    Attributes
    ----------
    name : str
        Name in scripts.
    title : str
        Name in reports.
    build : type
        Class of the objective. Its keyword arguments are the options.
    meaning : str
        Description in one sentence.
    score : str
        Description of the confidence.
    source : str
        Reference of the definition.
    grid : mapping of str to tuple
        Values of options that are compared on validation data in the literature.
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
        """Options except `rng`, with their default values."""
        parameters = inspect.signature(self.build).parameters
        return {name: parameters[name].default for name in parameters if name != "rng"}

    @property
    def needs_index(self) -> bool:
        """Whether the loss requires the indices of the training samples in a batch."""
        return self.build.needs_index

    @property
    def stages(self) -> dict[str, str]:
        """Option that sets the share of epochs, for each phase of configurable length."""
        return {phase: option for phase, option in _SHARES.items() if option in self.options}

    def shares_of_stages(
        self, epochs: int, stages: Mapping[str, int]
    ) -> tuple[dict[str, float], int]:
        """Convert numbers of epochs per phase to options of the objective.

        Parameters
        ----------
        epochs : int
            Number of epochs of the main phase (or of the classifier phase).
        stages : mapping from str to int
            Numbers of epochs of the other phases by name. If the mapping is empty, the default
            shares are used.

        Returns
        -------
        options : dict
            Shares of the phases, as options of `make`.
        epochs : int
            Total number of epochs of all phases.

        Raises
        ------
        InputError
            If a phase is unknown, a number is not a positive integer, or a phase with a positive
            default share is missing.

        Examples
        --------
        >>> from abstain.training import OBJECTIVES
        >>> kind = OBJECTIVES["confidnet"]
        >>> shares, epochs = kind.shares_of_stages(250, {"confidence": 200, "fine-tune": 20})
        >>> plan = [phase.name for phase in kind.make(**shares).plan(epochs)]
        >>> epochs, [plan.count(name) for name in dict.fromkeys(plan)]
        (470, [250, 200, 20])
        """
        if not stages:
            return {}, epochs
        self._check_stages(stages)
        lengths = {
            name: checks.positive_int(length, f"stages.{name}") for name, length in stages.items()
        }
        total = epochs + sum(lengths.values())
        shares = {self.stages[name]: length / total for name, length in lengths.items()}
        return shares, total

    def _check_stages(self, stages: Mapping[str, int]) -> None:
        """Raise an InputError if a phase is unknown, or if a required phase is missing."""
        for name in stages:
            if name not in self.stages:
                stage_names = ", ".join(repr(stage) for stage in self.stages) or "none"
                suggestion = suggest(name, self.stages)
                raise InputError(
                    f"{self.name} has no stage {name!r}.{suggestion} Its stages are: {stage_names}."
                )
        for name, option in self.stages.items():
            if name not in stages and self.options[option] > 0:
                raise InputError(
                    f"`stages` of {self.name} must also have {name!r}, a phase of the default plan"
                )

    def make(self, *, rng: Rng = None, **options: Any) -> Objective:
        """Create the objective.

        Parameters
        ----------
        rng : int, numpy.random.Generator or None
            As in `Objective`.
        **options : dict
            Options of the objective.

        Returns
        -------
        Objective
            The objective in its first phase.

        Raises
        ------
        UnknownNameError
            If the objective has no such option.
        InputError
            If the value of an option is invalid.
        """
        for option in options:
            if option not in self.options:
                option_names = ", ".join(f"`{name}`" for name in self.options) or "none but `rng`"
                suggestion = suggest(option, self.options)
                raise UnknownNameError(
                    f"{self.name} has no option `{option}`.{suggestion} It has {option_names}."
                )
        return self.build(rng=rng, **options)
