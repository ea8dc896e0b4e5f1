"""Reader of logs of Inspect (inspect_ai), which are ZIP archives (`.eval`) or JSON files."""

import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
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
from abstain.tables.logs.answers import (
    CONFIDENCE,
    LoggedAnswer,
    answer_table,
    is_refusal,
    is_ungraded,
    reason_of,
    scalar_fields,
    to_float,
    token_confidences,
)
from abstain.tables.number_formats import grade_of
from abstain.tables.table import DataTable

#: Fields of every log that is one JSON object.
LOG_FIELDS: Final = frozenset({"version", "status", "eval", "samples"})

_CONTENT_FILTER: Final = "content_filter"

#: Number of the Zstandard compression, which the module zipfile supports from Python 3.14.
_ZSTANDARD: Final = 93
#: Size of the fixed part of a member's header in the archive.
_LOCAL_HEADER_BYTES: Final = 30
#: Positions in this header of the length of the name and the length of additional fields.
_NAME_LENGTH, _EXTRA_LENGTH = slice(26, 28), slice(28, 30)
#: Memory in bytes that the values of a JSON text need per byte of text.
_MEMORY_PER_JSON_BYTE: Final = 16


def open_log(path: Path) -> DataTable:
    """Open an `.eval` archive as a table."""
    return _make_table(list(_read_archive(path)), path.name)


def read_log(log: Mapping[str, Any], source: str) -> DataTable:
    """Convert a log that is one JSON object to a table."""
    samples = log["samples"]
    if not isinstance(samples, list):
        raise FileFormatError(f"{source} is a log of Inspect that contains only a header")
    return _make_table([_parse_sample(sample, source) for sample in samples], source)


def _make_table(answers: list[LoggedAnswer], source: str) -> DataTable:
    """Return a table of the answers, with notes on unfinished samples and repeated samples."""
    notes = []
    n_ungraded = sum(not answer.grades for answer in answers)
    if n_ungraded:
        notes.append(f"{n_ungraded:,} of {len(answers):,} samples have no score: not finished")
    n_epochs = len({answer.attributes["epoch"] for answer in answers})
    if n_epochs > 1:
        notes.append(
            f"a question was repeated up to {n_epochs} times, and its rows are not independent: "
            "name 'id' as the group and use clustered intervals"
        )
    return answer_table(answers, source, notes)


# ------------------------------------------------------------------------------------ archive
def _read_archive(path: Path) -> Iterator[LoggedAnswer]:
    """Yield the answers of an archive, which are read one sample at a time."""
    with (
        open_regular_file(path) as file,
        library_errors_as_format_errors(path.name, "a log of Inspect"),
        zipfile.ZipFile(file) as archive,
    ):
        check_member_count(file, archive)
        # A later member with the same name replaces an earlier member.
        members = {member.filename: member for member in archive.infolist()}
        if not {"header.json", "_journal/start.json"} & set(members):
            raise FileFormatError(
                f"{path.name} is not a log of Inspect, because it has no header.json"
            )
        for name, member in members.items():
            if name.startswith("samples/") and name.endswith(".json"):
                sample = _read_member(archive, file, member, path.name)
                yield _parse_sample(sample, path.name)


def _read_member(
    archive: zipfile.ZipFile, file: IO[bytes], member: zipfile.ZipInfo, source: str
) -> dict[str, Any]:
    """Read and parse a JSON member of an archive."""
    check_fits_memory(_MEMORY_PER_JSON_BYTE * member.file_size, source, member.filename)
    if member.compress_type == _ZSTANDARD:
        text = _read_zstandard_member(file, member, source)
    else:
        text = archive.read(member)
    try:
        return parse_object(text.decode(), finite=False)
    except InputError as error:
        raise FileFormatError(
            f"{source}: {member.filename} cannot be read as json: {error}"
        ) from None


def _read_zstandard_member(file: IO[bytes], member: zipfile.ZipInfo, source: str) -> bytes:
    """Read a member that is compressed with Zstandard, and verify its checksum."""
    file.seek(member.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    name_length = int.from_bytes(header[_NAME_LENGTH], "little")
    extra_length = int.from_bytes(header[_EXTRA_LENGTH], "little")
    file.seek(name_length + extra_length, os.SEEK_CUR)
    compressed = file.read(member.compress_size)
    n_bytes = _MEMORY_PER_JSON_BYTE * max_decompressed_bytes(compressed)
    check_fits_memory(n_bytes, source, member.filename)
    text = decompress_text(compressed)
    if len(text) != member.file_size or zlib.crc32(text) != member.CRC:
        raise ValueError(f"{member.filename} does not match its checksum")
    return text


# ------------------------------------------------------------------------------------ samples
def _parse_sample(sample: Any, source: str) -> LoggedAnswer:
    """Convert a sample of a log to an answer with grades and confidences."""
    fields = _as_dict(sample)
    sample_id, epoch = fields.get("id"), fields.get("epoch")
    if not isinstance(sample_id, str | int) or not isinstance(epoch, int):
        raise FileFormatError(
            f"{source} is not a log of Inspect: a sample must have an id and an epoch"
        )
    metadata = scalar_fields(fields.get("metadata"), "metadata")
    attributes = {"id": str(sample_id), "epoch": epoch, **metadata}
    scores = _as_dict(fields.get("scores"))
    grades: dict[str, float | None] = {}
    confidence: dict[str, float] = {}
    for scorer, score in scores.items():
        reason = _get_reason(score)
        if reason is not None:
            attributes.setdefault(f"{scorer}.reason", reason)
        for name, value in _parse_score(scorer, _as_dict(score)).items():
            is_confidence = name.rpartition(".")[2] == CONFIDENCE
            if not is_confidence:
                grades[name] = value
            elif value is not None:
                confidence[name] = value
    choices = _as_dict(fields.get("output")).get("choices")
    choice = _as_dict(choices[0]) if isinstance(choices, list) and choices else {}
    is_refused = (
        choice.get("stop_reason") == _CONTENT_FILTER
        or _has_refusal_text(choice)
        or any(is_refusal(_as_dict(s).get("value"), _get_reason(s)) for s in scores.values())
    )
    return LoggedAnswer(attributes, grades, confidence | _token_confidences(choice), is_refused)


def _parse_score(scorer: str, score: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the grades of a score, and the confidence in its metadata, by name."""
    value = score.get("value")
    values = {scorer: value}
    if isinstance(value, dict):
        values = {f"{scorer}.{name}": entry for name, entry in value.items()}
    if is_ungraded(_get_reason(score)):
        # If the grader failed, the value of the score is a placeholder.
        numbers: dict[str, float | None] = dict.fromkeys(values)
    else:
        numbers = {name: _parse_grade(entry) for name, entry in values.items()}
    confidence = to_float(_as_dict(score.get("metadata")).get(CONFIDENCE))
    if confidence is not None:
        numbers.setdefault(f"{scorer}.{CONFIDENCE}", confidence)
    return numbers


def _get_reason(score: Any) -> str | None:
    fields = _as_dict(score)
    return reason_of(fields.get("reason"), fields.get("metadata"))


def _has_refusal_text(choice: Mapping[str, Any]) -> bool:
    """Return whether the model provider marked part of the answer as a refusal."""
    content = _as_dict(choice.get("message")).get("content")
    blocks = content if isinstance(content, list) else []
    return any(_as_dict(block).get("refusal") is True for block in blocks)


def _parse_grade(value: Any) -> float | None:
    """Convert a number or a word such as "C" to a grade. Return None for other values."""
    if not isinstance(value, str):
        return to_float(value)
    grade = grade_of(value)
    if grade is not None:
        return grade
    try:
        return float(value)
    except ValueError:
        return None


def _token_confidences(choice: Mapping[str, Any]) -> dict[str, float]:
    content = _as_dict(choice.get("logprobs")).get("content")
    tokens = content if isinstance(content, list) else []
    logprobs = [to_float(_as_dict(token).get("logprob")) for token in tokens]
    return token_confidences([logprob for logprob in logprobs if logprob is not None])


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# ------------------------------------------------------------------------------------ zstandard
_FRAME_MARK: Final = b"\x28\xb5\x2f\xfd"
#: Sizes in bytes of two fields of a frame header, indexed by two bits of its flags.
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
#: Codes of the kinds of blocks.
_REPEATED_BYTE, _COMPRESSED = 1, 2
#: Maximum size of a decompressed block.
_MAX_BLOCK_BYTES: Final = 1 << 17
#: Character that JSON text contains only in escaped form.
_UNUSED_CHARACTER: Final = "\x1f"


def max_decompressed_bytes(compressed: bytes) -> int:
    """Return an upper bound of the size after decompression.

    The size in the archive itself may be wrong.
    """
    position = max_bytes = 0
    while position < len(compressed):
        if compressed[position : position + 4] != _FRAME_MARK:
            raise ValueError("there are other bytes between Zstandard frames")
        # Flags: bits 6 and 7 content size, 5 single segment, 2 checksum, 0 and 1 dictionary.
        flags = compressed[position + 4]
        is_single_segment = flags >> 5 & 1
        has_checksum = flags >> 2 & 1
        content_size_bytes = _CONTENT_SIZE_BYTES[flags >> 6] or is_single_segment
        window_bytes = 1 - is_single_segment
        position += 5 + window_bytes + _DICTIONARY_ID_BYTES[flags & 3] + content_size_bytes
        is_last = 0
        while not is_last:
            # Block header: bit 0 last block, bits 1 and 2 kind, bits 3 to 23 size.
            header = int.from_bytes(compressed[position : position + 3], "little")
            is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == _REPEATED_BYTE else size)
            max_bytes += _MAX_BLOCK_BYTES if kind == _COMPRESSED else size
            if position > len(compressed):
                raise ValueError("a Zstandard frame is truncated")
        position += 4 * has_checksum
    return max_bytes


def decompress_text(compressed: bytes) -> bytes:
    """Decompress a JSON text with the CSV reader of polars, which supports Zstandard."""
    import polars as pl

    lines = pl.read_csv(
        BytesIO(compressed),
        has_header=False,
        separator=_UNUSED_CHARACTER,
        quote_char=None,
        infer_schema=False,
        new_columns=["line"],
    )
    return "\n".join(line or "" for line in lines["line"]).encode()
