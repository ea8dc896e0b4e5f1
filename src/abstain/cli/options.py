"""Options that several commands share: roles of columns, losses, intervals and seeds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def repeatable(description: str) -> Parameter:
    """Return the description of an option that may be repeated and is empty by default."""
    return Parameter(help=f"{description} (repeatable)", negative=(), show_default=False)


def list_option(description: str) -> Parameter:
    """Return the description of an option that is followed by several values."""
    return Parameter(help=description, negative=(), consume_multiple=True, show_default=False)


Files = Annotated[
    tuple[Path, ...],
    Parameter(help="Files in CSV, Parquet, Feather, JSON, NPZ or NPY; - for standard input"),
]
Loss = Annotated[str | None, Parameter(help="Loss that defines an error (`abstain list losses`)")]
Level = Annotated[float, Parameter(help="Confidence level of the intervals")]
#: A level whose default is None, so that a command can detect whether the option was passed.
OptionalLevel = Annotated[
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
    """Options that name the column of each role, or the key in an .npz file.

    No option is needed for columns with default names.
    """

    label: Annotated[str | None, Parameter(help="Column with the true class")] = None
    prediction: Annotated[str | None, Parameter(help="Column with the predicted class")] = None
    confidence: Annotated[
        tuple[str, ...], repeatable("Column with a confidence; higher is more confident")
    ] = ()
    correct: Annotated[
        str | None, Parameter(help="Column with the correctness: 1, 0 or a grade")
    ] = None
    own_loss: Annotated[str | None, Parameter(help="Column with a non-negative loss")] = None
    logits: Annotated[
        tuple[str, ...], repeatable("Columns with logits, by name or a pattern such as 'logit_*'")
    ] = ()
    probabilities: Annotated[
        tuple[str, ...],
        repeatable("Columns with class probabilities, by name or pattern such as 'p_*'"),
    ] = ()
    by: Annotated[tuple[str, ...], repeatable("Column whose values are evaluated separately")] = ()
    group: Annotated[str | None, Parameter(help="Column with the group of each sample")] = None
    weight: Annotated[
        str | None, Parameter(help="Column with the frequency weight of each sample")
    ] = None
    id: Annotated[str | None, Parameter(help="Column with the id of each sample")] = None
    long: Annotated[
        str | None,
        Parameter(help="Column with the class, if a sample (--id) has one row per class"),
    ] = None
    unknown_label: Annotated[
        tuple[str, ...], repeatable("Label of samples of unknown classes")
    ] = ()
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
        tuple[str, ...], repeatable("Confidence from 0 to 100, to be divided by 100")
    ] = ()
    decimal: Annotated[Literal[".", ","], Parameter(help="Decimal separator in text files")] = "."
    renormalize: Annotated[
        bool,
        Parameter(help="Accept probabilities that do not sum to 1", negative=()),
    ] = False
    masked: Annotated[
        bool, Parameter(help="Accept logits of -inf, for impossible classes", negative=())
    ] = False


#: The columns if no option is passed. All are found by their default names.
DEFAULT_COLUMNS = Columns()
#: The options of `Columns` have a separate table in the help of a command.
COLUMNS_GROUP = Parameter(name="*", group="Columns of the files")
