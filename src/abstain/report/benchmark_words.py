"""The words of a benchmark that a reader may not know, and how to read its metrics."""

from typing import Any, Final

from abstain.benchmark.protocol import ERRORS
from abstain.benchmark.results import BenchmarkResults
from abstain.report.benchmark_grid import headline
from abstain.report.benchmark_tables import kind_title
from abstain.report.glossary import metric_entries

_FIRST: Final = {
    "Method": (
        "a confidence score: a number for each picture that should be low where the network is "
        "wrong. Below some threshold the answer is not accepted."
    ),
    "Failure": "a wrong answer, or an answer to a picture of a class that nobody taught.",
    "Coverage, selective risk": (
        "the share of pictures whose answer is accepted at a threshold, and the share of failures "
        "among these."
    ),
    "Study": "one source of failures, and the pictures that show it: a column of the tables.",
}

_KINDS: Final = {
    "iid": "new pictures of the same kind as those of training (i.i.d.).",
    "corruption": (
        "the same pictures with noise, blur, fog and the like; severity 5 is the worst. Values are "
        "means over the severities, as in FD-Shifts; thresholds meet the pictures of all together."
    ),
    "sub-class": "known classes that look different from what training had of them.",
    "new-class": (
        "pictures of the same sort whose classes training did not have, mixed with known ones; no "
        "answer to a new one is right."
    ),
    "far-new-class": "the same with pictures of another sort altogether.",
}

_LAST: Final = {
    "× 1000": "AURC and AUGRC are printed so where the head says it, as in the literature.",
    "ECE": (
        "of confidences that were calibrated by Platt scaling on validation data, since most "
        "confidences are no probabilities."
    ),
    "Settings": (
        "of each method those that were best on validation data by the metric of the table. Rows, "
        "and the tables of two metrics, may be of different networks."
    ),
    "Predictions": (
        "methods of dropout passes or of several networks are judged by the answers of the mean "
        "probabilities, the others by those of the network itself. So their failures differ."
    ),
    "Rank": "1 is best; methods with equal values share the mean of their ranks.",
    "†": (
        "cannot be told from the best of its column: the paired test of both on the same samples, "
        "adjusted for the number of pairs. It does not mean equal."
    ),
    "Interval": "where the value may lie on new data of the same kind, for the same networks.",
    "Errors on known classes": "; ".join(f"“{name}”: {said}" for name, said in ERRORS.items())
    + ".",
    "Threshold": (
        "set on validation data by selection with guaranteed risk (SGR), once for each network; "
        "what it promises holds for data like those only."
    ),
}

#: Words of the glossary that are about something which not every page has.
_ONLY: Final = {"ECE": "ece"}


def words_of(results: BenchmarkResults) -> list[dict[str, Any]]:
    """Return the words of the glossary: those of the whole, and those that come after metrics."""
    kinds = dict.fromkeys(study.kind for study in headline(results))
    known = {kind_title(kind): said for kind, said in _KINDS.items() if kind in kinds}
    last = {
        title: said
        for title, said in _LAST.items()
        if title not in _ONLY or _ONLY[title] in results.comparisons
    }
    return [
        {"title": title, "meaning": said, "first": title not in last}
        for title, said in {**_FIRST, **known, **last}.items()
    ]


def reading_of(metric: str, *, kilo: bool) -> str:
    """Say how a value of a metric is read; nothing for a metric of the caller."""
    entry: dict[str, Any] = metric_entries([metric])[0]
    if not entry["meaning"]:
        return ""
    unit = ", printed times 1000" if kilo else ""
    meaning = str(entry["meaning"]).rstrip(".")
    return f"A value x{unit}: {meaning[:1].lower()}{meaning[1:]}; {entry['better']}."
