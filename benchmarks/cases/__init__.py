"""Catalogue of the benchmark cases."""

from collections.abc import Mapping

from benchmarks.cases import (
    accelerator,
    commands,
    growth,
    peers,
    ranking,
    resampling,
    starting,
    training,
    users,
)
from benchmarks.cases.entry import BenchmarkCase, Sizes

#: Sections in the order of the page.
SECTIONS = (
    users.SECTION,
    ranking.SECTION,
    ranking.WEIGHTED,
    ranking.PASSES,
    commands.SECTION,
    starting.SECTION,
    resampling.SECTION,
    peers.SECTION,
    training.SECTION,
    training.UPDATES,
    accelerator.SECTION,
    growth.SECTION,
)


def catalogue(sizes: Sizes) -> Mapping[str, BenchmarkCase]:
    """Return the cases by name, with published or small sizes."""
    modules = (users, ranking, commands, starting, resampling, peers, training, accelerator, growth)
    return {case.name: case for module in modules for case in module.cases(sizes)}
