"""The options that say how chance is accounted for."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from abstain.errors import InputError

Level = Annotated[float, Parameter(help="of the intervals, such as 0.95")]
Clustered = Annotated[
    bool, Parameter(help="samples of one --group are not independent", negative=())
]
Seed = Annotated[int, Parameter(help="of everything drawn")]


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """How `evaluate` makes intervals."""

    interval: Annotated[
        Literal["analytic", "bootstrap", "none"], Parameter(help="how to make intervals")
    ] = "analytic"
    level: Annotated[
        float | None, Parameter(help="of the intervals, such as 0.9 [default: 0.95]")
    ] = None
    bootstrap: Annotated[
        int | None, Parameter(help="resamples of --interval bootstrap [default: 1000]")
    ] = None
    clustered: Clustered = False
    seed: Seed = 0

    def chosen(self) -> dict[str, Any]:
        """Return the options of `evaluate` that were given; refuse those without effect."""
        idle = ["--bootstrap"] if self.bootstrap is not None else []
        if self.interval == "none":
            idle += ["--level"] if self.level is not None else []
            idle += ["--clustered"] if self.clustered else []
        if idle and self.interval != "bootstrap":
            have = "--interval bootstrap" if idle == ["--bootstrap"] else "other intervals"
            msg = f"{', '.join(idle)}: without effect with --interval {self.interval}; take {have}"
            raise InputError(f"{msg}, or drop {'it' if len(idle) == 1 else 'them'}")
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Tests:
    """How `compare` tells a difference from chance."""

    test: Annotated[
        Literal["influence", "bootstrap", "permutation"], Parameter(help="the test that decides")
    ] = "influence"
    level: Level = 0.95
    adjustment: Annotated[
        Literal["holm", "bonferroni", "none"], Parameter(help="for the number of pairs")
    ] = "holm"
    bootstrap: Annotated[
        int, Parameter(help="resamples for rankings and the literature's test; see --out")
    ] = 0
    margin: Annotated[
        float | None, Parameter(help="test that nothing is worse than --reference by this much")
    ] = None
    reference: Annotated[str | None, Parameter(help="the method that --margin is about")] = None
    clustered: Clustered = False
    seed: Seed = 0
