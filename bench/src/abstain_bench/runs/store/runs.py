"""`Run` and `RunScores`: one trained network, and what it says of one exposure.

`ScoreFile` reads what `packed` made of several: an archive of plain arrays, and never a pickle.
"""

import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation.archives import Archive
from abstain._foundation.files import make_folder, write_atomically
from abstain._foundation.json_records import parse_object
from abstain.errors import AbstainError, FileFormatError, InputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray, IntArray
from abstain_bench.runs.methods import by_method

__all__ = ["VALIDATION", "Run", "RunScores", "ScoreFile", "packed"]

#: Stands for the validation pictures where an exposure is named.
VALIDATION: Final = "validation"

#: Arrays that may be absent.
_OPTIONAL = ("averaged", "logits")
_ALWAYS = ("labels", "places", "prediction", "methods", "confidence", "reasons")
#: How many axes each array has, and the kinds of its entries.
_FORMS = {
    "labels": (1, "iu"),
    "places": (1, "iu"),
    "prediction": (1, "iu"),
    "methods": (1, "U"),
    "confidence": (2, "f"),
    "reasons": (0, "U"),
    "averaged": (1, "iuf"),
    "logits": (2, "f"),
}
#: Those without a row for each sample.
_BY_METHOD = ("methods", "reasons")


@dataclass(frozen=True)
class Run:
    """One trained network, the networks of all seeds together, or one that was imported.

    Attributes
    ----------
    name : str
        Unique in its folder: "cross-entropy-dropout0.3-seed1".
    arm : str
        What it was trained by: the name of an arm, or "ensemble".
    setting : str
        What the runs of all seeds have in common besides: "dropout0.3". Empty where the arm has
        one setting only.
    seed : int
        Of the network; an ensemble stands in every seed.
    model : str
        Its backbone.
    facts : mapping
        What was written down about it: losses, seconds.
    """

    name: str
    arm: str
    setting: str
    seed: int
    model: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RunScores:
    """What one run says of the pictures of one exposure, scored by every method it allows.

    Attributes
    ----------
    exposure : str
        Its key, such as "iid" or "corruption-fog-3"; "validation" for the validation pictures.
    labels : int64 ndarray of shape (n,)
        The true classes; -1 for a picture of no known class.
    places : int64 ndarray of shape (n,)
        Which picture of the source each is; copies of one share it and are not independent.
    prediction : int64 ndarray of shape (n,)
        The predicted classes.
    averaged : int64 ndarray of shape (n,) or None
        Those by the mean over the dropout passes; None where there are none.
    confidence : mapping from str to float64 ndarray of shape (n,)
        By the name of the method, higher is more trusted; none for methods that gave no numbers.
    logits : float32 ndarray of shape (n, K) or None
        The class logits.
    reasons : mapping from str to str
        Why a method gave no numbers.
    """

    exposure: str
    labels: IntArray
    places: IntArray
    prediction: IntArray
    averaged: IntArray | None
    confidence: Mapping[str, FloatArray]
    logits: FloatArray | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        exposure: str,
        outputs: Predictions,
        confidence: Mapping[str, FloatArray],
        reasons: Mapping[str, str],
    ) -> "RunScores":
        """Return what a network says of an exposure, with the confidences that it was given."""
        averaged = None
        if outputs.logit_samples is not None:
            # The classes predicted by the mean probabilities over passes or networks.
            mean = Predictions(logit_samples=outputs.logit_samples, unlabeled=True)
            averaged = mean.prediction_codes
        return cls(
            exposure,
            outputs.label_codes,
            outputs.ids,
            outputs.prediction_codes,
            averaged,
            confidence,
            outputs.logits,
            reasons,
        )

    @property
    def n(self) -> int:
        """Number of pictures."""
        return len(self.labels)

    def rows(self, rows: slice, exposure: str) -> "RunScores":
        """Return some of the pictures, without logits, under the name of an exposure or study."""
        return RunScores(
            exposure,
            self.labels[rows],
            self.places[rows],
            self.prediction[rows],
            None if self.averaged is None else self.averaged[rows],
            {name: own[rows] for name, own in self.confidence.items()},
            reasons=self.reasons,
        )

    def predicted(self, averages: bool) -> IntArray:
        """Return the predictions that a method judges."""
        return self.averaged if averages and self.averaged is not None else self.prediction


def packed(parts: Iterable[RunScores]) -> bytes:
    """Return the content of a file that `ScoreFile` reads.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.runs.store import RunScores, packed
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


def write_scores(folder: Path, stem: str, parts: Iterable[RunScores]) -> str:
    """Write what `ScoreFile` reads, in a folder of runs; return its name there.

    A hash of what it holds is part of the name, so that what the old one counts for stays.
    """
    content = packed(parts)
    place = f"{stem}-{hashlib.sha256(content).hexdigest()[:12]}.npz"
    make_folder((folder / place).parent)
    write_atomically(folder / place, content)
    return place


def keep_only(folder: Path, within: str, named: Iterable[str]) -> None:
    """Delete the files of scores in a part of a folder of runs that nothing names any more."""
    known = set(named)
    for path in (folder / within).glob("*.npz"):
        if f"{within}/{path.name}" not in known:
            path.unlink(missing_ok=True)


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
        names = [name.rpartition("/")[0] for name in self._archive if name.endswith("/labels")]
        return tuple(names)

    def read(self, exposure: str, *, logits: bool = True) -> RunScores:
        """Return what it holds of one exposure."""
        return self.read_all([exposure], logits=logits)[exposure]

    def read_all(self, exposures: Iterable[str], *, logits: bool = True) -> dict[str, RunScores]:
        """Return what it holds of several exposures, by their keys; the file is opened once."""
        wanted = {exposure: self._names(exposure, logits=logits) for exposure in exposures}
        try:
            read = self._archive.read(name for names in wanted.values() for name in names)
            return {
                exposure: _scores(exposure, {name.rpartition("/")[2]: read[name] for name in names})
                for exposure, names in wanted.items()
            }
        except (KeyError, ValueError) as error:
            raise _damaged(self.path) from error

    def _names(self, exposure: str, *, logits: bool) -> list[str]:
        """Return the names of the arrays of an exposure."""
        if f"{exposure}/labels" not in self._archive:
            raise InputError(f"{self.path.name} says nothing of the exposure {exposure!r}")
        there = [*_ALWAYS, *(one for one in _OPTIONAL if f"{exposure}/{one}" in self._archive)]
        return [f"{exposure}/{name}" for name in there if logits or name != "logits"]

    @cached_property
    def _archive(self) -> Archive:
        try:
            return Archive(self.path)
        except AbstainError as error:
            raise _damaged(self.path) from error


def _scores(exposure: str, found: dict[str, Any]) -> RunScores:
    """Return the scores of an exposure; a ValueError where the arrays do not go together."""
    n = found["labels"].shape[:1]
    for name, array in found.items():
        axes, kinds = _FORMS[name]
        rows = array.shape[1:] if name == "confidence" else array.shape[:1]
        alike = name in _BY_METHOD or rows == n
        if array.ndim != axes or array.dtype.kind not in kinds or not alike:
            raise ValueError(name)
    reasons = by_method(parse_object(str(found.pop("reasons"))))
    names, table = found.pop("methods").tolist(), found.pop("confidence")
    return RunScores(
        exposure=exposure,
        confidence=by_method(dict(zip(names, table, strict=True))),
        reasons=reasons,
        averaged=found.pop("averaged", None),
        **found,
    )


def _damaged(path: Path) -> FileFormatError:
    # Those of others are in folders of their own.
    again = {"added": "add its scores again, with `replace`", "imported": "import it again"}
    anew = "delete it, and `abstain benchmark run` makes it anew"
    return FileFormatError(
        f"{str(path)!r} is absent, damaged, or no file of scores; "
        f"{again.get(path.parent.name, anew)}"
    )
