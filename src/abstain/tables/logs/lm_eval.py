"""Read the `samples_*.jsonl` files that lm-evaluation-harness writes with `--log_samples`."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from abstain.errors import FileFormatError
from abstain.tables.logs.answers import (
    CONFIDENCE,
    LoggedAnswer,
    answer_table,
    choice_confidences,
    scalar_fields,
    to_float,
)
from abstain.tables.table import DataTable

#: Fields that each line has in all versions of the harness.
SAMPLE_FIELDS: Final = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
)

#: Other fields that are not metrics. Older versions of the harness do not list the metrics.
_OTHER_FIELDS: Final = frozenset({"filter", "metrics", "doc_hash", "prompt_hash", "target_hash"})
#: Name of the filter of a task without a filter.
_PLAIN_FILTER: Final = "none"
#: Text that a filter of the harness returns if a response contains no answer.
_NO_ANSWER: Final = "[invalid]"


def make_table(rows: Iterable[Mapping[str, Any]], source: str) -> DataTable:
    """Return a table with a row per question.

    There is a column of grades for each metric and filter.
    """
    rows_by_question: dict[str, list[Mapping[str, Any]]] = {}
    for line_number, row in enumerate(rows, start=1):
        if not row.keys() >= SAMPLE_FIELDS:
            missing = ", ".join(sorted(SAMPLE_FIELDS - row.keys()))
            raise FileFormatError(
                f"{source}: line {line_number} is not a sample of lm-evaluation-harness, because "
                f"it has no {missing}"
            )
        rows_by_question.setdefault(str(row["doc_id"]), []).append(row)
    all_rows = [row for question in rows_by_question.values() for row in question]
    has_filters = len(set(map(_get_filter, all_rows))) > 1
    answers = [
        _parse_question(question, has_filters=has_filters) for question in rows_by_question.values()
    ]
    return answer_table(answers, source)


def _get_filter(row: Mapping[str, Any]) -> str:
    return str(row.get("filter", _PLAIN_FILTER))


def _parse_question(rows: list[Mapping[str, Any]], *, has_filters: bool) -> LoggedAnswer:
    """Return the answer to one question from its rows, of which there is one for each filter."""
    first_row = rows[0]
    attributes = {"id": str(first_row["doc_id"]), **scalar_fields(first_row["doc"], "doc")}
    grades: dict[str, float | None] = {}
    confidence: dict[str, float] = {}
    for row in rows:
        # The harness also appends the name of the filter to the name of the metric.
        suffix = f",{_get_filter(row)}" if has_filters else ""
        for name, value in _get_metrics(row).items():
            if name == CONFIDENCE:
                confidence.setdefault(CONFIDENCE, value)
            else:
                grades[f"{name}{suffix}"] = value
    confidence |= choice_confidences(_log_likelihoods(first_row["resps"]))
    return LoggedAnswer(attributes, grades, confidence, all(map(_is_refusal, rows)))


def _get_metrics(row: Mapping[str, Any]) -> dict[str, float]:
    names = row.get("metrics")
    if not isinstance(names, list):
        names = [name for name in row if name not in SAMPLE_FIELDS | _OTHER_FIELDS]
    metrics = {name: to_float(row.get(name)) for name in names if isinstance(name, str)}
    return {name: value for name, value in metrics.items() if value is not None}


def _is_refusal(row: Mapping[str, Any]) -> bool:
    responses = row["filtered_resps"]
    if not isinstance(responses, list) or not responses:
        return False
    return all(response == _NO_ANSWER for response in responses)


def _log_likelihoods(responses: Any) -> list[float]:
    """Return the log-likelihood of each choice, or an empty list if the responses are texts.

    A single log-likelihood is that of the correct answer, so it is not a confidence.
    """
    log_likelihoods: list[float] = []
    for samples in responses if isinstance(responses, list) else ():
        pair = samples[0] if isinstance(samples, list) and samples else None
        if not isinstance(pair, list) or len(pair) != 2:
            return []
        try:
            # Some versions of the harness write numbers as text.
            log_likelihoods.append(float(pair[0]))
        except (TypeError, ValueError):
            return []
    return log_likelihoods
