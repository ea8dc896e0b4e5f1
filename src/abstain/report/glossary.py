"""What the names in a report mean and where they are defined, read from the catalogues."""

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from abstain.plots.words import metric_title
from abstain.report.document import Entry
from abstain.report.words import metric_of


def metric_words(names: Sequence[str]) -> tuple[Entry, ...]:
    """Describe metrics, with their range, direction, convention and source."""
    return tuple(map(_metric_word, names))


def _metric_word(name: str) -> Entry:
    metric = metric_of(name)
    if metric is None:
        return Entry(name, "", name)
    better = "lower is better" if metric.lower_is_better else "higher is better"
    convention = f"; convention: {metric.identity.convention}" if metric.identity.convention else ""
    low, high = metric.measurement.low, metric.measurement.high
    span = f"{_bound(low)} to {_bound(high)}, {better}{convention}"
    meaning = metric.identity.meaning.format(value=_Placeholder())
    return Entry(metric_title(name), meaning, name, span, metric.identity.source)


class _Placeholder:
    """Stands for the number in a sentence that explains a metric in general."""

    def __format__(self, spec: str) -> str:
        """Write x whatever format the sentence asks for."""
        del spec
        return "x"


def _bound(value: float) -> str:
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:g}".replace("-", "−")


def score_words(names: Sequence[str], own: Container[str] = ()) -> tuple[Entry, ...]:
    """Describe the scores; those in `own` are columns of the data, whatever their names."""
    return tuple(_score_word(name, own=name in own) for name in names)


def _score_word(name: str, *, own: bool) -> Entry:
    # A score at a temperature ("msr@T=1.5") is described by its base.
    score = None if own else _catalogue().get(name.split("@", 1)[0])
    if score is None:
        return Entry(name, "A confidence given with the data; higher means more trusted.")
    called = name if score.title != name else ""
    return Entry(score.title, _sentence(score.meaning), called, source=score.source)


def _sentence(words: str) -> str:
    start = words[:1].upper() + words[1:]
    return start if start.endswith(".") else f"{start}."


def _catalogue() -> Mapping[str, Any]:
    from abstain.confidence import SCORES  # the registry fills when the package is imported

    return SCORES


def skipped_words(skipped: Mapping[str, str]) -> tuple[Entry, ...]:
    """List the metrics that did not apply, with the reason."""
    return tuple(
        Entry(metric_title(name), _sentence(reason), name if metric_title(name) != name else "")
        for name, reason in skipped.items()
    )
