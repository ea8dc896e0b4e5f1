"""The parser of the command line. The module of a command is imported when the command runs."""

import inspect
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any, Final

from cyclopts import App, Parameter

from abstain import __version__
from abstain._foundation import plugins
from abstain.errors import InputError, MissingInputError


@dataclass(frozen=True)
class Command:
    """A command: its summary for `abstain --help`, and its function as ``module:name``.

    The module is imported when the command runs. The function must be a command that cyclopts can
    parse, or a `cyclopts.App`. A package adds a command with an entry point of the group
    ``abstain.commands``. The name of the entry point is the name of the command, and its value is
    the location of a `Command`.
    """

    help: str
    function: str
    #: Reason why the command cannot be loaded, or an empty string.
    error: str = ""

    def load(self) -> Any:
        """Import the function, and raise InputError if the import fails."""
        if self.error:
            raise InputError(self.error)
        module, _, name = self.function.partition(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"the command at {self.function!r} cannot be loaded ({error})"
            ) from error


#: The commands of this package.
COMMANDS: Final[dict[str, Command]] = {
    "evaluate": Command(
        "Evaluate confidence scores on files of predictions.", "abstain.cli.evaluate:evaluate"
    ),
    "inspect": Command(
        "Describe files of predictions and print the command that evaluates them.",
        "abstain.cli.inspect:inspect",
    ),
    "compare": Command(
        "Compare methods on the same samples with intervals, tests and rankings.",
        "abstain.cli.compare:compare",
    ),
    "threshold": Command(
        "Choose a threshold with a guarantee, and check it on other data.",
        "abstain.cli.threshold:threshold",
    ),
    "cascade": Command(
        "Choose thresholds for a cascade of models and a person, with a guarantee.",
        "abstain.cli.cascade:cascade",
    ),
    "monitor": Command(
        "Monitor the coverage, confidences and risk of a decision rule in production.",
        "abstain.cli.monitor:monitor",
    ),
    "list": Command("List metrics, scores, rules and other names.", "abstain.cli.listing:listing"),
    "completion": Command(
        "Print the completion script of a shell.",
        "abstain.cli.completion:completion",
    ),
}

#: Commands of abstain-bench, a separate package, and its catalogues in `abstain list`.
_BENCH_COMMANDS: Final = frozenset({"benchmark", "data", "study"})
_BENCH_CATALOGUES: Final = frozenset(
    {"corruptions", "datasets", "models", "protocols", "published", "studies", "tasks"}
)


def all_commands() -> dict[str, Command]:
    """Return the commands of this package and of extensions.

    An extension cannot replace a command.
    """
    commands = dict(COMMANDS)
    for extension in plugins.extensions(plugins.COMMANDS):
        commands.setdefault(extension.name, _load_command(extension))
    return commands


def _load_command(extension: EntryPoint) -> Command:
    try:
        command: Command = plugins.load_extension(extension, Command)
    except InputError as error:
        # The other commands still work, and `abstain --help` prints the reason.
        return Command(str(error), extension.value, str(error))
    return command


def is_command(word: str) -> bool:
    """Return whether a word is a command of this package, of an extension or of abstain-bench."""
    return word in COMMANDS or word in _BENCH_COMMANDS or word in all_commands()


def application(words: list[str]) -> App:
    """Return a parser that imports only the commands whose names are among the words."""
    return _build(_commands_for(words), words)


def complete_application() -> App:
    """Return a parser with all commands that can be imported."""
    commands = _loadable(all_commands())
    return _build(commands, commands)


def _loadable(commands: Mapping[str, Command]) -> dict[str, Command]:
    return {name: command for name, command in commands.items() if _is_loadable(command)}


def _is_loadable(command: Command) -> bool:
    try:
        command.load()
    except InputError:
        return False
    return True


def _build(commands: Mapping[str, Command], loaded: Container[str]) -> App:
    """Return a parser for all commands that imports only the commands in `loaded`."""
    app = App(
        name="abstain",
        help="Evaluate, compare and deploy classifiers that may abstain, from files of "
        "predictions. Every command accepts --traceback, which prints where an error occurred.",
        version=__version__,
        help_format="plaintext",
        # Arguments are not parsed as JSON, because a file may be named "[1].csv".
        default_parameter=Parameter(json_list=False, json_dict=False),
        # `abstain.cli.main` handles the interrupt.
        suppress_keyboard_interrupt=False,
    )
    for name, command in commands.items():
        if name in loaded:
            function = command.load()
            options = {} if isinstance(function, App) else {"help": _reflow(function)}
            app.command(function, name=name, **options)
        else:
            app.command(command.function, name=name, help=command.help)
    return app


def _reflow(function: Callable[..., Any]) -> str:
    """Return a docstring with one line per paragraph, so that the terminal can wrap it."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _commands_for(words: list[str]) -> dict[str, Command]:
    """Return all commands, or only those of this package if one of them is called."""
    _check_bench_is_installed(words)
    if words and words[0] in COMMANDS:
        return COMMANDS
    commands = all_commands()
    if words and words[0] not in commands and not words[0].startswith("-"):
        # For an unknown word, cyclopts imports every command to suggest one.
        return _loadable(commands)
    return commands


def _check_bench_is_installed(words: list[str]) -> None:
    """Raise an error if the words require abstain-bench and it is not installed."""
    missing = ""
    command = words[0] if words else ""
    if command in _BENCH_COMMANDS and not _is_extension(command, plugins.COMMANDS):
        missing = f"the command {command!r}"
    if command == "list" and len(words) > 1:
        catalogue = words[1]
        if catalogue in _BENCH_CATALOGUES and not _is_extension(catalogue, plugins.CATALOGUES):
            missing = f"the catalogue {catalogue!r}"
    if missing:
        raise MissingInputError(
            f"{missing} requires the package abstain-bench: pip install abstain-bench"
        )


def _is_extension(name: str, group: str) -> bool:
    """Return whether an installed package has an entry point with this name in the group."""
    return any(extension.name == name for extension in plugins.extensions(group))
