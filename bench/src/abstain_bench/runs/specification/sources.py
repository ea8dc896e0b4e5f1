"""A configuration from its task alone, as a protocol has it, or from a file."""

from collections.abc import Sequence
from pathlib import Path

from abstain._foundation.toml import read_toml
from abstain_bench.runs.specification.changes import changed
from abstain_bench.runs.specification.config import Config
from abstain_bench.runs.specification.plain_values import flat, from_plain, named
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
    """Return the configuration of a task for which nothing is written down.

    Parameters
    ----------
    task : str
        In `TASKS`.
    seeds, arms, folder, epochs, model, samples, methods : optional
        What is otherwise, as for `changed`.
    metrics, corruptions, severities, precision, weights, side : optional
        The same.
    protocol : str, optional
        In `PROTOCOLS`: whose settings stand for ours; with "vit-b16" as `model`, those of its
        transformer.

    Returns
    -------
    Config
        The papers' four ways to train, each method that scores one of them, all exposures; or
        what the protocol has.

    Raises
    ------
    InputError
        There is no such task, or a change that cannot be.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config
    >>> config = default_config("glyphs", seeds=2)
    >>> config.seeds, [arm.name for arm in config.arms]
    ((0, 1), ['cross-entropy', 'confidnet', 'devries', 'deep-gamblers'])
    >>> theirs = default_config("cifar10", protocol="fd-shifts")
    >>> theirs.samples, theirs.arms[1].stages, theirs.arms[2].recipe.nesterov
    (50, {'confidence': 200, 'fine-tune': 20}, True)
    """
    found = PROTOCOLS[protocol].plain(task, model or "") if protocol else {"task": task}
    return changed(
        from_plain(found),
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
        The file; what it does not say is as in `default_config`.

    Returns
    -------
    Config
        What it describes.

    Raises
    ------
    InputError
        The file cannot be read, or a field of it is wrong: the error names it.
    FileFormatError
        The file is no TOML.

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
    place = Path(path)
    found = read_toml(place)
    with named(place.name):
        return from_plain(flat(found))
