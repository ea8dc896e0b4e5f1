"""Options that several commands have: which columns hold what, how chance is accounted for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def several(words: str) -> Parameter:
    """Describe an option that may be given again and again; by default it is not given."""
    return Parameter(help=f"{words} (repeatable)", negative=(), show_default=False)


def in_a_row(words: str) -> Parameter:
    """Describe an option that takes several values, one after the other."""
    return Parameter(help=words, negative=(), consume_multiple=True, show_default=False)


Files = Annotated[
    tuple[Path, ...], Parameter(help="CSV, Parquet, Feather, JSON, NPZ, NPY; - for standard input")
]
Loss = Annotated[str | None, Parameter(help="what counts as wrong (`abstain list losses`)")]
Level = Annotated[float, Parameter(help="of the intervals, such as 0.95")]
#: For a level without a number in the help: whether it was given tells what is without effect.
LevelIfGiven = Annotated[
    float | None, Parameter(help="of the intervals, such as 0.9 [default: 0.95]")
]
Clustered = Annotated[
    bool, Parameter(help="samples of one --group are not independent", negative=())
]
Seed = Annotated[int, Parameter(help="of everything drawn")]
PrintConfig = Annotated[
    bool,
    Parameter(help="print the configuration, to save and edit, and do nothing", negative=()),
]
RunsFolder = Annotated[Path, Parameter(help="folder of runs")]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns (or keys of an .npz) hold what; the usual names are found by themselves."""

    label: Annotated[str | None, Parameter(help="true class")] = None
    prediction: Annotated[str | None, Parameter(help="predicted class")] = None
    confidence: Annotated[tuple[str, ...], several("a confidence, higher is more trusted")] = ()
    correct: Annotated[str | None, Parameter(help="right (1) or wrong (0), or graded")] = None
    own_loss: Annotated[str | None, Parameter(help="a loss of your own, not negative")] = None
    logits: Annotated[
        tuple[str, ...], several("logits, by names or a pattern such as 'logit_*'")
    ] = ()
    probabilities: Annotated[
        tuple[str, ...], several("class probabilities, by names or a pattern such as 'p_*'")
    ] = ()
    by: Annotated[tuple[str, ...], several("evaluate each value of this apart")] = ()
    group: Annotated[str | None, Parameter(help="subgroup of each sample")] = None
    weight: Annotated[str | None, Parameter(help="frequency weight of each sample")] = None
    id: Annotated[str | None, Parameter(help="name of each sample")] = None
    long: Annotated[
        str | None, Parameter(help="class of each row, where a sample (--id) has a row for each")
    ] = None
    unknown_label: Annotated[
        tuple[str, ...], several("a label that marks samples of no known class")
    ] = ()
    missing: Annotated[
        Literal["error", "drop", "reject"],
        Parameter(help="what to do with missing confidences: stop, leave out, or rank last"),
    ] = "error"
    lower_is_safer: Annotated[
        bool, Parameter(help="the confidences are uncertainties: turn them around", negative=())
    ] = False
    percent: Annotated[
        tuple[str, ...], several("a confidence in percent, from 0 to 100: divide by 100")
    ] = ()
    decimal: Annotated[
        Literal[".", ","], Parameter(help="decimal mark of the numbers in text files")
    ] = "."
    renormalize: Annotated[
        bool,
        Parameter(
            help="take probabilities that miss a sum of 1 by more than rounding", negative=()
        ),
    ] = False
    masked: Annotated[
        bool, Parameter(help="take logits of -inf: classes a sample cannot have", negative=())
    ] = False


#: No option given: every column is looked for under its usual names.
USUAL_COLUMNS = Columns()
