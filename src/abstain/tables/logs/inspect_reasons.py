"""Reasons for special scores in Inspect: the model gave no answer, or the grader failed."""

from collections.abc import Mapping
from typing import Any, Final

#: The value of a score for "no answer".
_NO_ANSWER: Final = "N"
#: `Score.reason` if the model refused or its completion is empty.
_WITHOUT_ANSWER: Final = frozenset({"refusal", "no_response"})
#: `Score.reason` if the grader or the scorer failed, so that the answer has no grade.
_WITHOUT_GRADE: Final = frozenset({"grader_failed", "scoring_failed"})


def reason_of(reason: Any, metadata: Any) -> str | None:
    """Return the reason of a score; logs before Inspect 0.3.245 have it in the metadata."""
    if reason is None and isinstance(metadata, Mapping):
        reason = metadata.get("unscored_reason")
    return reason if isinstance(reason, str) else None


def is_refusal(value: Any, reason: str | None) -> bool:
    """Return whether a score means that the model gave no answer."""
    return value == _NO_ANSWER or reason in _WITHOUT_ANSWER


def is_ungraded(reason: str | None) -> bool:
    """Return whether a score has no grade because the grader or the scorer failed."""
    return reason in _WITHOUT_GRADE
