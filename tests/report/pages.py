"""Names that attack an output format, and a parser that shows whether one got through."""

import unicodedata
from html.parser import HTMLParser

HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "{{7*'7'}}{% raw %}",
    "a\"b'c&d<e>|f`g",
    "[bold]rich[/bold] __proto__",
    "50 %_#$~^\\end{tabular}",
    "\x1b[31mred\x1b[0m\x07\x9b2J\u202eevil\x7f\u2028",
)

#: The attack as it may be shown.
DISARMED = r"\x1b[31mred\x1b[0m\x07\x9b2J\u202eevil\x7f\u2028"

#: What the template language makes of the second name; no number of a page has these digits.
EVALUATED = "7777777"


def steering(text: str) -> list[str]:
    """Characters of a text that steer a terminal or turn the reading, line breaks apart."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return [c for c in text if unicodedata.category(c) in kinds and c not in "\n\t"]


class Page(HTMLParser):
    """Collects what the tests ask of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: dict[str, str] = {}
        self.styles: list[str] = []
        self.text: list[str] = []
        self.stack: list[str] = []
        self._script = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        self.stack.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "script":
            self._script = attributes.get("id", f"script {len(self.scripts)}")

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "script":
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
        elif self.stack and self.stack[-1] == "style":
            self.styles.append(data)
        elif self.stack:
            self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]
