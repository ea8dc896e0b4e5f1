"""The catalogue of contenders, from which the page, the stored table and the check are made."""

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
)
from benchmarks.cases.entry import Race, Sizes

#: In the order of the page.
SECTIONS = (
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


def catalogue(sizes: Sizes) -> Mapping[str, Race]:
    """Return the races by name, of real sizes or of small ones."""
    homes = (ranking, commands, starting, resampling, peers, training, accelerator, growth)
    return {race.name: race for home in homes for race in home.races(sizes)}
