"""Samples of lm-evaluation-harness: `samples_*.jsonl`, as `--log_samples` writes them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from abstain.errors import FileFormatError
from abstain.tables.logs.answers import CONFIDENCE, LoggedAnswer, answer_table, number, plain
from abstain.tables.logs.log_probabilities import of_choices
from abstain.tables.table import DataTable

#: What each line of such a file has had in every version.
SAMPLE_FIELDS: Final = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
)

#: What else may stand in a line beside the metrics; older versions do not list these.
_OTHER: Final = frozenset({"filter", "metrics", "doc_hash", "prompt_hash", "target_hash"})
#: The filter of a task that has none.
_PLAIN_FILTER: Final = "none"
#: What the harness's filters leave where they find no answer.
_NOTHING_FOUND: Final = "[invalid]"


def table_of(rows: Iterable[Mapping[str, Any]], source: str) -> DataTable:
    """Return the table of the lines of a file: one row a question, a grade for each filter."""
    questions: dict[str, list[Mapping[str, Any]]] = {}
    for line, row in enumerate(rows, start=1):
        if not row.keys() >= SAMPLE_FIELDS:
            lacking = ", ".join(sorted(SAMPLE_FIELDS - row.keys()))
            raise FileFormatError(
                f"{source}: line {line} is no sample of lm-evaluation-harness: it lacks {lacking}"
            )
        questions.setdefault(str(row["doc_id"]), []).append(row)
    filters = {_filter(row) for lines in questions.values() for row in lines}
    several = len(filters) > 1
    return answer_table([_answer(lines, several=several) for lines in questions.values()], source)


def _filter(row: Mapping[str, Any]) -> str:
    return str(row.get("filter", _PLAIN_FILTER))


def _answer(lines: list[Mapping[str, Any]], *, several: bool) -> LoggedAnswer:
    """Return what the filters made of the answer to one question."""
    first = lines[0]
    facts = {"id": str(first["doc_id"]), **plain(first["doc"], "doc")}
    grades: dict[str, float | None] = {}
    confidence: dict[str, float] = {}
    for row in lines:
        numbers = _metrics(row)
        stated = numbers.pop(CONFIDENCE, None)
        if stated is not None:
            confidence.setdefault(CONFIDENCE, stated)
        # As the harness names them in its results.
        end = f",{_filter(row)}" if several else ""
        grades |= {f"{name}{end}": x for name, x in numbers.items()}
    confidence |= of_choices(_log_likelihoods(first["resps"]))
    return LoggedAnswer(facts, grades, confidence, all(map(_is_refusal, lines)))


def _metrics(row: Mapping[str, Any]) -> dict[str, float]:
    names = row.get("metrics")
    if not isinstance(names, list):
        names = [name for name in row if name not in SAMPLE_FIELDS | _OTHER]
    found = {name: number(row.get(name)) for name in names if isinstance(name, str)}
    return {name: x for name, x in found.items() if x is not None}


def _is_refusal(row: Mapping[str, Any]) -> bool:
    found = row["filtered_resps"]
    return isinstance(found, list) and bool(found) and all(x == _NOTHING_FOUND for x in found)


def _log_likelihoods(responses: Any) -> list[float]:
    """Return the log-likelihood of each answer to choose from; none where answers are texts.

    A single one is that of the target, which tells nothing of what the model would have said.
    """
    out: list[float] = []
    for drawn in responses if isinstance(responses, list) else ():
        pair = drawn[0] if isinstance(drawn, list) and drawn else None
        if not isinstance(pair, list) or len(pair) != 2:
            return []
        try:
            # Versions differ in whether they write numbers as text.
            out.append(float(pair[0]))
        except (TypeError, ValueError):
            return []
    return out
