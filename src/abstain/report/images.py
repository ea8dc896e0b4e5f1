"""Small images of samples, which are embedded in an HTML page."""

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
from abstain.plots.formatting import check_result_type

#: Maximum length of the longer side of an image, in pixels.
MAX_SIDE: Final = 96

#: Maximum size of all images of a page, in bytes.
MAX_TOTAL_BYTES: Final = 3_000_000

#: Maximum size of an image file, in bytes. Larger files are not opened.
_MAX_FILE_BYTES: Final = 64 << 20

#: Maximum number of pixels. Image processing needs up to 13 bytes of memory per pixel.
_MAX_PIXELS: Final = 25_000_000

#: File suffixes and accepted formats of images.
_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


@dataclass(frozen=True)
class SampleImages:
    """Images of samples for a page.

    Attributes
    ----------
    sources : mapping
        The image of each sample as a ``data:`` URL. The keys are the ids of the samples. For a
        benchmark, they are pairs of data set (exposure) and row.
    reason : str
        Reason why images are missing, or an empty string if no image is missing.

    Examples
    --------
    >>> from abstain.report import SampleImages
    >>> SampleImages(reason="torch is not installed").sources
    {}
    """

    sources: Mapping[Any, str] = field(default_factory=dict)
    reason: str = ""


def to_data_url(image: Any) -> str:
    """Shrink a Pillow image in place and return it as a ``data:`` URL."""
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def sample_images(evaluation: Evaluation, folder: str | Path) -> SampleImages:
    """Load small images of the most confident failures and the least confident successes.

    Parameters
    ----------
    evaluation : Evaluation
        Evaluation of predictions whose ``ids`` are names of image files, such as "cats/1.png".
    folder : str or Path
        Folder of the image files. Files outside this folder are never opened, even if an id or a
        symbolic link refers to such a file.

    Returns
    -------
    SampleImages
        Images by the id of the sample, with a total size of at most 3 MB. `reason` contains the
        number of missing images and the reason.

    Raises
    ------
    InputError
        If `evaluation` is not an `Evaluation`.

    Notes ----- Loading an image of 12 megapixels takes about 0.1 s. Images of more than 25
    megapixels are not decoded. The page contains no metadata of the files, such as the location and
    time of a photograph.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.report import html_report, sample_images
    >>> samples = ab.Predictions(confidence=[0.9, 0.8], loss=[1, 0], ids=["a.png", "b.png"])
    >>> evaluation = ab.evaluate(samples)
    >>> images = sample_images(evaluation, "missing")
    >>> print(images.reason)
    2 of 2 samples have no image: 'a.png' is not in missing
    >>> page = html_report(evaluation, images=images)
    """
    check_result_type(evaluation, Evaluation, "evaluation", "evaluate")
    sources: dict[str, str] = {}
    reason_by_name: dict[str, str] = {}
    n_bytes = 0
    names = dict.fromkeys(_image_names(evaluation))
    for name in names:
        try:
            data_url = _load_thumbnail(name, Path(folder))
        except AbstainError as error:
            reason_by_name[name] = str(error)
            continue
        if n_bytes + len(data_url) > MAX_TOTAL_BYTES:
            reason_by_name[name] = (
                f"the other images have a total size of {MAX_TOTAL_BYTES // 1_000_000} MB"
            )
            continue
        sources[name] = data_url
        n_bytes += len(data_url)
    reason = ""
    if reason_by_name:
        first_reason = next(iter(reason_by_name.values()))
        reason = f"{len(reason_by_name)} of {len(names)} samples have no image: {first_reason}"
    return SampleImages(sources, reason)


def _image_names(evaluation: Evaluation) -> Iterator[str]:
    """Yield the file names of the failures, and then those of the successes."""
    for kind in ("overconfident", "underconfident"):
        samples = chain.from_iterable(getattr(case, kind) for case in evaluation.curves)
        yield from (sample.id for sample in samples if sample.id.lower().endswith(_SUFFIXES))


def _load_thumbnail(name: str, folder: Path) -> str:
    """Return the ``data:`` URL of an image file, or raise an error that names the file."""
    path = _resolve_in_folder(name, folder)
    if file_size(path) > _MAX_FILE_BYTES:
        raise InputError(f"{name!r} has more than {_MAX_FILE_BYTES >> 20} MB")
    try:
        with open_regular_file(path) as file:
            return to_data_url(_load_upright_image(file, name))
    except AbstainError:
        raise
    except Exception as error:
        # Pillow raises various exceptions for damaged files.
        raise InputError(f"{name!r} cannot be read as an image ({type(error).__name__})") from error


def _load_upright_image(file: IO[bytes], name: str) -> Any:
    """Return an image in its correct orientation, or raise an error if it is too large."""
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        # The limit of this module is lower than the limit of the Pillow warning.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        # Pillow detects the format from the first bytes of the file, not from the file name.
        with Image.open(file, formats=_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise InputError(f"{name!r} has more than {_MAX_PIXELS // 1_000_000} megapixels")
            image.draft("RGB", (2 * MAX_SIDE, 2 * MAX_SIDE))
            upright = ImageOps.exif_transpose(image)
            return upright.convert("RGBA" if upright.has_transparency_data else "RGB")


def _resolve_in_folder(name: str, folder: Path) -> Path:
    """Return the path of a file inside a folder, or raise an error if there is no such file."""
    try:
        root = folder.resolve()
        path = (root / name).resolve()
        exists = path.is_file()
    except (OSError, ValueError, RuntimeError):
        exists = False
    if not exists or not path.is_relative_to(root):
        raise InputError(f"{name!r} is not in {folder}")
    return path
