"""What every self-contained page keeps to, whatever it shows."""

import base64
import hashlib
import itertools
import re

from tests.report.pages import DISARMED, EVALUATED, HOSTILE, Page, steering

#: Attributes by which an element fetches something or sends something away.
LOADING = ("src", "srcset", "data", "poster", "action", "background")


def references_have_targets(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))
    links = [a["href"][1:] for a in page.of("a") if a["href"].startswith("#")]
    used = [u["xlink:href"][1:] for u in page.of("use")]
    said = " ".join(v for _, attributes in page.elements for v in attributes.values())
    clips = re.findall(r"url\(#([^)]*)\)", said)
    assert links
    assert set(links) | set(used) | set(clips) <= set(page.ids)
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert set(attributes.get(name, "").split()) <= set(page.ids)


def nothing_is_loaded(page: Page, *, scripts: int = 0) -> None:
    for tag, attributes in page.elements:
        assert not [name for name in LOADING if name in attributes], (tag, attributes)
        assert not any("http" in v for n, v in attributes.items() if (tag, n) != ("a", "href"))
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
    tags = {tag for tag, _ in page.elements}
    assert {"link", "image", "iframe", "metadata", "img"}.isdisjoint(tags)
    assert len(page.of("script")) == scripts
    assert len(page.of("style")) == 1
    the_policy_allows_its_scripts_and_no_other(page)


def the_policy_allows_its_scripts_and_no_other(page: Page) -> None:
    """The browser computes the same hashes, and refuses everything that is not allowed."""
    heads = [tag for tag, _ in page.elements[: page.elements.index(("title", {}))]]
    assert heads[:5] == ["html", "head", "meta", "meta", "meta"]
    (said,) = [m["content"] for m in page.of("meta") if "http-equiv" in m]
    assert page.of("meta")[1] == {"http-equiv": "Content-Security-Policy", "content": said}
    rules = dict(part.split(" ", 1) for part in said.split("; "))
    # JSON is no script to a browser.
    ran = [text for name, text in page.scripts.items() if name.startswith("script ")]
    assert not [text for text in ran if "\r" in text]
    # No hash allows a style that stands at an element.
    at_elements = any("style" in attributes for _, attributes in page.elements)
    assert rules == {
        "default-src": "'none'",
        "script-src": hashes(ran) or "'none'",
        "style-src": "'unsafe-inline'" if at_elements else hashes(page.styles),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def hashes(texts: list[str]) -> str:
    keys = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{key}'" for key in keys)


def no_attack_is_evaluated_or_steers(page: Page) -> None:
    text = "".join(page.text)
    assert EVALUATED not in text
    assert HOSTILE[0] in text
    assert HOSTILE[1] in text
    assert DISARMED in text
    said = [value for _, attributes in page.elements for value in attributes.values()]
    assert not steering("".join([*page.text, *said]))


def headings_are_in_order(page: Page) -> None:
    regions = [a["aria-label"] for _, a in page.elements if a.get("role") == "region"]
    assert len(regions) == len(set(regions)), "a screen reader lists regions by their names"
    assert len(page.of("caption")) == len(page.of("table"))
    assert len(page.of("figcaption")) == len(page.of("figure"))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
