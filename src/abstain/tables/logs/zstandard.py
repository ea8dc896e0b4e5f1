"""Decompress text in the Zstandard format (RFC 8878), and bound its size before that.

The package `zstandard` would replace this module, but every installation would then download its
5 MB wheel for one format of logs. Python 3.14 supports the format.
"""

from io import BytesIO
from typing import Final

_FRAME_MARK: Final = b"\x28\xb5\x2f\xfd"
#: Numbers of bytes of two fields of a frame header, by two bits of its flags.
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
#: Kinds of blocks.
_REPEATED_BYTE, _COMPRESSED = 1, 2
#: Maximum size of a decompressed block.
_MAX_BLOCK_BYTES: Final = 1 << 17
#: JSON contains this character only in escaped form.
_UNUSED_CHARACTER: Final = "\x1f"


def max_decompressed_bytes(compressed: bytes) -> int:
    """Return an upper bound of the decompressed size, without relying on the stated size."""
    position = max_bytes = 0
    while position < len(compressed):
        if compressed[position : position + 4] != _FRAME_MARK:
            raise ValueError("there are other bytes between Zstandard frames")
        # Bits of the flags: 6 and 7 content size, 5 single segment, 2 checksum, 0 and 1 dictionary.
        flags = compressed[position + 4]
        is_single_segment = flags >> 5 & 1
        has_checksum = flags >> 2 & 1
        content_size_bytes = _CONTENT_SIZE_BYTES[flags >> 6] or is_single_segment
        window_bytes = 1 - is_single_segment
        position += 5 + window_bytes + _DICTIONARY_ID_BYTES[flags & 3] + content_size_bytes
        is_last = 0
        while not is_last:
            # Bits of a block header: 0 last block, 1 and 2 kind, 3 to 23 size.
            header = int.from_bytes(compressed[position : position + 3], "little")
            is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == _REPEATED_BYTE else size)
            max_bytes += _MAX_BLOCK_BYTES if kind == _COMPRESSED else size
            if position > len(compressed):
                raise ValueError("a Zstandard frame is truncated")
        position += 4 * has_checksum
    return max_bytes


def decompress_text(compressed: bytes) -> bytes:
    """Decompress a JSON text with polars, which supports Zstandard for its file formats."""
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
