"""What polars raises on a damaged file, told in plain words."""

from contextlib import AbstractContextManager

from abstain._foundation import reading


def plain_words(source: str, format_name: str) -> AbstractContextManager[None]:
    """Turn what polars raises on a damaged file into a FileFormatError of one sentence."""
    import polars as pl

    # A panic of polars is no `Exception`.
    return reading.plain_words(source, format_name, (pl.exceptions.PanicException,))
