"""A package that extends abstain: one command, one catalogue, one kind of report and one section."""

from dataclasses import dataclass
from types import SimpleNamespace

from abstain.cli import Command, ListedCatalogue
from abstain.report import PageSection, Subject
from abstain.report.document import Document, Prose, Section


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
    paragraph = Prose(f"Hello {greeting.name}", role="key")
    return Document(origin.title or "A greeting", ("Greeting",), lambda: [paragraph])


SUBJECT = Subject(greeting_document)


def greeting_section(evaluation):
    paragraph = Prose(f"Hello {evaluation.results[0].score}")
    return Section("greeting", "A greeting", (paragraph,))


SECTION = PageSection(greeting_section)
