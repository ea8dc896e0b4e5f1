"""What is said of intervals: their forms, who has none and why, for readers of every format."""

from collections.abc import Iterable

from abstain.evaluation.records import Result
from abstain.plots.words import metric_title, percent
from abstain.report.words import between, unique

#: What follows is different for every number: the degrees of freedom.
_OF_ONE = ", t with "


def form_of(result: Result) -> str:
    """Return how an interval was made, without what holds of this one number only."""
    return result.interval.partition(_OF_ONE)[0]


def level_of(results: Iterable[Result]) -> str:
    """Return the level of the intervals in words, or an empty string where there are none."""
    return next((percent(r.level) for r in results if r.interval), "")


def note_of(result: Result) -> str:
    """Return the sentence about the interval of a number, or why it has none.

    Nothing for an undefined number: the reason stands in its place.
    """
    if result.reason or not result.interval_note:
        return ""
    lead = "Interval" if result.interval else "No interval"
    return f"{lead}: {result.interval_note}."


def said_with(result: Result) -> str:
    """Return a value's interval as it stands inside a sentence, or an empty string."""
    found = between(result.low, result.high)
    return f", {percent(result.level)} interval {found}" if found else ""


def forms(results: Iterable[Result]) -> dict[str, list[str]]:
    """Return the forms of interval with the metrics that have them, in order of appearance."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.interval:
            found.setdefault(form_of(result), []).append(metric_title(result.metric))
    return {form: unique(titles) for form, titles in found.items()}


def without(results: Iterable[Result]) -> list[str]:
    """List why numbers have no interval, each reason once."""
    bare = [r for r in results if not (r.reason or r.interval)]
    return unique(r.interval_note for r in bare if r.interval_note)


def footnotes(results: Iterable[Result]) -> list[str]:
    """Return the sentences below a table that prints intervals."""
    told = list(results)
    level = level_of(told)
    if not level:
        return ["No number has an interval."]
    listed = "; ".join(f"{form} ({', '.join(titles)})" for form, titles in forms(told).items())
    sentences = [f"In brackets: {level} intervals. Forms: {listed}."]
    reasons = without(told)
    if reasons:
        sentences.append(f"No interval: {'; '.join(reasons)}.")
    cautions = unique(r.interval_note for r in told if r.interval and r.interval_note)
    if cautions:
        sentences.append(f"With care: {'; '.join(cautions)}.")
    return sentences
