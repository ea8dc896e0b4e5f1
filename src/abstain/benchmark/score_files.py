"""What a run says of exposures as one archive of plain arrays: never a pickle."""

import io
import json
import zipfile
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation.saved import parsed
from abstain.benchmark.runs import RunScores
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array

__all__ = ["ScoreFile", "packed"]

#: Arrays that may be absent.
_OPTIONAL = ("averaged", "logits")
_ALWAYS = ("labels", "places", "prediction", "methods", "confidence", "reasons")


def packed(parts: Iterable[RunScores]) -> bytes:
    """Return the content of a file that `ScoreFile` reads.

    Parameters
    ----------
    parts : iterable of RunScores
        One an exposure.

    Returns
    -------
    bytes
        Of an NPZ archive; the arrays of an exposure are under ``<exposure>/<name>``.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.benchmark.runs import RunScores
    >>> from abstain.benchmark.score_files import packed
    >>> codes = np.array([0, 1])
    >>> part = RunScores("iid", codes, codes, codes, None, {"msr": np.array([2.0, 1.0])})
    >>> packed([part])[:2]
    b'PK'
    """
    arrays: dict[str, Array] = {}
    for part in parts:
        given: dict[str, Any] = {
            "labels": part.labels,
            "places": part.places,
            "prediction": part.prediction,
            "methods": np.array(list(part.confidence), dtype=np.str_),
            # One row a method, so that one method is read without the others being gone through.
            "confidence": np.array(list(part.confidence.values()), np.float64).reshape(-1, part.n),
            "reasons": np.array(json.dumps(dict(part.reasons))),
            "averaged": part.averaged,
            "logits": part.logits,
        }
        for name, array in given.items():
            if array is not None:
                arrays[f"{part.exposure}/{name}"] = array
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


class ScoreFile:
    """The exposures of one run, each read when it is asked for.

    Parameters
    ----------
    path : Path
        What `packed` made.

    Raises
    ------
    FileFormatError
        It is no such file, or a damaged one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def exposures(self) -> tuple[str, ...]:
        """The keys of the exposures in it, in the order written."""
        with self._open() as archive:
            names = [name.rpartition("/")[0] for name in archive.files if name.endswith("/labels")]
        return tuple(names)

    def read(self, exposure: str, *, logits: bool = True) -> RunScores:
        """Return what it holds of one exposure.

        Parameters
        ----------
        exposure : str
            The key of the exposure.
        logits : bool, default=True
            Whether the class logits are wanted; they are the larger half of most files.

        Returns
        -------
        RunScores
            Its `logits` are None where they are not wanted.

        Raises
        ------
        InputError
            The file says nothing of this exposure.
        FileFormatError
            The file is damaged.
        """
        with self._open() as archive:
            if f"{exposure}/labels" not in archive.files:
                msg = f"{self.path.name} says nothing of the exposure {exposure!r}"
                raise InputError(msg)
            wanted = [*_ALWAYS, *_OPTIONAL[: 1 + logits]]
            try:
                found = {
                    name: archive[f"{exposure}/{name}"]
                    for name in wanted
                    if name in _ALWAYS or f"{exposure}/{name}" in archive.files
                }
                reasons = parsed(str(found.pop("reasons")))
            except (KeyError, OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
                raise _damaged(self.path) from error
        names, table = found.pop("methods"), found.pop("confidence")
        if len(names) != len(table):
            raise _damaged(self.path)
        by_method = {str(name): row for name, row in zip(names, table, strict=True)}
        return RunScores(
            exposure=exposure,
            confidence=by_method,
            reasons=reasons,
            averaged=found.pop("averaged", None),
            **found,
        )

    def _open(self) -> Any:
        try:
            found = np.load(self.path, allow_pickle=False)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise _damaged(self.path) from error
        if not isinstance(found, np.lib.npyio.NpzFile):
            # One array and no archive.
            raise _damaged(self.path)
        return found


def _damaged(path: Path) -> FileFormatError:
    # Those of others are in folders of their own.
    again = {"added": "add its scores again, with `replace`", "imported": "import it again"}
    anew = "delete it, and `abstain benchmark run` makes it anew"
    return FileFormatError(
        f"{str(path)!r} is absent, damaged, or no file of scores; "
        f"{again.get(path.parent.name, anew)}"
    )
