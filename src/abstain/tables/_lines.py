"""The lines of text files, looked at before polars reads them: headers, keys, and what is plain.

polars keeps the first of two equal keys, and renames the second of two equal columns.
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

#: What stands in quotes, and a quote that this line does not close.
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|$)')
#: No name of a column has more lines.
_MOST_LINES = 100
_BLOCK = 1 << 20
#: How a text in UTF-16 begins.
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def lines_of(file: IO[bytes], source: str, most: int | None = MAX_HEADER_BYTES) -> Iterator[str]:
    """Yield the lines of a text; refuse to read more than `most` bytes of it, if there is a most.

    Lines end where JSON and CSV say so, not at U+2028 and its like.
    """
    read = line_number = 0
    while line := file.readline(-1 if most is None else most + 1 - read):
        start, read, line_number = read, read + len(line), line_number + 1
        if start == 0 and line.startswith(_UTF16_MARKS):
            raise FileFormatError(_encoding_error(source, 1, line[0], "UTF-16"))
        if most is not None and read > most:
            raise FileFormatError(
                f"{source} cannot be read: its first line, or a quote in it, has no end within "
                f"{most >> 20} MB"
            )
        if b"\x00" in line:
            ending = source.rpartition(".")[2]
            raise FileFormatError(f"{source} is not a text file, though it ends in '.{ending}'")
        try:
            yield line.decode("utf-8" if start else "utf-8-sig")
        except UnicodeDecodeError as error:
            # Every other byte has a meaning in the encodings of Western Europe.
            byte = line[error.start]
            raise FileFormatError(
                _encoding_error(source, line_number, byte, "WINDOWS-1252", "Latin-1")
            ) from error


def refuse_other_encoding(path: Path) -> None:
    """Raise an error that names the probable encoding of a text file that is not UTF-8."""
    with open_regular_file(path) as file:
        for _ in lines_of(file, path.name, None):
            pass


def _encoding_error(
    source: str, line_number: int, byte: int, encoding: str, common_name: str = ""
) -> str:
    named = f"{common_name} ({encoding})" if common_name else encoding
    return (
        f"{source} is not text in UTF-8 (byte 0x{byte:02x} in line {line_number:,}); it is "
        f"probably {named}. Save it as UTF-8, or convert it: iconv -f {encoding} -t UTF-8 OLD > NEW"
    )


# ------------------------------------------------------------------------------------ CSV
def read_header(path: Path) -> tuple[list[str], str, str]:
    """Return the names of the columns, their separator, and what is to say about it.

    The header is one record: a name in quotes may hold separators, quotes and line ends.
    """
    with open_regular_file(path) as file:
        lines = lines_of(file, path.name)
        first = _first_record(lines)
        separator, note = _separator("".join(first), path)
        try:
            names = next(csv.reader(chain(first, lines), delimiter=separator), [])
        except csv.Error as error:
            raise FileFormatError(
                f"the header of {path.name} cannot be read ({error}): is a quote opened and not "
                "closed?"
            ) from error
    return names, separator, note


def _first_record(lines: Iterator[str]) -> list[str]:
    """Return the first line that is not blank, and those after it until every quote is closed."""
    found = [line for line in [next((x for x in lines if x.strip()), "")] if line]
    while "".join(found).count('"') % 2 and len(found) < _MOST_LINES:
        more = next(lines, None)
        if more is None:
            break
        found.append(more)
    return found


def _separator(record: str, path: Path) -> tuple[str, str]:
    if path.suffix.lower() == ".tsv":
        return "\t", ""
    plain = _QUOTED.sub("", record)
    if "," not in plain:
        for other, word in ((";", "semicolons"), ("\t", "tabs")):
            if other in plain:
                return other, f"the columns of {path.name} are separated by {word}"
    return ",", ""


#: Bytes that are searched for line ends at a time.
_CHUNK = 1 << 22


def plain_rows(path: Path, columns: int, separator: str) -> int | None:
    """Return how many rows a CSV file has below its header, where it is plain; None elsewhere.

    Plain is a file without quotes, with nothing but rows of values: none of them blank, none of
    more fields than there are columns. Then each column can be read by itself, and means what it
    does beside all others.
    """
    rows, rest = -1, b""
    with open_regular_file(path) as file:
        while block := file.read(_CHUNK):
            whole, end, rest = (rest + block).rpartition(b"\n")
            found = _plain_lines(whole + end, columns, separator)
            if found is None:
                return None
            rows += found
    last = 0 if not rest else _plain_lines(rest + b"\n", columns, separator)
    return None if last is None or rows < 0 else rows + last


def _plain_lines(text: bytes, columns: int, separator: str) -> int | None:
    """Count whole lines; None where one of them is not plain."""
    text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
    if b'"' in text or b"\r" in text:
        return None
    marks: Array = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(marks == ord("\n"))
    between = np.flatnonzero(marks == ord(separator))
    fields = np.diff(np.searchsorted(between, ends), prepend=0)
    length = np.diff(ends, prepend=-1) - 1
    plain = bool(((fields < columns) & (length > fields)).all())
    return ends.size if plain else None


# ------------------------------------------------------------------------------------ JSON lines
def first_keys(path: Path) -> tuple[str, ...]:
    """Return the keys of the first line; none if it is not valid JSON."""
    with open_regular_file(path) as file:
        line = next((x for x in lines_of(file, path.name) if x.strip()), "")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    return tuple(found) if isinstance(found, dict) else ()


def may_repeat_keys(file: IO[bytes], frame: "pl.DataFrame") -> bool:
    """Tell whether a line may hold a key twice; a no is proven by counting.

    Where no key has a blank behind it, '":' comes at least once for each key of the file; where it
    comes as often as the table has values, no key is left over.
    """
    found = held = 0
    last = b""
    while block := file.read(_BLOCK):
        block = last + block
        if b" :" in block or b"\t:" in block or b"\r:" in block:
            return True
        found += block.count(b'":') - last.count(b'":')
        last = block[-1:]
    for column in frame.iter_columns():
        held += len(column) - column.null_count()
    return found != held


def has_lone_surrogates(file: IO[bytes]) -> bool:
    """Return whether a text escapes half of a surrogate pair, of which polars makes a NUL."""
    for line in file:
        if b"\\ud" in line or b"\\uD" in line:
            text = line.decode(errors="replace")
            if replace_lone_surrogates(text) != text:
                return True
    return False


def json_rows(file: IO[bytes], source: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file with one in each line; NaN and infinities are numbers here."""
    for number, line in enumerate(lines_of(file, source, None), start=1):
        if line.strip():
            yield _row(line, f"{source}: line {number}")


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        return parse_object(line, finite=False)
    except InputError as error:
        raise FileFormatError(
            f"{where} is not a JSON object such as {{'label': 1}}: {error}"
        ) from error
