"""JSON lines of predictions and labels: what each may hold, and what is said of a bad one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from abstain._foundation.json_records import parse_object, short_repr
from abstain.errors import FileFormatError, InputError

#: The longest line that is read, in bytes; a longer one is a bad line.
MAX_LINE: Final = 1 << 20


def _ignore(_: int) -> None:
    """Take no notice: a pipe cannot be read again."""


@dataclass(frozen=True)
class LineBatch:
    """Lines that were read together; none if nothing arrived for a while.

    Attributes
    ----------
    lines : list of (place, text)
        The text of a line that is longer than `MAX_LINE` is None.
    accept : callable
        To be called with the number of lines that were taken, from the first on. Reading goes on
        behind these after a restart.
    """

    lines: list[tuple[str, str | None]]
    accept: Callable[[int], None] = _ignore

    @classmethod
    def from_bytes(
        cls,
        lines: Sequence[bytes],
        n_before: int,
        file: str = "",
        accept: Callable[[int], None] = _ignore,
    ) -> "LineBatch":
        """Decode lines that follow `n_before` others of the file, which is named in their place."""
        prefix = f"{file}, " if file else ""
        numbered = enumerate(lines, n_before + 1)
        return cls([(f"{prefix}line {i}", _decode(line)) for i, line in numbered], accept)


def _decode(line: bytes) -> str | None:
    if len(line) > MAX_LINE:
        return None
    # Bytes that are not UTF-8 make the line bad, or stay distinct within an id.
    return line.decode("utf-8", "surrogateescape")


#: What says how an answer turned out; a line has one of them.
TRUTHS: Final = ("correct", "loss", "label")


#: Takes the index of a bad line and the error; returns whether to go on with the next line.
OnBadLine: TypeAlias = Callable[[int, FileFormatError], bool]


@dataclass(frozen=True)
class Line:
    """A line that was read: a prediction, a label, or both.

    Attributes
    ----------
    place : str
        Where it stands: "line 7", "part-2.jsonl, line 7".
    id : str
        The name of the prediction.
    confidence : float or None
        None where it is a label alone.
    prediction : str or None
        The predicted class.
    loss : float or None
        What the answer cost, in [0, 1].
    label : str or None
        The true class.

    Examples
    --------
    >>> from abstain.monitoring.lines import parse_line
    >>> parse_line('{"id": 7, "correct": false}', "line 1").loss
    1.0
    """

    location: str
    id: str
    confidence: float | None = None
    prediction: str | None = None
    loss: float | None = None
    label: str | None = None

    @property
    def has_label(self) -> bool:
        """Whether it says how the answer turned out."""
        return self.loss is not None or self.label is not None


def parse_line(text: str | None, location: str, *, scale: str = "score") -> Line:
    """Read one line.

    Parameters
    ----------
    text : str or None
        A JSON object with an `id`; with `confidence` it is a prediction, with one of `correct`,
        `loss` and `label` a label; it may be both, and may have other fields. None if the line is
        longer than `MAX_LINE`.
    place : str
        Named in the error.
    scale : str
        What confidences are measured in.

    Returns
    -------
    Line
        What it says.

    Raises
    ------
    FileFormatError
        With the place, the rule and the value.
    """
    if text is None:
        raise FileFormatError(f"{location}: the line is longer than {MAX_LINE:,} bytes")
    try:
        return _said(parse_object(text), location, scale)
    except InputError as error:
        raise FileFormatError(f"{location}: {error}") from error


def _said(found: dict[str, Any], place: str, scale: str) -> Line:
    truths = [name for name in TRUTHS if name in found]
    if len(truths) > 1:
        raise InputError(
            f"a line has one of `correct`, `loss` and `label`; got {' and '.join(truths)}"
        )
    if "confidence" not in found and not truths:
        msg = "a line has `confidence` (a prediction), or `correct`, `loss` or `label` (a label)"
        raise InputError(f"{msg}; got {', '.join(map(repr, found)) or 'nothing'}")
    return Line(
        place,
        _name(found, "id"),
        _number(found, scale) if "confidence" in found else None,
        _name(found, "prediction") if "prediction" in found else None,
        _truth(found, truths[0]) if truths and truths[0] != "label" else None,
        _name(found, "label") if "label" in found else None,
    )


def parse_lines(
    texts: Sequence[tuple[str, str | None]], scale: str, on_bad_line: OnBadLine
) -> tuple[list[Line], list[int]]:
    """Parse lines, and return them with the index of each; empty lines are ignored."""
    lines: list[Line] = []
    indices: list[int] = []
    for i, (place, text) in enumerate(texts):
        if text is not None and not text.strip():
            continue
        try:
            line = parse_line(text, place, scale=scale)
        except FileFormatError as error:
            if on_bad_line(i, error):
                continue
            break
        lines.append(line)
        indices.append(i)
    return lines, indices


def _name(found: dict[str, Any], field: str) -> str:
    value = found.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        said = short_repr(value) if field in found else "none"
        raise InputError(
            f"`{field}` must be a text that is not empty, or a whole number; got {said}"
        )
    return str(value)


def _number(found: dict[str, Any], scale: str) -> float:
    value = found["confidence"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise InputError(f"`confidence` must be a finite number; got {short_repr(value)}")
    if scale == "probability" and not 0 <= value <= 1:
        raise InputError(
            f"`confidence` must lie in [0, 1] with scale 'probability'; got {short_repr(value)}"
        )
    return float(value)


def _truth(found: dict[str, Any], field: str) -> float:
    """Return the loss of `correct` or `loss`."""
    value = found[field]
    number = isinstance(value, bool | int | float) and _finite(value) and 0 <= value <= 1
    if not number:
        rule = "true, false or in [0, 1]" if field == "correct" else "a number in [0, 1]"
        raise InputError(f"`{field}` must be {rule}; got {short_repr(value)}")
    return 1.0 - float(value) if field == "correct" else float(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
