"""Figures as files, each beside the table of what it draws."""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from abstain._foundation.files import make_folder, write_atomically
from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison
from abstain.evaluation.rules import RuleChecks
from abstain.plots.drawable import Drawable
from abstain.plots.verdicts import checked_rule
from abstain.plots.words import checked
from abstain.report.subjects.comparison.figures import comparison_figures
from abstain.report.subjects.rule.document import rule_figures
from abstain.report.subjects.study.document import checked_study, study_figures
from abstain.studies import StudyResult
from abstain.tables.results import escaped

#: The kinds of files that a figure can be.
FORMATS = ("svg", "pdf", "png")


def write_figures(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Write every figure of a comparison, each with its table.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    folder : path-like
        Made when it does not exist.
    formats : sequence of str, default=("svg", "pdf", "png")
        Some of these.

    Returns
    -------
    list of pathlib.Path
        The files written: for each figure one in each format and a CSV of what it draws.

    Raises
    ------
    InputError
        If `comparison` is something else, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import abstain as ab
    >>> from abstain.evaluation import compare
    >>> samples = ab.Predictions(
    ...     confidence={"msr": [4, 3, 2, 1], "p_e": [3, 4, 1, 2]}, loss=[0, 0, 1, 0]
    ... )
    >>> with tempfile.TemporaryDirectory() as place:
    ...     files = write_figures(compare(samples), place, formats=["svg"])
    >>> [path.name for path in files][:2]
    ['forest_augrc.svg', 'forest_augrc.csv']
    """
    return write_displays(comparison_figures(checked(comparison)), folder, formats)


def write_rule_figures(
    checks: RuleChecks,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = ("svg", "png"),
) -> list[Path]:
    """Write the figures of a checked rule, each with its table.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    folder : path-like
        Made when it does not exist.
    formats : sequence of str, default=("svg", "png")
        Some of "svg", "png" and "pdf".

    Returns
    -------
    list of pathlib.Path
        The files written: for each figure one in each format and a CSV of what it draws.

    Raises
    ------
    InputError
        If `checks` is something else, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     found = write_rule_figures(check_rule(rule, later), place, formats=["svg"])
    >>> [path.name for path in found]
    ['decision-rule.svg', 'decision-rule.csv', 'risk-excess.svg', 'risk-excess.csv']
    """
    return write_displays(rule_figures(checked_rule(checks)), folder, formats)


def write_study_figures(
    result: StudyResult,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = ("svg",),
) -> list[Path]:
    """Write the figures of a study, each with its table.

    Parameters
    ----------
    result : StudyResult
        What a study returned.
    folder : path-like
        Made when it does not exist.
    formats : sequence of str, default=("svg",)
        Some of "svg", "png" and "pdf".

    Returns
    -------
    list of pathlib.Path
        The files written: for each figure one in each format and a CSV of what it draws.

    Raises
    ------
    InputError
        If `result` is something else, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_study_figures(found, folder)
    >>> [path.name for path in files][:2]
    ['bias.svg', 'bias.csv']
    """
    return write_displays(study_figures(checked_study(result)), folder, formats)


def write_displays(
    named: Iterable[tuple[str, Drawable]], folder: str | os.PathLike[str], formats: Sequence[str]
) -> list[Path]:
    """Write each figure in each format, and a CSV of what it draws; return the files."""
    place = Path(folder)
    _refuse_unknown(formats)
    make_folder(place)
    left = []
    for name, content in _drawn(named, formats):
        write_atomically(place / name, content)
        left.append(place / name)
    return left


def display_files(
    named: Iterable[tuple[str, Drawable]], formats: Sequence[str], folder: str = "figures"
) -> dict[str, bytes]:
    """Return the content of the files of `write_displays`, by their names in a folder."""
    _refuse_unknown(formats)
    return {f"{folder}/{name}": content for name, content in _drawn(named, formats)}


def _refuse_unknown(formats: Sequence[str]) -> None:
    unknown = [kind for kind in formats if kind not in FORMATS]
    if unknown:
        msg = f"`formats` must be some of {', '.join(map(repr, FORMATS))}; got {unknown[0]!r}"
        raise InputError(msg)


def _drawn(
    named: Iterable[tuple[str, Drawable]], formats: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    for name, display in named:
        for kind in formats:
            with warnings.catch_warnings():
                # A name in letters that the font lacks is drawn as boxes; its table has it whole.
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
                image = display.image(f".{kind}")
            yield f"{name}.{kind}", image
        # As in the tables of results: no cell is run as a formula by a spreadsheet.
        yield f"{name}.csv", escaped(display.frame()).write_csv().encode()
