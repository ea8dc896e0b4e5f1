"""The options that say how chance is accounted for."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

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
    level: Level = 0.95
    bootstrap: Annotated[int, Parameter(help="resamples of --interval bootstrap")] = 1000
    clustered: Clustered = False
    seed: Seed = 0


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
