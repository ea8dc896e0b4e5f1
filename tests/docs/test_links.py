"""Every link leads somewhere: files, headings in them, and addresses that could be asked for.

`make links` asks for the addresses; here nothing leaves the machine.
"""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from docs.notebooks import NOTEBOOKS
from tests.docs.blocks import DOCS, ROOT

MADE = {DOCS / "metrics", DOCS / "reference", DOCS / "_build", DOCS / "generated"}
#: All that people wrote, wherever it is read.
WRITTEN = sorted(
    [
        *ROOT.glob("*.md"),
        *(p for p in DOCS.rglob("*.md") if not MADE & set(p.parents)),
        *(ROOT / ".github").rglob("*.md"),
        *(ROOT / "tests").rglob("README.md"),
        *NOTEBOOKS.glob("*.ipynb"),
    ]
)
SOURCES = sorted(
    path
    for folder in ("src", "bench/src")
    for ending in ("py", "toml")
    for path in (ROOT / folder).rglob(f"*.{ending}")
)

LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")
#: A bracket that is opened in one is closed in it.
ADDRESS = re.compile(r"https?://\w(?:[^\s\"'`>\]|\\()]|\([^\s()]*\))*")
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2`*$", re.DOTALL | re.MULTILINE)

#: Papers, and the projects and data sets that pages name. Another one belongs here, so that somebody
#: has looked whether it will last.
HOSTS = {
    "arxiv.org", "doi.org", "jmlr.org", "openaccess.thecvf.com", "openreview.net",
    "proceedings.mlr.press", "www.jstor.org", "zenodo.org",
    "data-apis.org", "distributed.dask.org", "docs.dask.org", "download.pytorch.org", "github.com",
    "inspect.aisi.org.uk", "keepachangelog.com", "semver.org", "ucbepic.github.io",
    "vega.github.io", "www.contributor-covenant.org",
    "biometrics.nist.gov", "ossci-datasets.s3.amazonaws.com", "wilds.stanford.edu",
    "worksheets.codalab.org", "www.cs.toronto.edu", "www.image-net.org", "www.nist.gov",
}  # fmt: skip
#: They answer in plain text only.
PLAIN = {
    "cs231n.stanford.edu", "fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    "ufldl.stanford.edu", "yann.lecun.com",
}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    """What is prose: without code, which has brackets of its own."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return FENCE.sub("", text)


@cache
def anchors(path: Path) -> set[str]:
    """The ends of addresses that lead to its headings, as GitHub and MyST make them."""
    results: dict[str, int] = {}
    depth = 3 if DOCS in path.parents else 6  # myst_heading_anchors
    for _, heading in re.findall(rf"^(#{{1,{depth}}}) +(.+?) *#*$", text_of(path), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        count = results.get(slug, 0)
        results[slug] = count + 1
        if count:
            results[f"{slug}-{count}"] = 1
    return set(results)


def broken(path: Path) -> list[str]:
    """The links of a file that lead nowhere."""
    out = []
    for link in LINK.findall(re.sub(r"(`+)[^`\n]+\1", "code", text_of(path))):
        if urlsplit(link).scheme:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            out.append(link)
    return out


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading(path):
    assert broken(path) == []


def test_links_were_found_and_broken_ones_are_seen(tmp_path):
    results = [link for path in WRITTEN for link in LINK.findall(text_of(path))]
    assert len(results) > 500
    assert sum("#" in link for link in results) > 100
    page = tmp_path / "page.md"
    page.write_text("# A `b` & c\n[1](#a-b--c) [2](page.md#a) [3](gone.md) [4](https://x.org)\n")
    assert broken(page) == ["page.md#a", "gone.md"]


def unwanted(text: str) -> list[str]:
    """The addresses that are no address, or of a place that nobody has looked at."""
    out = []
    for address in ADDRESS.findall(text):
        parts = urlsplit(address.rstrip(".,;"))
        known = PLAIN if parts.scheme == "http" else HOSTS
        # A namespace (www.w3.org) is asked for by nobody; user names and ports belong to neither.
        # Sphinx ends an address at "<".
        if "<" in address or parts.netloc not in known | {"www.w3.org"}:
            out.append(address)
    return out


def test_every_address_is_of_a_place_that_somebody_looked_at():
    results = {name_of(p): unwanted(p.read_text(encoding="utf-8")) for p in [*WRITTEN, *SOURCES]}
    assert {name: wrong for name, wrong in results.items() if wrong} == {}
    said = "http://arxiv.org/abs/1 https://arxiv.org/abs/2, https://me@doi.org https://doi.og/3"
    assert unwanted(said) == ["http://arxiv.org/abs/1", "https://me@doi.org", "https://doi.og/3"]
    cut = "https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT"
    assert unwanted(f"({cut}>2.0.CO;2)") == [cut]
    assert not unwanted("([1](https://doi.org/10.1175/1520-0493(1950)078%3C0001:VOFEIT))")


def test_pages_that_code_names_are_there():
    named = {
        (name_of(path), page)
        for path in [*SOURCES, ROOT / "Makefile"]
        if path.exists()
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert {one for one in named if not (ROOT / one[1]).is_file()} == set()
