"""What a benchmark was run with, what its readers should know first, and its words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from abstain.benchmark.protocol import ERRORS
from abstain.benchmark.results import BenchmarkResults
from abstain.evaluation.records import Finding
from abstain.report.document import Entry, Remark
from abstain.report.findings import remarks
from abstain.report.glossary import metric_words
from abstain.report.subjects.benchmark.leaderboard import kind_title
from abstain.report.words import count, seconds_said, short_title

#: Packages whose versions stand among the facts.
_PACKAGES: Final = ("abstain", "torch", "numpy")

#: Facts of the folder that are shown as they are.
_SHOWN: Final = {
    "python": "Python",
    "device": "Device",
    "precision": "Precision of training",
    "dtype": "Numbers kept as",
}


def task_of(results: BenchmarkResults) -> str:
    """Return the name of the task; empty where it is not known."""
    return str(_asked(results, "task"))


def folder_of(results: BenchmarkResults) -> str:
    """Return where the files of the task were; empty where none were needed."""
    return str(_asked(results, "folder"))


def model_of(results: BenchmarkResults) -> str:
    """Return the name of the networks' backbone; empty where it is not known."""
    model = _config(results).get("model", results.facts.get("model", ""))
    return str(model.get("name", "")) if isinstance(model, Mapping) else str(model)


def _config(results: BenchmarkResults) -> Mapping[str, Any]:
    found = results.facts.get("config", {})
    return found if isinstance(found, Mapping) else {}


def _asked(results: BenchmarkResults, name: str) -> Any:
    """Return an entry of the configuration, in its table or not; empty where there is none."""
    inner = _config(results).get("benchmark")
    found = inner.get(name) if isinstance(inner, Mapping) else None
    return found or _config(results).get(name, "")


def facts_of(results: BenchmarkResults) -> tuple[tuple[str, str], ...]:
    """Return what the benchmark was run with; empty where that is not known."""
    own = results.facts
    arms = dict.fromkeys(method.arm for method in results.methods if method.arm)
    numbers = {name: own.get(name) for name in ("train", "validation", "seconds")}
    known = {name: n for name, n in numbers.items() if isinstance(n, int | float)}
    told = own.get("versions")
    versions: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    return (
        ("Task", task_of(results)),
        ("Model", model_of(results)),
        ("Seeds", _seeds(own.get("seeds") or _asked(results, "seeds"))),
        ("Trained by", ", ".join(arms)),
        ("Methods", str(len(results.methods))),
        ("Studies", str(len(results.headline))),
        ("Metrics", ", ".join(short_title(metric) for metric in results.comparisons)),
        ("Training pictures", count(known["train"]) if "train" in known else ""),
        ("Validation pictures", count(known["validation"]) if "validation" in known else ""),
        *((title, str(own.get(name) or "")) for name, title in _SHOWN.items()),
        ("Versions", ", ".join(f"{p} {versions[p]}" for p in _PACKAGES if versions.get(p))),
        ("Time of all jobs", seconds_said(known["seconds"]) if known.get("seconds") else ""),
    )


def _seeds(values: object) -> str:
    """Say how many seeds there are, and which: a lone 0 would read as none."""
    if isinstance(values, Sequence) and not isinstance(values, str):
        return f"{count(len(values))} ({', '.join(map(str, values))})" if values else ""
    return "" if values is None else str(values)


def findings_of(results: BenchmarkResults, notes: Sequence[str] = ()) -> tuple[Remark, ...]:
    """Return the findings, with the titles of studies, and the notes."""
    titles = {study.name: study.title for study in results.studies}

    def where(finding: Finding) -> str:
        places = (titles.get(value, value) for _, value in finding.split)
        return ", ".join(part for part in (finding.score, *places) if part)

    return remarks(results.findings, notes, where)


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


def words_of(results: BenchmarkResults) -> Iterator[Entry]:
    """Return the words of the whole, then the metrics, then what stands in tables."""
    kinds = dict.fromkeys(study.kind for study in results.headline)
    known = {kind_title(kind): said for kind, said in _KINDS.items() if kind in kinds}
    yield from (Entry(title, said) for title, said in (_FIRST | known).items())
    yield from metric_words(list(results.comparisons))
    for title, said in _LAST.items():
        if title not in _ONLY or _ONLY[title] in results.comparisons:
            yield Entry(title, said)
