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
    tuple[Path, ...],
    Parameter(help="Files in CSV, Parquet, Feather, JSON, NPZ or NPY; - for standard input"),
]
Loss = Annotated[str | None, Parameter(help="Loss that defines an error (`abstain list losses`)")]
Level = Annotated[float, Parameter(help="Confidence level of the intervals")]
#: For a level without a number in the help: whether it was given tells what is without effect.
LevelIfGiven = Annotated[
    float | None, Parameter(help="Confidence level of the intervals [default: 0.95]")
]
Clustered = Annotated[
    bool, Parameter(help="Treat the samples of one --group as dependent", negative=())
]
Seed = Annotated[int, Parameter(help="Seed of all random numbers")]
PrintConfig = Annotated[
    bool,
    Parameter(help="Print the configuration and exit", negative=()),
]
RunsFolder = Annotated[Path, Parameter(help="Folder of runs")]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns (or keys of an .npz) hold what; the usual names are found by themselves."""

    label: Annotated[str | None, Parameter(help="Column with the true class")] = None
    prediction: Annotated[str | None, Parameter(help="Column with the predicted class")] = None
    confidence: Annotated[
        tuple[str, ...], several("Column with a confidence; higher is more trusted")
    ] = ()
    correct: Annotated[
        str | None, Parameter(help="Column with the correctness: 1, 0 or a grade")
    ] = None
    own_loss: Annotated[str | None, Parameter(help="Column with a non-negative loss")] = None
    logits: Annotated[
        tuple[str, ...], several("Columns with logits, by name or a pattern such as 'logit_*'")
    ] = ()
    probabilities: Annotated[
        tuple[str, ...],
        several("Columns with class probabilities, by name or pattern such as 'p_*'"),
    ] = ()
    by: Annotated[tuple[str, ...], several("Column whose values are evaluated separately")] = ()
    group: Annotated[str | None, Parameter(help="Column with the group of each sample")] = None
    weight: Annotated[
        str | None, Parameter(help="Column with the frequency weight of each sample")
    ] = None
    id: Annotated[str | None, Parameter(help="Column with the id of each sample")] = None
    long: Annotated[
        str | None,
        Parameter(help="Column with the class, if a sample (--id) has one row per class"),
    ] = None
    unknown_label: Annotated[tuple[str, ...], several("Label of samples of unknown classes")] = ()
    missing: Annotated[
        Literal["error", "drop", "reject"],
        Parameter(
            help="Treatment of missing confidences: stop, drop the rows, or count as abstentions"
        ),
    ] = "error"
    lower_is_safer: Annotated[
        bool, Parameter(help="Negate the confidences, which are uncertainties", negative=())
    ] = False
    percent: Annotated[
        tuple[str, ...], several("Confidence from 0 to 100, to be divided by 100")
    ] = ()
    decimal: Annotated[Literal[".", ","], Parameter(help="Decimal separator in text files")] = "."
    renormalize: Annotated[
        bool,
        Parameter(help="Accept probabilities that do not sum to 1", negative=()),
    ] = False
    masked: Annotated[
        bool, Parameter(help="Accept logits of -inf, for impossible classes", negative=())
    ] = False


#: No option given: every column is looked for under its usual names.
USUAL_COLUMNS = Columns()
