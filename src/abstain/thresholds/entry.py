"""The catalogue entry of a rule, for decision rules, commands, reports and tests."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from abstain._foundation.catalogue import Catalogue

Guarantee = Literal["none", "selective risk", "generalized risk", "coverage"]


@dataclass(frozen=True)
class Rule:
    """One way to choose a threshold.

    Attributes
    ----------
    name : str
        Name in scripts.
    title : str
        Name in reports.
    choose : callable
        The function, which returns a `DecisionRule`.
    needs_loss, needs_data : bool
        Whether the function requires losses, and whether it requires any data.
    guarantee : str
        Description of the guarantee; "none" without one.
    guarantees : tuple of str
        Guarantees that a decision rule may have; empty without one.
    target_quantity : str
        Quantity of the target, for a rule without a guarantee.
    statement : str
        Description of a decision rule without a guarantee, with ``{target}`` for the number; empty
        if `target_quantity` is enough.
    loss : str
        Description of the permitted losses.
    is_binary : bool
        Whether losses must be 0 or 1, without weights. The risk is then a share of failures.
    uses_probability : bool
        Whether the threshold is a probability of a correct prediction, for any score.
    meaning : str
        Explanation in one sentence.
    source : str
        Reference.
    """

    name: str
    title: str
    choose: Callable[..., Any]
    meaning: str
    source: str
    needs_loss: bool = True
    needs_data: bool = True
    guarantee: str = "none"
    guarantees: tuple[Guarantee, ...] = ()
    target_quantity: Literal["", "coverage", "selective risk", "generalized risk", "cost"] = ""
    loss: str = "any loss"
    is_binary: bool = False
    uses_probability: bool = False
    statement: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options, except `weight`, in the order of the signature."""
        return tuple(self._parameters())

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the options without a default."""
        empty = inspect.Parameter.empty
        return tuple(n for n, p in self._parameters().items() if p.default is empty)

    def _parameters(self) -> dict[str, inspect.Parameter]:
        parameters = inspect.signature(self.choose).parameters
        data = {"confidence", "loss", "weight"}
        return {name: parameter for name, parameter in parameters.items() if name not in data}


#: Every rule, by name.
RULES: Catalogue[Rule] = Catalogue("rule")
