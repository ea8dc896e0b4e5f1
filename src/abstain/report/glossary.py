"""What the names in a report mean and where they are defined, read from the catalogues."""

import math
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from abstain.report.document import Entry
from abstain.report.words import metric_of, title_of

_LINK = re.compile(r"https://[^\s,;]+")


def metric_entries(names: list[str]) -> list[dict[str, Any]]:
    """Describe the metrics that were computed."""
    return [_metric_entry(name) for name in names]


def _metric_entry(name: str) -> dict[str, Any]:
    metric = metric_of(name)
    if metric is None:
        return {"name": name, "title": name, "meaning": "", "range": "", "better": "", "source": []}
    return {
        "name": name,
        "title": title_of(name),
        "meaning": metric.meaning.format(value=_Placeholder()),
        "range": f"{_bound(metric.low)} to {_bound(metric.high)}",
        "better": "lower is better" if metric.lower_is_better else "higher is better",
        "convention": metric.convention,
        "source": linked(metric.source),
    }


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


def score_entries(names: list[str], own: Container[str]) -> list[dict[str, Any]]:
    """Describe the scores; those in `own` are columns of the data, whatever their names."""
    return [_score_entry(name, own=name in own) for name in names]


def _score_entry(name: str, *, own: bool) -> dict[str, Any]:
    # A score at a temperature ("msr@T=1.5") is described by its base.
    score = None if own else _catalogue().get(name.split("@", 1)[0])
    if score is None:
        about = "A confidence given with the data; higher means more trusted."
        return {"name": name, "title": name, "meaning": about, "source": []}
    return {
        "name": name,
        "title": score.title,
        "meaning": _sentence(score.meaning),
        "source": linked(score.source),
    }


def _sentence(words: str) -> str:
    start = words[:1].upper() + words[1:]
    return start if start.endswith(".") else f"{start}."


def _catalogue() -> Mapping[str, Any]:
    from abstain.confidence import SCORES  # the registry fills when the package is imported

    return SCORES


def skipped_entries(skipped: Mapping[str, str]) -> list[dict[str, str]]:
    """List the metrics that did not apply, with the reason."""
    return [
        {"name": name, "title": title_of(name), "reason": _sentence(reason)}
        for name, reason in skipped.items()
    ]


def metric_words(names: Sequence[str]) -> tuple[Entry, ...]:
    """Describe metrics, with their range, direction, convention and source."""
    return tuple(_metric_word(entry) for entry in map(_metric_entry, names))


def _metric_word(entry: dict[str, Any]) -> Entry:
    convention = f"; convention: {entry['convention']}" if entry.get("convention") else ""
    span = f"{entry['range']}, {entry['better']}{convention}" if entry["range"] else ""
    metric = metric_of(entry["name"])
    source = metric.source if metric else ""
    return Entry(entry["title"], entry["meaning"], entry["name"], span, source)


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


def skipped_words(skipped: Mapping[str, str]) -> tuple[Entry, ...]:
    """List the metrics that did not apply, with the reason."""
    return tuple(
        Entry(title_of(name), _sentence(reason), name if title_of(name) != name else "")
        for name, reason in skipped.items()
    )


def linked(source: str) -> list[dict[str, str]]:
    """Cut a source into text and links, so that a template can print both escaped.

    Examples
    --------
    >>> linked("eq. 3, https://arxiv.org/abs/2407.01032")
    [{'text': 'eq. 3, ', 'link': ''}, {'text': 'arxiv.org/abs/2407.01032', 'link': 'https://arxiv.org/abs/2407.01032'}]
    """
    parts: list[dict[str, str]] = []
    end = 0
    for match in _LINK.finditer(source):
        parts.append({"text": source[end : match.start()], "link": ""})
        parts.append({"text": match.group().removeprefix("https://"), "link": match.group()})
        end = match.end()
    parts.append({"text": source[end:], "link": ""})
    return [part for part in parts if part["text"]]
