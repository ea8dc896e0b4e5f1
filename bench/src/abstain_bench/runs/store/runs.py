"""`Run`, a trained network, and `RunScores`, its predictions and confidences for an exposure.

`ScoreFile` reads the archives that `pack_scores` creates. The archives contain no pickled objects.
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
from abstain_bench.runs.methods import update_method_names

#: Key of the validation images, which are stored like the images of an exposure.
VALIDATION: Final = "validation"

#: Arrays of each exposure in a score file. "places" contains the source indices, and "averaged"
#: contains the mean prediction. These two names are kept for compatibility with earlier files.
_OPTIONAL_ARRAYS = ("averaged", "logits")
_REQUIRED_ARRAYS = ("labels", "places", "prediction", "methods", "confidence", "reasons")
#: Number of axes of each array, and the valid kinds of its dtype.
_ARRAY_FORMATS = {
    "labels": (1, "iu"),
    "places": (1, "iu"),
    "prediction": (1, "iu"),
    "methods": (1, "U"),
    "confidence": (2, "f"),
    "reasons": (0, "U"),
    "averaged": (1, "iuf"),
    "logits": (2, "f"),
}
#: Arrays without an axis for the samples.
_ARRAYS_WITHOUT_SAMPLE_AXIS = ("methods", "reasons")


@dataclass(frozen=True)
class Run:
    """A trained network, an imported network, or an ensemble of the networks of all seeds.

    Attributes
    ----------
    name : str
        Unique name in the folder, such as "cross-entropy-dropout0.3-seed1".
    arm : str
        Name of the arm, or "ensemble".
    setting : str
        Label of the setting, such as "dropout0.3", or empty if the arm has one setting.
    seed : int
        Seed of the network. For an ensemble, there is one run per seed.
    model : str
        Name of the backbone.
    facts : mapping
        Recorded facts, such as losses and durations.
    """

    name: str
    arm: str
    setting: str
    seed: int
    model: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RunScores:
    """Predictions and confidence scores of a run for one exposure.

    Attributes
    ----------
    exposure : str
        Key of the exposure, such as "iid" or "corruption-fog-3", or "validation" for the validation
        images.
    labels : int64 ndarray of shape (n,)
        True classes; -1 for an image of an unknown class.
    source_indices : int64 ndarray of shape (n,)
        Index of each image in its source. Copies of an image have the same index and are
        statistically dependent.
    prediction : int64 ndarray of shape (n,)
        Predicted classes.
    mean_prediction : int64 ndarray of shape (n,) or None
        Classes with the largest mean probability over the networks of an ensemble, or over passes
        with dropout. None if the run has neither.
    confidence : mapping from str to float64 ndarray of shape (n,)
        Confidences by method, without the methods that failed.
    logits : float32 ndarray of shape (n, K) or None
        Class logits.
    reasons : mapping from str to str
        Reason for each method without confidences.
    """

    exposure: str
    labels: IntArray
    source_indices: IntArray
    prediction: IntArray
    mean_prediction: IntArray | None
    confidence: Mapping[str, FloatArray]
    logits: FloatArray | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_outputs(
        cls,
        exposure: str,
        outputs: Predictions,
        confidence: Mapping[str, FloatArray],
        reasons: Mapping[str, str],
    ) -> "RunScores":
        """Create a `RunScores` from the outputs and the confidence scores of a network."""
        mean_prediction = None
        if outputs.logit_samples is not None:
            mean = Predictions(logit_samples=outputs.logit_samples, unlabeled=True)
            mean_prediction = mean.prediction_codes
        return cls(
            exposure,
            outputs.label_codes,
            outputs.ids,
            outputs.prediction_codes,
            mean_prediction,
            confidence,
            outputs.logits,
            reasons,
        )

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.labels)

    def subset(self, rows: slice, exposure: str) -> "RunScores":
        """Select images, and return their scores as another exposure, without logits."""
        return RunScores(
            exposure,
            self.labels[rows],
            self.source_indices[rows],
            self.prediction[rows],
            None if self.mean_prediction is None else self.mean_prediction[rows],
            {name: values[rows] for name, values in self.confidence.items()},
            reasons=self.reasons,
        )

    def prediction_for(self, uses_mean_prediction: bool) -> IntArray:
        """Return the mean prediction if it is requested and available, otherwise the prediction."""
        if uses_mean_prediction and self.mean_prediction is not None:
            return self.mean_prediction
        return self.prediction


def pack_scores(scores_by_exposure: Iterable[RunScores]) -> bytes:
    """Pack the scores of several exposures into an archive for `ScoreFile`.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.runs.store import RunScores, pack_scores
    >>> codes = np.array([0, 1])
    >>> scores = RunScores("iid", codes, codes, codes, None, {"msr": np.array([2.0, 1.0])})
    >>> pack_scores([scores])[:2]
    b'PK'
    """
    arrays: dict[str, Array] = {}
    for scores in scores_by_exposure:
        confidence = np.array(list(scores.confidence.values()), np.float64)
        arrays_of_exposure: dict[str, Any] = {
            "labels": scores.labels,
            "places": scores.source_indices,
            "prediction": scores.prediction,
            "methods": np.array(list(scores.confidence), dtype=np.str_),
            # The array has one row per method.
            "confidence": confidence.reshape(-1, scores.n),
            "reasons": np.array(json.dumps(dict(scores.reasons))),
            "averaged": scores.mean_prediction,
            "logits": scores.logits,
        }
        for name, array in arrays_of_exposure.items():
            if array is not None:
                arrays[f"{scores.exposure}/{name}"] = array
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def write_scores(folder: Path, stem: str, scores_by_exposure: Iterable[RunScores]) -> str:
    """Write a score file to a folder of runs, and return its relative path.

    The file name contains a hash of the content, so earlier files are not overwritten.
    """
    content = pack_scores(scores_by_exposure)
    name = f"{stem}-{hashlib.sha256(content).hexdigest()[:12]}.npz"
    make_folder((folder / name).parent)
    write_atomically(folder / name, content)
    return name


def delete_unlisted_files(folder: Path, subfolder: str, listed: Iterable[str]) -> None:
    """Delete the score files in a subfolder that `listed` does not contain."""
    retained = set(listed)
    for path in (folder / subfolder).glob("*.npz"):
        if f"{subfolder}/{path.name}" not in retained:
            path.unlink(missing_ok=True)


class ScoreFile:
    """Reads the scores of one run from a file, one exposure at a time.

    Parameters
    ----------
    path : Path
        Path of a file with the content that `pack_scores` returns.

    Raises
    ------
    FileFormatError
        If the file is damaged or is not a score file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def exposures(self) -> tuple[str, ...]:
        """Keys of the exposures, in file order."""
        names = [name.rpartition("/")[0] for name in self._archive if name.endswith("/labels")]
        return tuple(names)

    def read(self, exposure: str, *, logits: bool = True) -> RunScores:
        """Return the scores of one exposure."""
        return self.read_all([exposure], logits=logits)[exposure]

    def read_all(self, exposures: Iterable[str], *, logits: bool = True) -> dict[str, RunScores]:
        """Return the scores of several exposures by key; the file is opened once."""
        names = {exposure: self._array_names(exposure, logits=logits) for exposure in exposures}
        all_names = [name for names_of_exposure in names.values() for name in names_of_exposure]
        scores = {}
        try:
            arrays = self._archive.read(all_names)
            for exposure, names_of_exposure in names.items():
                arrays_of_exposure = {
                    name.rpartition("/")[2]: arrays[name] for name in names_of_exposure
                }
                scores[exposure] = _build_run_scores(exposure, arrays_of_exposure)
        except (KeyError, ValueError) as error:
            raise _damaged_file_error(self.path) from error
        return scores

    def _array_names(self, exposure: str, *, logits: bool) -> list[str]:
        """Return the names of the arrays of an exposure."""
        if f"{exposure}/labels" not in self._archive:
            raise InputError(f"{self.path.name} has no scores of the exposure {exposure!r}")
        optional = [name for name in _OPTIONAL_ARRAYS if f"{exposure}/{name}" in self._archive]
        names = [*_REQUIRED_ARRAYS, *optional]
        return [f"{exposure}/{name}" for name in names if logits or name != "logits"]

    @cached_property
    def _archive(self) -> Archive:
        try:
            return Archive(self.path)
        except AbstainError as error:
            raise _damaged_file_error(self.path) from error


def _build_run_scores(exposure: str, arrays: dict[str, Any]) -> RunScores:
    """Create a `RunScores` from arrays, or raise ValueError if the arrays are invalid."""
    sample_shape = arrays["labels"].shape[:1]
    for name, array in arrays.items():
        expected_ndim, valid_dtype_kinds = _ARRAY_FORMATS[name]
        if array.ndim != expected_ndim or array.dtype.kind not in valid_dtype_kinds:
            raise ValueError(name)
        shape_over_samples = array.shape[1:] if name == "confidence" else array.shape[:1]
        if name not in _ARRAYS_WITHOUT_SAMPLE_AXIS and shape_over_samples != sample_shape:
            raise ValueError(name)
    methods = arrays["methods"].tolist()
    confidence = dict(zip(methods, arrays["confidence"], strict=True))
    return RunScores(
        exposure=exposure,
        labels=arrays["labels"],
        source_indices=arrays["places"],
        prediction=arrays["prediction"],
        mean_prediction=arrays.get("averaged"),
        confidence=update_method_names(confidence),
        logits=arrays.get("logits"),
        reasons=update_method_names(parse_object(str(arrays["reasons"]))),
    )


def _damaged_file_error(path: Path) -> FileFormatError:
    remedies = {
        "added": "add its scores again, with `replace`",
        "imported": "import it again",
    }
    # All other score files are files of jobs.
    default = "delete it, and `abstain benchmark run` computes it again"
    return FileFormatError(
        f"{str(path)!r} is absent, damaged, or no file of scores; "
        f"{remedies.get(path.parent.name, default)}"
    )
