"""Configurations from a task, from a protocol, or from a TOML file."""

from collections.abc import Sequence
from pathlib import Path

from abstain._foundation.toml import read_toml
from abstain_bench.runs.specification.changes import update_config
from abstain_bench.runs.specification.config import Config
from abstain_bench.runs.specification.plain_values import (
    from_plain,
    from_toml_tables,
    prefix_errors,
)
from abstain_bench.runs.specification.protocols import PROTOCOLS

__all__ = ["default_config", "read_config"]


def default_config(
    task: str,
    *,
    seeds: int | Sequence[int] | None = None,
    arms: Sequence[str] | None = None,
    folder: str | Path | None = None,
    epochs: int | None = None,
    model: str | None = None,
    samples: int | None = None,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    corruptions: Sequence[str] | None = None,
    severities: Sequence[int] | None = None,
    precision: str | None = None,
    weights: str | Path | None = None,
    side: int | None = None,
    protocol: str = "",
) -> Config:
    """Return the default configuration of a task, with changed fields.

    Parameters
    ----------
    task : str
        Name in `TASKS`.
    seeds, arms, folder, epochs, model, samples, methods : optional
        Changed fields, as in `update_config`.
    metrics, corruptions, severities, precision, weights, side : optional
        Changed fields, as in `update_config`.
    protocol : str, optional
        Name in `PROTOCOLS`: the published benchmark whose settings replace the defaults. With
        "vit-b16" as `model`, the settings of its transformer.

    Returns
    -------
    Config
        By default the four training objectives of the papers, all methods that score their
        networks, and all exposures.

    Raises
    ------
    InputError
        If the task does not exist, or a change is invalid.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config
    >>> config = default_config("glyphs", seeds=2)
    >>> config.seeds, [arm.name for arm in config.arms]
    ((0, 1), ['cross-entropy', 'confidnet', 'devries', 'deep-gamblers'])
    >>> fd_shifts = default_config("cifar10", protocol="fd-shifts")
    >>> fd_shifts.samples, fd_shifts.arms[1].stage_lengths, fd_shifts.arms[2].recipe.nesterov
    (50, {'confidence': 200, 'fine-tune': 20}, True)
    """
    plain = PROTOCOLS[protocol].to_plain(task, model or "") if protocol else {"task": task}
    return update_config(
        from_plain(plain),
        seeds=seeds,
        arms=arms,
        folder=folder,
        epochs=epochs,
        model=model,
        samples=samples,
        methods=methods,
        metrics=metrics,
        corruptions=corruptions,
        severities=severities,
        precision=precision,
        weights=weights,
        side=side,
    )


def read_config(path: str | Path) -> Config:
    r"""Read a configuration from a TOML file.

    Parameters
    ----------
    path : str or Path
        The file. Fields that it does not contain are as in `default_config`.

    Returns
    -------
    Config
        The configuration of the file.

    Raises
    ------
    InputError
        If the file cannot be read or a field is invalid; the message names the field.
    FileFormatError
        If the file is not valid TOML.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain_bench.runs.specification import read_config
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.toml"
    ...     _ = path.write_text('[benchmark]\ntask = "digits"\nseeds = [3]\n[arms.devries]')
    ...     read_config(path).methods
    ('devries',)
    """
    tables = read_toml(Path(path))
    with prefix_errors(Path(path).name):
        return from_plain(from_toml_tables(tables))
