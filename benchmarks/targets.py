"""What contenders are meant to take, beside what they took."""

from collections.abc import Mapping

from benchmarks.cases.entry import Contender, Race, Target
from benchmarks.measuring.rounds import Found


def reached(
    target: Target, contender: Contender, race: Race, contenders: Mapping[str, Found]
) -> float | None:
    """Return what a contender took of what its target is about; None where that is not known."""
    found, base = contenders[contender.key], contenders[race.reference.key]
    if target.than:
        other = contenders.get(target.than)
        return None if other is None or other.reason else found.seconds / other.seconds
    known = {
        "ratio": found.ratio,
        "seconds": found.seconds,
        "beyond": found.seconds - base.seconds,
        "MiB": found.peak,
        "bytes": bytes_a_sample(found, race),
    }
    return known.get(target.of, found.facts.get(target.of))


def bytes_a_sample(found: Found, race: Race) -> float | None:
    """Return the extra memory of a call for each sample."""
    return None if found.peak is None or not race.n else found.peak * 2**20 / race.n


def missed(contender: Contender, race: Race, contenders: Mapping[str, Found]) -> tuple[Target, ...]:
    """Return the targets that a contender misses."""
    return tuple(
        target
        for target in contender.targets
        if (value := reached(target, contender, race, contenders)) is not None
        and value > target.at_most
    )
