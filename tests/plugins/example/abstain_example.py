"""A package that extends abstain: one command, one catalogue and one kind of report."""

from dataclasses import dataclass
from types import SimpleNamespace

from abstain.cli import Command, ListedCatalogue
from abstain.report import Subject
from abstain.report.document import Document, Prose


@dataclass(frozen=True)
class Greeting:
    name: str


def greet(name: str) -> None:
    """Print a greeting."""
    print(f"Hello {name}")


GREETINGS = {"hello": SimpleNamespace(name="hello", title="a greeting", meaning="Greets.")}
COMMAND = Command("Print a greeting.", "abstain_example:greet")
CATALOGUE = ListedCatalogue(
    "Greetings",
    "For the command greet",
    "abstain_example:GREETINGS",
    lambda entry: (entry.meaning,),
)


def greeting_document(greeting, origin):
    paragraph = Prose(f"Hello {greeting.name}")
    return Document(
        origin.title or "A greeting", "Greeting", lambda: [paragraph], lambda: [paragraph]
    )


SUBJECT = Subject(greeting_document)
