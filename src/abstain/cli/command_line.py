"""What the command line was given, and options of the library in its words."""

import shlex
from contextvars import ContextVar

#: The arguments of the run in progress, for the report to repeat.
ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def as_flag(name: str, value: object) -> str:
    """Write an option as a flag, its value as a shell takes it; for a list, a flag each.

    Examples
    --------
    >>> as_flag("unknown_label", None), as_flag("logits", "z_*"), as_flag("label", "-x")
    ('--unknown-label', "--logits 'z_*'", '--label=-x')
    """
    # On the command line --loss names a kind of loss, so the column has another option.
    own = flag("own_loss" if name == "loss" else name)
    if isinstance(value, list):
        return " ".join(as_flag(name, item) for item in value)
    if value is None or value is True:
        return own
    given = shlex.quote(str(value))
    return f"{own}={given}" if given.startswith("-") else f"{own} {given}"


def flag(name: str) -> str:
    """Write the name of an option as a flag."""
    return f"--{name.replace('_', '-')}"
