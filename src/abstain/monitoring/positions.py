"""How far the files of a folder were read."""

from typing import NamedTuple, TypeAlias


class FilePosition(NamedTuple):
    """How far a file was read, and how it is recognized.

    Attributes
    ----------
    name : str
        Its name in the folder when it was last read.
    size, lines : int
        How many of its bytes and lines were read.
    inode : int
        Its number in the file system, which stays when it is renamed; 0 if unknown.
    digest : str
        A hash of the bytes that were read; empty in states of earlier versions.
    """

    name: str
    size: int
    lines: int
    inode: int = 0
    digest: str = ""


#: A position for each file of a watched folder.
Read: TypeAlias = tuple[FilePosition, ...]
