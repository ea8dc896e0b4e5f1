"""Glossary entries of metrics and scores, with the meanings and sources from the catalogues."""

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from abstain.plots.formatting import metric_title
from abstain.report.document import GlossaryEntry
from abstain.report.formatting import find_metric, metric_meaning


def metric_entries(names: Sequence[str]) -> tuple[GlossaryEntry, ...]:
    """Return glossary entries with the range, direction, conventions and source of metrics."""
    return tuple(map(_metric_entry, names))


def _metric_entry(name: str) -> GlossaryEntry:
    """Return the glossary entry of a metric. An unknown metric has only a name."""
    metric = find_metric(name)
    if metric is None:
        return GlossaryEntry(name, "", name)
    direction = "lower is better" if metric.lower_is_better else "higher is better"
    convention = f"; convention: {metric.identity.convention}" if metric.identity.convention else ""
    low, high = metric.measurement.low, metric.measurement.high
    value_range = f"{_format_bound(low)} to {_format_bound(high)}, {direction}{convention}"
    meaning = metric_meaning(metric)
    return GlossaryEntry(metric_title(name), meaning, name, value_range, metric.identity.source)


def _format_bound(value: float) -> str:
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:g}".replace("-", "−")


def score_entries(
    names: Sequence[str], data_columns: Container[str] = ()
) -> tuple[GlossaryEntry, ...]:
    """Return glossary entries for scores.

    The scores in `data_columns` are not computed, but read from columns of the data.
    """
    return tuple(_score_entry(name, is_data_column=name in data_columns) for name in names)


def _score_entry(name: str, *, is_data_column: bool) -> GlossaryEntry:
    # The entry of a score at a temperature ("msr@T=1.5") describes the score without temperature.
    score = None if is_data_column else _scores().get(name.split("@", 1)[0])
    if score is None:
        meaning = "A confidence score in the data; a higher value means a more trusted answer."
        return GlossaryEntry(name, meaning)
    identifier = name if score.title != name else ""
    return GlossaryEntry(score.title, _as_sentence(score.meaning), identifier, source=score.source)


def _as_sentence(text: str) -> str:
    capitalized = text[:1].upper() + text[1:]
    return capitalized if capitalized.endswith(".") else f"{capitalized}."


def _scores() -> Mapping[str, Any]:
    from abstain.confidence import SCORES  # the registry fills when the package is imported

    return SCORES


def skipped_metric_entries(reason_by_metric: Mapping[str, str]) -> tuple[GlossaryEntry, ...]:
    """Return glossary entries of the metrics that do not apply to the data, with the reason."""
    return tuple(
        GlossaryEntry(
            metric_title(name), _as_sentence(reason), name if metric_title(name) != name else ""
        )
        for name, reason in reason_by_metric.items()
    )
