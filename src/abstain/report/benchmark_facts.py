"""What a benchmark was run with, and what its readers should know first."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from abstain.benchmark.results import BenchmarkResults
from abstain.evaluation.records import Finding
from abstain.report.benchmark_grid import headline
from abstain.report.findings import grouped
from abstain.report.study_words import seconds_said
from abstain.report.words import count, short_title

#: Packages whose versions stand among the facts.
_PACKAGES: Final = ("abstain", "torch", "numpy")

#: Facts of the folder that are shown as they are.
_SHOWN: Final = {
    "python": "Python",
    "device": "Device",
    "precision": "Precision of training",
    "dtype": "Numbers kept as",
}


def benchmark_title(results: BenchmarkResults) -> str:
    """Return the heading of a page about a benchmark."""
    task = task_of(results)
    return f"Benchmark on {task}" if task else "Benchmark of confidence scores"


def task_of(results: BenchmarkResults) -> str:
    """Return the name of the task; empty where it is not known."""
    return str(_from(results.facts, "benchmark", "task"))


def folder_of(results: BenchmarkResults) -> str:
    """Return where the files of the task were; empty where none were needed."""
    return str(_from(results.facts, "benchmark", "folder"))


def model_of(results: BenchmarkResults) -> str:
    """Return the name of the networks' backbone; empty where it is not known."""
    model = _config(results.facts).get("model", results.facts.get("model", ""))
    return str(model.get("name", "")) if isinstance(model, Mapping) else str(model)


def facts_of(results: BenchmarkResults) -> list[dict[str, str]]:
    """Return what the benchmark was run with."""
    own = results.facts
    arms = dict.fromkeys(method.arm for method in results.methods if method.arm)
    found = [
        ("Task", task_of(results)),
        ("Model", model_of(results)),
        ("Seeds", _seeds(own.get("seeds") or _from(own, "benchmark", "seeds"))),
        ("Trained by", ", ".join(arms)),
        ("Methods", str(len(results.methods))),
        ("Studies", str(len(headline(results)))),
        ("Metrics", ", ".join(short_title(metric) for metric in results.comparisons)),
        ("Training pictures", _counted(own.get("train"))),
        ("Validation pictures", _counted(own.get("validation"))),
        *((title, str(own.get(name) or "")) for name, title in _SHOWN.items()),
        ("Versions", _versions(own.get("versions"))),
        ("Time of all jobs", _seconds(own.get("seconds"))),
    ]
    return [{"label": label, "value": value} for label, value in found if value]


def _config(own: Mapping[str, Any]) -> Mapping[str, Any]:
    found = own.get("config", {})
    return found if isinstance(found, Mapping) else {}


def _from(own: Mapping[str, Any], part: str, name: str) -> Any:
    """Return an entry of the configuration, in its table or not; empty where there is none."""
    config = _config(own)
    inner = config.get(part)
    found = inner.get(name) if isinstance(inner, Mapping) else None
    return found or config.get(name, "")


def _seeds(values: object) -> str:
    """Say how many seeds there are, and which: a lone 0 would read as none."""
    if isinstance(values, Sequence) and not isinstance(values, str):
        return f"{count(len(values))} ({', '.join(map(str, values))})" if values else ""
    return "" if values is None else str(values)


def _counted(value: object) -> str:
    return count(value) if isinstance(value, int) else ""


def _seconds(value: object) -> str:
    return seconds_said(float(value)) if isinstance(value, int | float) and value else ""


def _versions(found: object) -> str:
    if not isinstance(found, Mapping):
        return ""
    return ", ".join(f"{name} {found[name]}" for name in _PACKAGES if found.get(name))


def findings_said(results: BenchmarkResults) -> list[dict[str, Any]]:
    """Return the findings, grouped by kind, with the titles of studies."""
    titles = {study.name: study.title for study in results.studies}
    return [
        {
            "level": said.first.level,
            **_finding(said.first, titles),
            "more": [_finding(finding, titles) for finding in said.more],
        }
        for said in grouped(results.findings)
    ]


def _finding(finding: Finding, titles: Mapping[str, str]) -> dict[str, str]:
    where = [titles.get(value, value) for _, value in finding.split]
    place = ", ".join(part for part in (finding.score, *where) if part)
    return {"message": finding.message, "place": place}
