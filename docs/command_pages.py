"""Pages of the command line: one page per command, with a heading for each option.

`docs/generate.py` writes them to ``docs/cli/``.
"""

import inspect
import types
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from cyclopts import App
from cyclopts.argument import Argument

from abstain.cli.app import complete_application

_TYPE_NAMES = {str: "TEXT", int: "INTEGER", float: "NUMBER", Path: "PATH"}


def command_pages() -> dict[str, str]:
    """Return the page of each command by its file name, such as ``cli/benchmark-run.md``."""
    return {
        page_name(command): _page(command, app) for command, app in _leaves(complete_application())
    }


def command_table() -> str:
    """Return a Markdown table with a link to each command and its purpose."""
    rows = [
        f"| [`abstain {command}`]({page_name(command)}) | {_summary(app)} |"
        for command, app in _leaves(complete_application())
    ]
    return "\n".join(["| command | purpose |", "| --- | --- |", *rows])


def page_name(command: str) -> str:
    """Return the file name of the page of a command."""
    return f"cli/{command.replace(' ', '-')}.md"


def _leaves(parent: App, prefix: str = "") -> Iterator[tuple[str, App]]:
    """Yield the commands that have no commands below them, and those that also run themselves."""
    for name in (name for name in parent if not name.startswith("-")):
        app = parent[name]
        children = list(_leaves(app, f"{prefix}{name} "))
        if not children or app.default_command is not None:
            yield f"{prefix}{name}", app
        yield from children


def _summary(app: App) -> str:
    return _paragraphs(app)[0]


def _paragraphs(app: App) -> list[str]:
    """Return the paragraphs of the description without the section on parameters."""
    text = inspect.cleandoc(app.help).split("\nParameters\n---")[0]
    return [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]


def _page(command: str, app: App) -> str:
    arguments = [a for a in app.assemble_argument_collection() if a.parameter.help]
    positional = [a for a in arguments if not a.names[0].startswith("-")]
    options = [a for a in arguments if a.names[0].startswith("-")]
    usage = " ".join(["abstain", command, *(a.names[0] for a in positional)])
    lines = [f"# `abstain {command}`", *_paragraphs(app)]
    lines.append(f"```text\n{usage}{' [OPTIONS]' if options else ''}\n```")
    for title, group in (("Arguments", positional), ("Options", options)):
        if group:
            lines += [f"## {title}", *(part for a in group for part in _entry(a))]
    return "\n\n".join(lines) + "\n"


def _entry(argument: Argument) -> tuple[str, str]:
    hint = argument.hint
    is_flag = hint is bool
    names = ", ".join(f"`{name}`" for name in argument.names)
    choices = _choices(hint)
    facts = []
    if choices:
        facts.append("One of " + ", ".join(f"`{choice}`" for choice in choices) + ".")
    elif not is_flag:
        facts.append(f"Value: `{_type_name(hint)}`.")
    if argument.required:
        facts.append("Required.")
    default = argument.field_info.default
    if not is_flag and default not in (inspect.Parameter.empty, None, (), ""):
        facts.append(f"Default: `{_text(default)}`.")
    description = " ".join(argument.parameter.help.split())
    sentence = description[:1].upper() + description[1:]
    return (
        f"### {names}",
        f"{sentence}{'' if sentence.endswith('.') else '.'} {' '.join(facts)}".strip(),
    )


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return str(value.value if isinstance(value, Enum) else value)


def _members(hint: Any) -> list[Any]:
    """Return the types in a union or a tuple, without None."""
    if get_origin(hint) in {Union, types.UnionType, tuple}:
        return [m for arg in get_args(hint) if arg not in {type(None), ...} for m in _members(arg)]
    return [hint]


def _choices(hint: Any) -> list[str]:
    members = _members(hint)
    return [str(choice) for m in members if get_origin(m) is Literal for choice in get_args(m)]


def _type_name(hint: Any) -> str:
    names = [_TYPE_NAMES.get(member, "VALUE") for member in _members(hint)]
    unique = list(dict.fromkeys(names))
    return " or ".join(unique)
