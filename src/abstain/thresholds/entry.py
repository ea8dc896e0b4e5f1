"""What the catalogue knows of a rule, for decision rules, the command line, reports and tests."""

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
        The name scripts use.
    title : str
        The name people read.
    choose : callable
        The function itself, which returns a `DecisionRule`.
    needs_loss, needs_data : bool
        Whether losses, and whether any data, are needed.
    guarantee : str
        What is promised, in words; "none" where nothing is.
    promises : tuple of str
        The guarantees that its decision rules may have; none where nothing is promised.
    aim : str
        What the target of a decision rule is about where nothing is promised.
    said : str
        What a decision rule without a promise does, with ``{target}`` where the number goes;
        empty where its aim tells.
    loss : str
        Which losses are allowed, in words.
    binary : bool
        Whether these are 0 and 1 alone, without weights: a risk is then a share of failures.
    of_probability : bool
        Whether it compares the probability of being right, whatever a score is measured in.
    meaning : str
        One plain sentence.
    source : str
        Where it is from.
    """

    name: str
    title: str
    choose: Callable[..., Any]
    meaning: str
    source: str
    needs_loss: bool = True
    needs_data: bool = True
    guarantee: str = "none"
    promises: tuple[Guarantee, ...] = ()
    aim: Literal["", "coverage", "selective risk", "generalized risk", "cost"] = ""
    loss: str = "any loss"
    binary: bool = False
    of_probability: bool = False
    said: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options, `weight` apart, in the order of the signature."""
        return tuple(self._parameters())

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the options that must be given."""
        empty = inspect.Parameter.empty
        return tuple(n for n, p in self._parameters().items() if p.default is empty)

    def _parameters(self) -> dict[str, inspect.Parameter]:
        found = inspect.signature(self.choose).parameters
        data = {"confidence", "loss", "weight"}
        return {name: parameter for name, parameter in found.items() if name not in data}


#: Every rule, by name.
RULES: Catalogue[Rule] = Catalogue("rule")
