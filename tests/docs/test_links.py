"""All links of the pages have existing targets, and all addresses have a listed host.

These tests use no network. `make links` requests the addresses.
"""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from docs.notebooks import NOTEBOOKS
from tests.docs.blocks import DOCS, ROOT

BUILD_FOLDERS = {DOCS / "metrics", DOCS / "reference", DOCS / "_build", DOCS / "generated"}
#: All committed pages and notebooks.
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(p for p in DOCS.rglob("*.md") if not BUILD_FOLDERS & set(p.parents)),
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
#: An address may contain pairs of parentheses.
ADDRESS = re.compile(r"https?://\w(?:[^\s\"'`>\]|\\()]|\([^\s()]*\))*")
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2`*$", re.DOTALL | re.MULTILINE)

#: Hosts of papers, projects and data sets in the pages. Before you add a host, check that its
#: addresses are permanent.
HOSTS = {
    "arxiv.org", "doi.org", "jmlr.org", "openaccess.thecvf.com", "openreview.net",
    "proceedings.mlr.press", "www.jstor.org", "zenodo.org",
    "data-apis.org", "distributed.dask.org", "docs.dask.org", "download.pytorch.org", "github.com",
    "inspect.aisi.org.uk", "keepachangelog.com", "semver.org", "ucbepic.github.io",
    "vega.github.io", "www.contributor-covenant.org",
    "biometrics.nist.gov", "ossci-datasets.s3.amazonaws.com", "wilds.stanford.edu",
    "worksheets.codalab.org", "www.cs.toronto.edu", "www.image-net.org", "www.nist.gov",
}  # fmt: skip
#: Hosts that support only http.
HTTP_HOSTS = {
    "cs231n.stanford.edu", "fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    "ufldl.stanford.edu", "yann.lecun.com",
}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    """Return the text of a page or of the Markdown cells of a notebook, without code blocks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return FENCE.sub("", text)


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST derive them."""
    counts: dict[str, int] = {}
    depth = 3 if DOCS in path.parents else 6  # myst_heading_anchors
    for _, heading in re.findall(rf"^(#{{1,{depth}}}) +(.+?) *#*$", text_of(path), re.MULTILINE):
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = counts.get(anchor, 0)
        counts[anchor] = count + 1
        if count:
            counts[f"{anchor}-{count}"] = 1
    return set(counts)


def broken_links(path: Path) -> list[str]:
    """Return the relative links of a page whose file or heading does not exist."""
    result = []
    for link in LINK.findall(re.sub(r"(`+)[^`\n]+\1", "code", text_of(path))):
        if urlsplit(link).scheme:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            result.append(link)
    return result


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_link_has_an_existing_file_and_heading(path):
    assert broken_links(path) == []


def test_broken_links_are_detected(tmp_path):
    links = [link for path in DOCUMENTS for link in LINK.findall(text_of(path))]
    assert len(links) > 500
    assert sum("#" in link for link in links) > 100
    page = tmp_path / "page.md"
    page.write_text("# A `b` & c\n[1](#a-b--c) [2](page.md#a) [3](gone.md) [4](https://x.org)\n")
    assert broken_links(page) == ["page.md#a", "gone.md"]


def invalid_addresses(text: str) -> list[str]:
    """Return the addresses that are malformed or whose host is not listed."""
    result = []
    for address in ADDRESS.findall(text):
        url = urlsplit(address.rstrip(".,;"))
        hosts = HTTP_HOSTS if url.scheme == "http" else HOSTS
        # Addresses at www.w3.org are XML namespaces, which no reader opens.
        # Sphinx ends an address at "<".
        if "<" in address or url.netloc not in hosts | {"www.w3.org"}:
            result.append(address)
    return result


def test_every_address_has_a_listed_host():
    invalid = {
        name_of(path): invalid_addresses(path.read_text(encoding="utf-8"))
        for path in [*DOCUMENTS, *SOURCES]
    }
    assert {name: addresses for name, addresses in invalid.items() if addresses} == {}


def test_invalid_addresses_are_detected():
    text = "http://arxiv.org/abs/1 https://arxiv.org/abs/2, https://me@doi.org https://doi.og/3"
    invalid = ["http://arxiv.org/abs/1", "https://me@doi.org", "https://doi.og/3"]
    assert invalid_addresses(text) == invalid
    unescaped = "https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT"
    assert invalid_addresses(f"({unescaped}>2.0.CO;2)") == [unescaped]
    escaped = "https://doi.org/10.1175/1520-0493(1950)078%3C0001:VOFEIT"
    assert not invalid_addresses(f"([1]({escaped}))")


def test_pages_that_the_code_mentions_exist():
    mentions = {
        (name_of(path), page)
        for path in [*SOURCES, ROOT / "Makefile"]
        if path.exists()
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert len(mentions) > 10
    assert {mention for mention in mentions if not (ROOT / mention[1]).is_file()} == set()
