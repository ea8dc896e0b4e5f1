"""Pictures of a page: small, and part of it."""

import base64
import io
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

from abstain._foundation.input_files import file_size, open_regular_file
from abstain.errors import AbstainError, InputError
from abstain.evaluation import Evaluation

#: Pixels of the longer side of a picture, at most.
SIDE: Final = 96

#: Bytes of all pictures of a page, at most.
MOST: Final = 3_000_000

#: Bytes of a file that is looked at.
_MOST_OF_FILE: Final = 64 << 20

#: Pixels of an image at most: decoded, converted and turned upright, each takes up to 13 bytes.
_MAX_PIXELS: Final = 25_000_000

#: Names that are those of pictures, and what they are read as.
_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


@dataclass(frozen=True)
class Pictures:
    """Pictures ready for a page.

    Attributes
    ----------
    sources : mapping
        By the name of the sample, or of a benchmark by exposure and row: a picture as a ``data:``
        address.
    reason : str
        Why there are none, or not all.

    Examples
    --------
    >>> from abstain.report import Pictures
    >>> Pictures(reason="torch is not installed").sources
    {}
    """

    sources: Mapping[Any, str] = field(default_factory=dict)
    reason: str = ""


def address(picture: Any) -> str:
    """Return a picture of pillow, made small, as an address that holds all of it."""
    picture.thumbnail((SIDE, SIDE))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def sample_pictures(evaluation: Evaluation, folder: str | Path) -> Pictures:
    """Make small pictures of the samples worth looking at, whose names are files of pictures.

    Answers: what do the most confident failures look like?

    Parameters
    ----------
    evaluation : Evaluation
        Of predictions with ``ids``: names of files, such as "cats/1.png".
    folder : str or Path
        Where they lie. No file outside of it is opened, whatever a name or a link says.

    Returns
    -------
    Pictures
        By the name of the sample, as many as fit 3 MB; `reason` says how many could not be had.

    Raises
    ------
    InputError
        If `evaluation` is something else.

    Notes
    -----
    A picture of 12 megapixels takes a tenth of a second; one of more than 25 megapixels is not
    decoded. What a file says beside its pixels (the
    place and time of a photograph) does not get into the page.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.report import html_report, sample_pictures
    >>> samples = ab.Predictions(confidence=[0.9, 0.8], loss=[1, 0], ids=["a.png", "b.png"])
    >>> found = ab.evaluate(samples)
    >>> pictures = sample_pictures(found, "no such folder")
    >>> print(pictures.reason)
    2 of 2 samples have no picture: 'a.png' is not in no such folder
    >>> page = html_report(found, pictures=pictures)
    """
    given: object = evaluation
    if not isinstance(given, Evaluation):
        raise InputError(
            f"`evaluation` must be what `evaluate` returned; got {type(given).__name__}"
        )
    sources: dict[str, str] = {}
    lacking: dict[str, str] = {}
    held, names = 0, dict.fromkeys(_names(evaluation))
    for name in names:
        try:
            made = _small(name, Path(folder))
        except AbstainError as error:
            lacking[name] = str(error)
            continue
        if held + len(made) > MOST:
            lacking[name] = f"all others fill {MOST // 1_000_000} MB"
            continue
        sources[name] = made
        held += len(made)
    first = next(iter(lacking.values()), "")
    reason = f"{len(lacking)} of {len(names)} samples have no picture: {first}" if lacking else ""
    return Pictures(sources, reason)


def _names(evaluation: Evaluation) -> Iterator[str]:
    """Yield the names of samples that are worth looking at, failures of all scores first."""
    for kind in ("overconfident", "underconfident"):
        samples = chain.from_iterable(getattr(case, kind) for case in evaluation.curves)
        yield from (one.id for one in samples if one.id.lower().endswith(_SUFFIXES))


def _small(name: str, folder: Path) -> str:
    path = _inside(name, folder)
    if file_size(path) > _MOST_OF_FILE:
        raise InputError(f"{name!r} has more than {_MOST_OF_FILE >> 20} MB")
    try:
        with open_regular_file(path) as file:
            return address(_upright(file, name))
    except AbstainError:
        raise
    except Exception as error:
        # A damaged picture raises anything.
        raise InputError(
            f"{name!r} cannot be read as a picture ({type(error).__name__})"
        ) from error


def _upright(file: IO[bytes], name: str) -> Any:
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        # The limit here is lower than the one of this warning.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        # The first bytes decide what it is, not the name.
        with Image.open(file, formats=_FORMATS) as picture:
            if picture.width * picture.height > _MAX_PIXELS:
                raise InputError(f"{name!r} has more than {_MAX_PIXELS // 1_000_000} megapixels")
            picture.draft("RGB", (2 * SIDE, 2 * SIDE))
            upright = ImageOps.exif_transpose(picture)
            return upright.convert("RGBA" if upright.has_transparency_data else "RGB")


def _inside(name: str, folder: Path) -> Path:
    """Return the file of a name; refuse one that is not there, or outside of the folder."""
    try:
        home = folder.resolve()
        path = (home / name).resolve()
        there = path.is_file()
    except (OSError, ValueError, RuntimeError):
        there = False
    if not there or not path.is_relative_to(home):
        raise InputError(f"{name!r} is not in {folder}")
    return path
