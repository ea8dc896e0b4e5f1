"""The options that say what is asked of a threshold, and the rule that they lead to."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from abstain.errors import InputError
from abstain.thresholds import RULES

#: The options here that name what is asked for, and their names in the library.
_KEYWORDS: Final = {"max_risk": "max_risk", "coverage": "coverage", "cost": "abstention_cost"}
#: The rule of each option, where none is named.
_USUAL: Final = {"max_risk": "sgr", "coverage": "coverage_guarantee", "cost": "cost"}
_DELTA: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is asked of the threshold: one of a risk, a coverage and a cost."""

    max_risk: Annotated[float | None, Parameter(help="largest risk of the answers")] = None
    coverage: Annotated[float | None, Parameter(help="least share to answer")] = None
    cost: Annotated[
        float | None, Parameter(help="cost of an abstention, where an error costs 1")
    ] = None
    delta: Annotated[
        float | None, Parameter(help="chance that the guarantee may fail [default: 0.05]")
    ] = None
    method: Annotated[
        str | None,
        Parameter(
            help=f"how it is chosen: {', '.join(RULES)} [default: sgr for a risk, "
            "coverage_guarantee for a coverage, cost for a cost]"
        ),
    ] = None
    risk: Annotated[
        Literal["selective", "generalized"] | None,
        Parameter(help="of learn_then_test: the risk that is guaranteed [default: selective]"),
    ] = None

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given, as flags."""
        names = ("max_risk", "coverage", "cost", "delta", "method", "risk")
        return tuple(flag(name) for name in names if getattr(self, name) is not None)

    def chosen(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the rule and its options; refuse those that do not fit together."""
        asked = [name for name in _USUAL if getattr(self, name) is not None]
        if len(asked) != 1:
            found = ", ".join(map(flag, asked)) or "none of them"
            msg = f"ask for one of --max-risk, --coverage and --cost; got {found}"
            raise InputError(msg)
        method = self.method or _USUAL[asked[0]]
        entry, keyword = RULES[method], _KEYWORDS[asked[0]]
        if keyword not in entry.options:
            needs = ", ".join(flag(name) for name, k in _KEYWORDS.items() if k in entry.options)
            msg = f"--method {method} needs {needs}; got {flag(asked[0])}"
            raise InputError(msg)
        options = {keyword: getattr(self, asked[0])}
        for name, usual in (("delta", _DELTA), ("risk", None)):
            value = getattr(self, name)
            if value is not None and name not in entry.options:
                msg = f"--method {method} takes no {flag(name)}"
                raise InputError(msg)
            if name in entry.options and (value is not None or usual is not None):
                options[name] = usual if value is None else value
        return method, options


def flag(name: str) -> str:
    """Write the name of an option as a flag."""
    return f"--{name.replace('_', '-')}"
