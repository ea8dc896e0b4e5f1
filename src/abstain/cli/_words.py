"""Sentences of the library in the words of the command line."""

import re

from abstain.cli.columns import Columns

_OPTION = re.compile(
    r"\b(?P<name>" + "|".join((*Columns.__dataclass_fields__, "loss")) + r")="
    r"(?P<value>'[^']*'|[\w.*-]+)"
)


def as_options(text: str) -> str:
    """Write keyword arguments of `read_predictions` as options.

    Examples
    --------
    >>> as_options("pass unknown_label=-1 or logits='z_*'")
    "pass --unknown-label -1 or --logits 'z_*'"
    """
    return _OPTION.sub(lambda found: f"--{_option(found['name'])} {found['value']}", text)


def _option(name: str) -> str:
    # On the command line --loss names a kind of loss, so the column has another option.
    return "own-loss" if name == "loss" else name.replace("_", "-")
