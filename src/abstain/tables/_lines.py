"""Checks of the encoding, header, separators and keys of text files before polars reads them.

Polars would hide some errors: it keeps only the first value of a repeated key, and it renames the
second of two columns with the same name.
"""

import csv
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from abstain._foundation.input_files import MAX_HEADER_BYTES, open_regular_file
from abstain._foundation.json_records import parse_object, replace_lone_surrogates
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array

if TYPE_CHECKING:
    import polars as pl

#: Text in quotes, or text from a quote without a closing quote to the end of the line.
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|$)')
#: Maximum number of lines that a header can have.
_MAX_HEADER_LINES = 100
_BLOCK_BYTES = 1 << 20
#: First bytes of a text file in UTF-16.
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_lines(
    file: IO[bytes], source: str, max_bytes: int | None = MAX_HEADER_BYTES
) -> Iterator[str]:
    """Yield the lines of a text file.

    If `max_bytes` is set, the function raises an error after this number of bytes. Lines end as in
    JSON and CSV, so characters such as U+2028 do not end a line.
    """
    n_bytes = line_number = 0
    while line := file.readline(-1 if max_bytes is None else max_bytes + 1 - n_bytes):
        is_first_line = n_bytes == 0
        n_bytes += len(line)
        line_number += 1
        if is_first_line and line.startswith(_UTF16_MARKS):
            raise FileFormatError(_encoding_message(source, 1, line[0], "UTF-16"))
        if max_bytes is not None and n_bytes > max_bytes:
            raise FileFormatError(
                f"{source} cannot be read: its first line, or a quote in it, does not end within "
                f"{max_bytes >> 20} MB"
            )
        if b"\x00" in line:
            suffix = source.rpartition(".")[2]
            raise FileFormatError(
                f"{source} is not a text file, although its suffix is '.{suffix}'"
            )
        try:
            yield line.decode("utf-8-sig" if is_first_line else "utf-8")
        except UnicodeDecodeError as error:
            # The message names Windows-1252, the most frequent encoding that accepts all bytes.
            byte = line[error.start]
            raise FileFormatError(
                _encoding_message(source, line_number, byte, "WINDOWS-1252", "Latin-1")
            ) from error


def check_encoding(path: Path) -> None:
    """Raise an error with the probable encoding if a text file is not encoded in UTF-8."""
    with open_regular_file(path) as file:
        for _ in read_lines(file, path.name, None):
            pass


def _encoding_message(
    source: str, line_number: int, byte: int, encoding: str, common_name: str = ""
) -> str:
    name = f"{common_name} ({encoding})" if common_name else encoding
    return (
        f"{source} is not text in UTF-8 (byte 0x{byte:02x} in line {line_number:,}); it is "
        f"probably {name}. Save it as UTF-8, or convert it: iconv -f {encoding} -t UTF-8 OLD > NEW"
    )


# ------------------------------------------------------------------------------------ CSV
def read_header(path: Path) -> tuple[list[str], str, str]:
    """Return the column names and the separator of a CSV file, and a note on an unusual separator.

    The header is one CSV record, so a quoted name may contain separators, quotes and line ends.
    """
    with open_regular_file(path) as file:
        lines = read_lines(file, path.name)
        header_lines = _read_first_record(lines)
        separator, note = _find_separator("".join(header_lines), path)
        try:
            names = next(csv.reader(chain(header_lines, lines), delimiter=separator), [])
        except csv.Error as error:
            raise FileFormatError(
                f"the header of {path.name} cannot be read ({error}); check that each quote is "
                "closed"
            ) from error
    return names, separator, note


def _read_first_record(lines: Iterator[str]) -> list[str]:
    """Return the lines of the first CSV record.

    The record ends with the first line after which all quotes are closed. Blank lines before the
    record are skipped.
    """
    first_line = next((line for line in lines if line.strip()), None)
    if first_line is None:
        return []
    record = [first_line]
    while "".join(record).count('"') % 2 and len(record) < _MAX_HEADER_LINES:
        next_line = next(lines, None)
        if next_line is None:
            break
        record.append(next_line)
    return record


def _find_separator(header: str, path: Path) -> tuple[str, str]:
    """Return the separator of a header, and a note if the file suffix implies another separator."""
    if path.suffix.lower() == ".tsv":
        return "\t", ""
    unquoted = _QUOTED.sub("", header)
    if "," not in unquoted:
        for separator, name in ((";", "semicolons"), ("\t", "tabs")):
            if separator in unquoted:
                return separator, f"the columns of {path.name} are separated by {name}"
    return ",", ""


#: Number of bytes in which line ends are searched at once.
_SEARCH_BYTES = 1 << 22


def count_simple_rows(path: Path, n_columns: int, separator: str) -> int | None:
    """Count the rows of a simple CSV file, or return None for other files.

    A simple file has no quotes, no blank lines, and no row with more fields than columns. Polars
    can read single columns of a simple file.
    """
    n_rows = -1  # The header is not counted.
    remainder = b""
    with open_regular_file(path) as file:
        while block := file.read(_SEARCH_BYTES):
            lines, line_end, remainder = (remainder + block).rpartition(b"\n")
            n_lines = _count_simple_lines(lines + line_end, n_columns, separator)
            if n_lines is None:
                return None
            n_rows += n_lines
    n_last_lines: int | None = 0
    if remainder:
        n_last_lines = _count_simple_lines(remainder + b"\n", n_columns, separator)
    if n_last_lines is None or n_rows < 0:
        return None
    return n_rows + n_last_lines


def _count_simple_lines(text: bytes, n_columns: int, separator: str) -> int | None:
    """Count the lines of a text, or return None if the text is not simple."""
    text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
    if b'"' in text or b"\r" in text:
        return None
    characters: Array = np.frombuffer(text, np.uint8)
    line_ends = np.flatnonzero(characters == ord("\n"))
    separators = np.flatnonzero(characters == ord(separator))
    n_separators = np.diff(np.searchsorted(separators, line_ends), prepend=0)
    line_lengths = np.diff(line_ends, prepend=-1) - 1
    is_simple = (n_separators < n_columns) & (line_lengths > n_separators)
    return line_ends.size if is_simple.all() else None


# ------------------------------------------------------------------------------------ JSON lines
def first_keys(path: Path) -> tuple[str, ...]:
    """Return the keys of the JSON object in the first line, or () if there is no object."""
    with open_regular_file(path) as file:
        line = next((line for line in read_lines(file, path.name) if line.strip()), "")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    return tuple(row) if isinstance(row, dict) else ()


def may_repeat_keys(file: IO[bytes], frame: "pl.DataFrame") -> bool:
    """Return whether a line may contain a key twice.

    If no blank follows the keys, each key is followed by '":'. If '":' occurs exactly as often as
    the dataframe has values, no key is repeated.
    """
    n_keys = n_values = 0
    last_byte = b""
    while block := file.read(_BLOCK_BYTES):
        block = last_byte + block
        if b" :" in block or b"\t:" in block or b"\r:" in block:
            return True
        n_keys += block.count(b'":')
        last_byte = block[-1:]
    for column in frame.iter_columns():
        n_values += len(column) - column.null_count()
    return n_keys != n_values


def has_lone_surrogates(file: IO[bytes]) -> bool:
    """Return whether a text contains an incomplete surrogate pair.

    Polars replaces such characters by NUL.
    """
    for line in file:
        if b"\\ud" in line or b"\\uD" in line:
            text = line.decode(errors="replace")
            if replace_lone_surrogates(text) != text:
                return True
    return False


def json_rows(file: IO[bytes], source: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON object in each line of a file.

    NaN and infinite numbers are accepted.
    """
    for line_number, line in enumerate(read_lines(file, source, None), start=1):
        if not line.strip():
            continue
        try:
            yield parse_object(line, finite=False)
        except InputError as error:
            raise FileFormatError(
                f"{source}: line {line_number} is not a JSON object such as {{'label': 1}}: {error}"
            ) from error
