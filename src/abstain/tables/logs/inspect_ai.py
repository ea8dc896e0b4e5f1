"""Logs of Inspect (inspect_ai): `.eval`, a zip archive of JSON, and the same as one `.json`."""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from abstain._foundation.archives import check_member_count
from abstain._foundation.input_files import (
    check_fits_memory,
    library_errors_as_format_errors,
    open_regular_file,
)
from abstain._foundation.json_records import parse_object
from abstain.errors import FileFormatError, InputError
from abstain.tables.grades import grade_of
from abstain.tables.logs.answers import CONFIDENCE, LoggedAnswer, answer_table, number, plain
from abstain.tables.logs.inspect_reasons import is_refusal, is_ungraded, reason_of
from abstain.tables.logs.log_probabilities import of_tokens
from abstain.tables.logs.zstandard import most_bytes, text_of
from abstain.tables.table import DataTable

#: What a log in one JSON object always has.
LOG_FIELDS: Final = frozenset({"version", "status", "eval", "samples"})

_FILTERED: Final = "content_filter"

#: By the number in the archive; what Python's zipfile cannot unpack before 3.14.
_ZSTANDARD: Final = 93
#: Of a member's own header in an archive, before its name.
_LOCAL: Final = 30
#: How many bytes of memory the values of a JSON text take for each of it.
_OF_VALUES: Final = 16


def open_log(path: Path) -> DataTable:
    """Open an `.eval` archive."""
    return _table(list(_samples(path)), path.name)


def table_of(log: Mapping[str, Any], source: str) -> DataTable:
    """Return the table of a log that is one JSON object."""
    samples = log["samples"]
    if not isinstance(samples, list):
        raise FileFormatError(
            f"{source} is a log of Inspect without samples; it was written as a header alone"
        )
    return _table([_answer(sample, source) for sample in samples], source)


def _table(answers: list[LoggedAnswer], source: str) -> DataTable:
    notes = []
    ungraded = sum(not a.grades for a in answers)
    if ungraded:
        notes.append(f"{ungraded:,} of {len(answers):,} samples have no score: not finished")
    epochs = len({a.facts["epoch"] for a in answers})
    if epochs > 1:
        notes.append(
            f"each question was asked up to {epochs} times; its rows are not independent: name "
            "'id' as the group and ask for clustered intervals"
        )
    return answer_table(answers, source, notes)


# ------------------------------------------------------------------------------------ archive
def _samples(path: Path) -> Iterator[LoggedAnswer]:
    """Yield the answers of an archive, of which one sample at a time is in memory."""
    with (
        open_regular_file(path) as file,
        library_errors_as_format_errors(path.name, "a log of Inspect"),
        zipfile.ZipFile(file) as archive,
    ):
        check_member_count(file, archive)
        # A sample that was written again comes later, and counts.
        members = {m.filename: m for m in archive.infolist()}
        if not {"header.json", "_journal/start.json"} & set(members):
            raise FileFormatError(f"{path.name} is no log of Inspect, which holds a header.json")
        for name, member in members.items():
            if name.startswith("samples/") and name.endswith(".json"):
                yield _answer(_member(archive, file, member, path.name), path.name)


def _member(
    archive: zipfile.ZipFile, file: IO[bytes], member: zipfile.ZipInfo, source: str
) -> dict[str, Any]:
    check_fits_memory(_OF_VALUES * member.file_size, source, member.filename)
    packed = member.compress_type == _ZSTANDARD
    text = _unpacked(file, member, source) if packed else archive.read(member)
    try:
        return parse_object(text.decode(), finite=False)
    except InputError as error:
        raise FileFormatError(
            f"{source}: {member.filename} cannot be read as json: {error}"
        ) from None


def _unpacked(file: IO[bytes], member: zipfile.ZipInfo, source: str) -> bytes:
    file.seek(member.header_offset)
    before = file.read(_LOCAL)
    # Of the name and of what else stands before the member's bytes.
    file.seek(sum(int.from_bytes(before[at : at + 2], "little") for at in (26, 28)), 1)
    packed = file.read(member.compress_size)
    check_fits_memory(_OF_VALUES * most_bytes(packed), source, member.filename)
    text = text_of(packed)
    if len(text) != member.file_size or zlib.crc32(text) != member.CRC:
        raise ValueError(f"{member.filename} is not what its checksum says")
    return text


# ------------------------------------------------------------------------------------ samples
def _answer(sample: Any, source: str) -> LoggedAnswer:
    fields = _fields(sample)
    name, epoch = fields.get("id"), fields.get("epoch")
    if not isinstance(name, str | int) or not isinstance(epoch, int):
        raise FileFormatError(
            f"{source} is no log of Inspect: a sample must have an id and an epoch"
        )
    facts = {"id": str(name), "epoch": epoch, **plain(fields.get("metadata"), "metadata")}
    scores = _fields(fields.get("scores"))
    grades: dict[str, float | None] = {}
    stated: dict[str, float] = {}
    for name, score in scores.items():
        read = _read_score(name, _fields(score))
        reason = _reason(score)
        if reason is not None:
            facts.setdefault(f"{name}.reason", reason)
        stated |= {k: x for k, x in read.items() if _is_confidence(k) and x is not None}
        grades |= {k: x for k, x in read.items() if not _is_confidence(k)}
    choice = _first(_fields(fields.get("output")).get("choices"))
    refused = (
        choice.get("stop_reason") == _FILTERED
        or _has_refusal_text(choice)
        or any(is_refusal(_fields(s).get("value"), _reason(s)) for s in scores.values())
    )
    return LoggedAnswer(facts, grades, stated | _token_confidence(choice), refused)


def _read_score(scorer: str, score: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the numbers of a score: its value, or each of its values; the stated confidence."""
    value = score.get("value")
    grade = _no_grade if is_ungraded(_reason(score)) else _grade
    if isinstance(value, dict):
        out = {f"{scorer}.{k}": grade(x) for k, x in value.items()}
    else:
        out = {scorer: grade(value)}
    stated = number(_fields(score.get("metadata")).get(CONFIDENCE))
    if stated is not None:
        out.setdefault(f"{scorer}.{CONFIDENCE}", stated)
    return out


def _reason(score: Any) -> str | None:
    fields = _fields(score)
    return reason_of(fields.get("reason"), fields.get("metadata"))


def _has_refusal_text(choice: Mapping[str, Any]) -> bool:
    """Return whether the provider marked a text of the answer as a refusal."""
    content = _fields(choice.get("message")).get("content")
    blocks = content if isinstance(content, list) else []
    return any(_fields(block).get("refusal") is True for block in blocks)


def _is_confidence(name: str) -> bool:
    return name.rpartition(".")[2] == CONFIDENCE


def _grade(value: Any) -> float | None:
    """Return a value as a number; None for a word that is no grade and for an unscored sample."""
    if not isinstance(value, str):
        return number(value)
    grade = grade_of(value)
    if grade is not None:
        return grade
    try:
        return float(value)
    except ValueError:
        return None


def _no_grade(_value: Any) -> None:
    """Return no grade: the value of a score whose grader failed is a placeholder."""


def _token_confidence(choice: Mapping[str, Any]) -> dict[str, float]:
    content = _fields(choice.get("logprobs")).get("content")
    tokens = content if isinstance(content, list) else []
    found = [number(_fields(token).get("logprob")) for token in tokens]
    return of_tokens([x for x in found if x is not None])


def _first(choices: Any) -> Mapping[str, Any]:
    return _fields(choices[0]) if isinstance(choices, list) and choices else {}


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
