"""Zstandard (RFC 8878): what packed bytes can come to at most, and their text.

The package `zstandard` would do this in a few lines, but its 5 MB wheel would come with every
installation for one format of logs. Python 3.14 reads these members of archives itself.
"""

from io import BytesIO
from typing import Final

_FRAME: Final = b"\x28\xb5\x2f\xfd"
#: By the flags of a frame's header: the bytes of a dictionary's name, and of the content's size.
_DICTIONARY: Final = (0, 1, 2, 4)
_SIZE: Final = (0, 2, 4, 8)
#: Kinds of blocks; one that is packed comes to no more than this.
_REPEATED, _PACKED = 1, 2
_MOST: Final = 1 << 17
#: No JSON holds this character as it is.
_NOWHERE: Final = "\x1f"


def most_bytes(packed: bytes) -> int:
    """Return a bound of the size of what is packed, which nothing there has to state truly."""
    at = total = 0
    while at < len(packed):
        if packed[at : at + 4] != _FRAME:
            raise ValueError("there is something between frames of Zstandard")
        flags = packed[at + 4]
        single = flags >> 5 & 1
        at += 6 - single + _DICTIONARY[flags & 3] + (_SIZE[flags >> 6] or single)
        last = 0
        while not last:
            block = int.from_bytes(packed[at : at + 3], "little")
            last, kind, size = block & 1, block >> 1 & 3, block >> 3
            at += 3 + (1 if kind == _REPEATED else size)
            total += _MOST if kind == _PACKED else size
            if at > len(packed):
                raise ValueError("a frame of Zstandard is cut short")
        at += 4 * (flags >> 2 & 1)
    return total


def text_of(packed: bytes) -> bytes:
    """Unpack a text of JSON by polars, which brings Zstandard along for its own files."""
    import polars as pl

    lines = pl.read_csv(
        BytesIO(packed),
        has_header=False,
        separator=_NOWHERE,
        quote_char=None,
        infer_schema=False,
        new_columns=["line"],
    )
    return "\n".join(line or "" for line in lines["line"]).encode()
