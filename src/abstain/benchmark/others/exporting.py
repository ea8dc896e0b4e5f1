"""`export`: what a run says of every picture as one table, to compute confidences from."""

import io
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from abstain._foundation.files import write_atomically
from abstain.benchmark.store import VALIDATION, Run, Store
from abstain.errors import InputError, UnknownNameError, suggest

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Exported:
    """What `export` wrote.

    Attributes
    ----------
    path : Path
        The file.
    runs : tuple of str
        Whose.
    rows : int
        Number of pictures, over all runs and exposures.
    classes : int
        Number of columns of logits; 0 where the runs have none.
    """

    path: Path
    runs: tuple[str, ...]
    rows: int
    classes: int


def export(store: Store, run: Run | str | None, path: str | Path) -> Exported:
    """Write what runs say of every picture as Parquet, for a confidence score to be computed from.

    Answers: what do I need to try my confidence score on these networks?

    Parameters
    ----------
    store : Store
        The folder of runs.
    run : Run, str or None
        One run or its name; None for all that were tested.
    path : str or Path
        Where, with the suffix ".parquet"; what is there is replaced.

    Returns
    -------
    Exported
        What is in the file: the columns run, exposure ("validation" first), row, label (-1 for a
        picture of no known class), prediction, and the logits as logit_0, logit_1, ...

    Raises
    ------
    UnknownNameError
        There is no such run.
    InputError
        The suffix is another, the place cannot be written, or no run was tested.

    See Also
    --------
    abstain.benchmark.others.add_scores : Takes a file with the same run, exposure and row.

    Examples
    --------
    >>> from abstain.benchmark.others import export
    >>> from abstain.benchmark.store import Store
    >>> export(Store.read("runs"), None, "all.parquet")  # doctest: +SKIP
    """
    place = Path(path)
    if place.suffix.lower() != ".parquet":
        msg = f"runs are exported as Parquet: the name must end in '.parquet'; got {str(place)!r}"
        raise InputError(msg)
    import polars as pl

    runs = _runs(store, run)
    if not runs:
        msg = (
            f"no run of {str(store.folder)!r} is tested yet, so that there is nothing to export; "
            f"`abstain benchmark status {quote(str(store.folder))}` says how far it is"
        )
        raise InputError(msg)
    parts = [rows_of_run(store, one) for one in runs]
    # Runs that were imported from probabilities have no logits.
    whole = pl.concat(parts, how="diagonal", rechunk=False)
    content = io.BytesIO()
    whole.write_parquet(content, compression="zstd")
    write_atomically(place, content.getvalue())
    logits = sum(name.startswith("logit_") for name in whole.columns)
    return Exported(place, tuple(one.name for one in runs), whole.height, logits)


def rows_of_run(store: Store, run: Run) -> "pl.DataFrame":
    """Return what one run says of every picture as a table.

    Parameters
    ----------
    store : Store
        The folder of runs.
    run : Run
        One of them.

    Returns
    -------
    polars.DataFrame
        With the columns that `export` writes.

    Examples
    --------
    >>> from abstain.benchmark.others.exporting import rows_of_run
    >>> rows_of_run(store, store.tested[0])  # doctest: +SKIP
    """
    import polars as pl

    kept = next(one for one in store.kept if one.run.name == run.name)
    keys = [VALIDATION] if kept.validation else []
    keys += [one.key for one in store.exposures] if kept.tested else []
    parts = []
    for key in keys:
        said = store.scores(run, key, logits=True)
        columns = {
            "run": pl.Series([run.name], dtype=pl.String).new_from_index(0, said.n),
            "exposure": pl.Series([key], dtype=pl.String).new_from_index(0, said.n),
            "row": np.arange(said.n),
            "label": said.labels,
            "prediction": said.prediction,
        }
        if said.logits is not None:
            columns |= {f"logit_{k}": x for k, x in enumerate(np.asarray(said.logits).T)}
        parts.append(pl.DataFrame(columns))
    return pl.concat(parts, rechunk=False)


def _runs(store: Store, run: Run | str | None) -> tuple[Run, ...]:
    if run is None:
        # Networks that came with the scores of others are no runs of the folder.
        own = {one.name for one in store.added if one.classifier}
        return tuple(one for one in store.tested if one.arm not in own)
    name = run if isinstance(run, str) else run.name
    known = {one.name: one for one in store.runs}
    if name not in known:
        shown = ", ".join(list(known)[:12])
        msg = f"there is no run {name!r} in the folder.{suggest(name, known)} It has: {shown}"
        raise UnknownNameError(msg)
    return (known[name],)
