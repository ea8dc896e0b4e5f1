"""Fetching: checked, resumed after a broken connection, unpacked without leaving the folder."""

import hashlib
import io
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
import requests
from bench.tests.data.published_files import write_idx

from abstain._foundation.catalogue import Catalogue
from abstain.errors import FileFormatError, InputError, MissingInputError, UnknownNameError
from abstain_bench.data import fetching
from abstain_bench.data.fetching import SOURCES, Download, DownloadSource, fetch, unpack
from abstain_bench.data.published import read_mnist

pytest.importorskip("pooch")


class Server(ThreadingHTTPServer):
    """Files by name; breaks the connection after `breaks_after` bytes as often as told."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked, self.breaks = {}, [], 0
        self.ranges, self.encoding, self.lengths, self.sent = True, "", True, 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server, name = self.server, self.path.lstrip("/")
        wanted = self.headers.get("Range")
        server.asked.append((name, wanted))
        content = server.files.get(name)
        if content is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.ranges else 0
        if start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        rest = content[start:]
        self.send_response(206 if start else 200)
        if server.lengths:
            self.send_header("Content-Length", str(len(rest)))
        else:
            self.send_header("Connection", "close")
        if server.encoding:
            self.send_header("Content-Encoding", server.encoding)
        self.end_headers()
        if server.breaks:
            server.breaks -= 1
            self.wfile.write(rest[: len(rest) // 2])
            self.close_connection = True
            return
        for first in range(0, len(rest), 1 << 16):
            try:
                self.wfile.write(rest[first : first + (1 << 16)])
            except OSError:  # the reader has enough
                return
            server.sent += 1 << 16


@pytest.fixture
def server():
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def tar_of(members, *, kind="gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{kind}") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                file.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                file.addfile(info)
    return out.getvalue()


DATA = np.random.default_rng(0).integers(0, 256, 300_000, np.uint8).tobytes()
ARCHIVE = tar_of({"set/a.bin": DATA, "./set/sub/b.txt": b"b"})


def md5(content):
    return hashlib.md5(content).hexdigest()


@pytest.fixture
def source(server, monkeypatch):
    """Offer an archive on the server as the only data set; return what changes its entry."""

    def offer(content=ARCHIVE, *, md5sum=None, size=0, exact=True, **more):
        server.files["set.tar.gz"] = content
        own = md5(content) if md5sum is None else md5sum
        url = f"{server.url}/set.tar.gz"
        file = Download("set.tar.gz", url, own, size, exact=exact, archive=True, **more)
        catalogue = Catalogue("published data set", list_command="data list")
        catalogue.add(DownloadSource("set", "A set", "https://x.org", "MIT", (file,), folder="set"))
        monkeypatch.setattr(fetching, "SOURCES", catalogue)

    return offer


def test_fetched_checked_and_unpacked(tmp_path, server, source):
    source()
    reports = []
    place = fetch("set", tmp_path / "new", progress=lambda *x: reports.append(x))
    assert place == tmp_path / "new" / "set"
    assert (place / "a.bin").read_bytes() == DATA
    assert (place / "sub" / "b.txt").read_bytes() == b"b"
    assert reports[-1] == ("set.tar.gz", len(ARCHIVE), len(ARCHIVE))
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["set", "set.tar.gz"]
    (place / "sub" / "b.txt").unlink()
    (place / "a.bin").write_bytes(DATA[:1000])  # half extracted
    fetch("set", tmp_path / "new")
    assert len(server.asked) == 1  # nothing is fetched twice
    assert (place / "sub" / "b.txt").read_bytes() == b"b"
    assert (place / "a.bin").read_bytes() == DATA


def test_a_broken_connection_goes_on_where_it_was(tmp_path, server, source):
    source()
    server.breaks = 2
    there = []
    for _ in range(2):
        with pytest.raises(InputError, match=r"set.tar.gz could not be fetched .* call again"):
            fetch("set", tmp_path)
        there.append((tmp_path / ".set.tar.gz.fetching" / "set.tar.gz.part").stat().st_size)
    assert 0 < there[0] < there[1] < len(ARCHIVE)
    fetch("set", tmp_path, keep=False)
    assert [w for _, w in server.asked] == [None, *(f"bytes={size}-" for size in there)]
    assert (tmp_path / "set/a.bin").read_bytes() == DATA
    assert [p.name for p in tmp_path.iterdir()] == ["set"]


def left(folder, name, content):
    """Leave a file as a stopped run does."""
    (folder / ".set.tar.gz.fetching").mkdir(exist_ok=True)
    (folder / ".set.tar.gz.fetching" / name).write_bytes(content)


def test_a_run_killed_while_it_checked_loses_nothing(tmp_path, server, source):
    source()
    left(tmp_path, "tmpabc", ARCHIVE)
    left(tmp_path, "tmpdef", b"")
    assert (fetch("set", tmp_path) / "a.bin").read_bytes() == DATA
    assert [wanted for _, wanted in server.asked] == [f"bytes={len(ARCHIVE)}-"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["set", "set.tar.gz"]


def test_a_server_that_calls_the_file_an_encoding(tmp_path, server, source):
    # As Apache does with .gz files: they must stay as they are.
    source()
    server.encoding = "x-gzip"
    assert (fetch("set", tmp_path) / "a.bin").read_bytes() == DATA


def test_a_server_that_cannot_resume_begins_anew(tmp_path, server, source):
    source()
    server.ranges = False
    left(tmp_path, "set.tar.gz.part", b"something else")
    assert fetch("set", tmp_path).is_dir()


@pytest.mark.parametrize("beyond", [b"", b"more"])
def test_a_part_that_is_whole_or_too_long(tmp_path, server, source, beyond):
    source()
    left(tmp_path, "set.tar.gz.part", ARCHIVE + beyond)
    assert (fetch("set", tmp_path) / "a.bin").read_bytes() == DATA
    assert len(server.asked) == (2 if beyond else 1)


def test_a_wrong_checksum_names_the_file_and_what_to_do(tmp_path, source):
    source(md5sum="0" * 32)
    with pytest.raises(FileFormatError, match=r"set.tar.gz from http.* is not the published file"):
        fetch("set", tmp_path)
    assert not list(tmp_path.iterdir())
    # What the user put there is named and kept.
    (tmp_path / "set.tar.gz").write_bytes(b"my own")
    with pytest.raises(FileFormatError, match=rf"MD5 checksum is {md5(b'my own')}.*delete it"):
        fetch("set", tmp_path)
    assert (tmp_path / "set.tar.gz").read_bytes() == b"my own"


def test_without_a_checksum_the_size_is_checked(tmp_path, source):
    source(md5sum="", size=len(ARCHIVE) + 1)
    with pytest.raises(FileFormatError, match=rf"it has {len(ARCHIVE):,} bytes"):
        fetch("set", tmp_path)
    (tmp_path / "set.tar.gz").unlink()
    source(md5sum="", size=7, exact=False)  # a rough size is no check
    assert fetch("set", tmp_path).is_dir()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_sha256_is_checked_where_it_is_known(tmp_path, source):
    # MD5 is forged with ease: what has the one and not the other is refused.
    source(sha256="0" * 64)
    with pytest.raises(FileFormatError, match=r"not the published file: its SHA-256 checksum is"):
        fetch("set", tmp_path)
    assert not list(tmp_path.iterdir())
    source(md5sum="0" * 32, sha256=sha256(ARCHIVE), size=len(ARCHIVE))
    assert (fetch("set", tmp_path) / "a.bin").read_bytes() == DATA
    (tmp_path / "set.tar.gz").write_bytes(bytes(len(ARCHIVE)))
    with pytest.raises(
        FileFormatError, match=rf"SHA-256 checksum is {sha256(bytes(len(ARCHIVE)))}"
    ):
        fetch("set", tmp_path)


ENDLESS = 50_000_000


@pytest.mark.parametrize("begins_well", [True, False])
def test_no_more_than_the_known_size_is_fetched(tmp_path, server, source, begins_well):
    whole = ARCHIVE if begins_well else bytes(len(ARCHIVE))
    reports = []
    source(whole + bytes(ENDLESS), sha256=sha256(ARCHIVE), size=len(ARCHIVE))
    asked = {"progress": lambda _, done, __: reports.append(done)}
    if begins_well:
        assert (fetch("set", tmp_path, **asked) / "a.bin").read_bytes() == DATA
        assert (tmp_path / "set.tar.gz").read_bytes() == ARCHIVE
    else:
        with pytest.raises(FileFormatError, match="is not the published file: its SHA-256"):
            fetch("set", tmp_path, **asked)
        assert not list(tmp_path.iterdir())
    assert max(reports) == len(ARCHIVE)
    # The rest was not even sent: only what fits into the buffers on the way.
    assert server.sent < ENDLESS


def test_what_is_longer_and_has_no_checksum_raises_an_error(tmp_path, source):
    source(ARCHIVE + b"more", md5sum="", size=len(ARCHIVE))
    with pytest.raises(FileFormatError, match=rf"more than {len(ARCHIVE):,} bytes, so it was del"):
        fetch("set", tmp_path)
    assert not list(tmp_path.iterdir())
    rough = SOURCES["iwildcam"].files[0]
    assert rough.size < rough.max_size < 3 * rough.size


@pytest.mark.parametrize("beyond", [b"", b"more"])
def test_a_part_of_the_known_size_is_requested_no_more(tmp_path, server, source, beyond):
    source(sha256=sha256(ARCHIVE), size=len(ARCHIVE))
    left(tmp_path, "set.tar.gz.part", ARCHIVE + beyond)
    assert (fetch("set", tmp_path) / "a.bin").read_bytes() == DATA
    assert server.asked == ([("set.tar.gz", None)] if beyond else [])


def test_an_answer_of_unknown_length_that_ends_early_goes_on(tmp_path, server, source):
    source(sha256=sha256(ARCHIVE), size=len(ARCHIVE))
    server.lengths, server.breaks = False, 1
    with pytest.raises(InputError, match="call again to resume"):
        fetch("set", tmp_path)
    server.lengths = True
    assert (fetch("set", tmp_path) / "a.bin").read_bytes() == DATA
    assert server.asked[1][1] is not None


@pytest.mark.parametrize(
    ("secure", "asked"),
    [
        ("answers", ["https"]),
        ("is refused", ["https", "http"]),
        ("is silent", ["https", "http"]),
        (404, ["https", "http"]),
    ],
)
def test_https_is_tried_first(tmp_path, server, source, monkeypatch, secure, asked):
    source(sha256=sha256(ARCHIVE), size=len(ARCHIVE))
    real, schemes = requests.get, []

    def get(url, **options):
        schemes.append(url.partition(":")[0])
        if schemes[-1] == "http":
            return real(url, **options)
        if secure == "is refused":
            raise requests.exceptions.SSLError
        if secure == "is silent":
            raise requests.exceptions.ConnectTimeout
        url = url.replace("https:", "http:")
        return real(url if secure == "answers" else f"{url}.absent", **options)

    monkeypatch.setattr(requests, "get", get)
    assert (fetch("set", tmp_path) / "a.bin").read_bytes() == DATA
    assert schemes == asked


def test_an_archive_that_is_cut_off_is_named(tmp_path, source):
    source(ARCHIVE[:200_000])
    with pytest.raises(FileFormatError, match=r"set.tar.gz' \(200,000 bytes\) is cut off"):
        fetch("set", tmp_path)
    assert not [p for p in (tmp_path / "set").rglob("*") if p.is_file()]


def test_an_archive_without_a_checksum_is_checked_by_its_own(tmp_path, source):
    damaged = bytearray(ARCHIVE)
    damaged[150_000] ^= 1  # inside the content of a file: its size stays the same
    source(bytes(damaged), md5sum="", size=1, exact=False)
    with pytest.raises(FileFormatError, match=r"cut off or damaged.*CRC"):
        fetch("set", tmp_path)
    assert not (tmp_path / "set").exists()


def test_errors_of_the_network_are_one_line(tmp_path, server, source):
    source()
    server.files.clear()
    with pytest.raises(InputError, match=r"returns 404; put set.tar.gz into") as caught:
        fetch("set", tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"no connection, or it broke"):
        fetch("set", tmp_path, mirror="http://127.0.0.1:9/")
    with pytest.raises(InputError, match="not one of http or https"):
        fetch("set", tmp_path, mirror="/some/folder")


def test_a_mirror_is_checked_too(tmp_path, server, source):
    source()
    server.files["copy/set.tar.gz"] = ARCHIVE
    fetch("set", tmp_path / "a", mirror=f"{server.url}/copy/")
    assert server.asked == [("copy/set.tar.gz", None)]
    server.files["copy/set.tar.gz"] = tar_of({"set/evil": b"x"})
    with pytest.raises(FileFormatError, match="not the published file"):
        fetch("set", tmp_path / "b", mirror=f"{server.url}/copy")


def test_a_full_disk_is_noticed_before(tmp_path, source, server):
    source(size=10**18)
    with pytest.raises(InputError, match=r"needs 1,000,000,000.0 GB"):
        fetch("set", tmp_path)
    assert not server.asked
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file, not a folder"):
        fetch("set", tmp_path / "file" / "below")


def test_what_cannot_be_fetched_says_how_to_have_it(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"register at https://www.image-net.org"):
        fetch("imagenet", tmp_path)
    with pytest.raises(UnknownNameError, match=r"Did you mean 'cifar100'.*abstain data list"):
        fetch("cifar-100", tmp_path)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingInputError, match=r"pooch: pip install pooch"):
        fetch("cifar10", tmp_path)


def test_files_of_a_set_go_to_its_folder(tmp_path, server, monkeypatch):
    made = write_idx(tmp_path / "made")
    server.files = {p.name: p.read_bytes() for p in made.iterdir()}
    files = tuple(
        Download(n, f"{server.url}/{n}", md5(c), into="mnist") for n, c in server.files.items()
    )
    catalogue = Catalogue("published data set")
    catalogue.add(DownloadSource("mnist", "MNIST", "", "", files, folder="mnist"))
    monkeypatch.setattr(fetching, "SOURCES", catalogue)
    train, _ = read_mnist(fetch("mnist", tmp_path / "data"))
    assert train.n == 20


# ------------------------------------------------------------------------------------- unpacking
@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"../out": b"x"}, r"'../out' in it leads out of the folder"),
        ({"/tmp/out": b"x"}, "leads out of the folder"),
        ({"a/../../out": b"x"}, "leads out of the folder"),
        ({"a\\..\\out": b"x"}, "leads out of the folder"),
        ({"in": (tarfile.SYMTYPE, "/etc")}, "is a link or a device"),
        ({"in": (tarfile.LNKTYPE, "../out")}, "is a link or a device"),
        ({"in": (tarfile.FIFOTYPE, "")}, "is a link or a device"),
    ],
)
def test_archives_cannot_lead_out_of_the_folder(tmp_path, members, said):
    archive = tmp_path / "x.tar.gz"
    archive.write_bytes(tar_of(members))
    with pytest.raises(FileFormatError, match=said):
        unpack(archive, tmp_path / "in")
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["x.tar.gz"]


def test_links_that_are_there_already_are_not_followed(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "set").symlink_to(tmp_path / "out")
    archive = tmp_path / "x.tar"
    archive.write_bytes(tar_of({"set/a": b"x"}, kind=""))
    with pytest.raises(FileFormatError, match="would follow a link"):
        unpack(archive, tmp_path / "in")
    assert not list((tmp_path / "out").iterdir())


def test_zip_archives_too(tmp_path):
    good, bad, link = (tmp_path / f"{name}.zip" for name in ("good", "bad", "link"))
    with zipfile.ZipFile(good, "w") as file:
        file.mkdir("set")
        file.writestr("set/a.txt", "a" * 1000)
    unpack(good, tmp_path / "in")
    assert (tmp_path / "in/set/a.txt").read_text() == "a" * 1000
    with zipfile.ZipFile(bad, "w") as file:
        file.writestr("../out", "a")
    with pytest.raises(FileFormatError, match="leads out"):
        unpack(bad, tmp_path / "in")
    with zipfile.ZipFile(link, "w") as file:
        info = zipfile.ZipInfo("l")
        info.external_attr = 0o120777 << 16
        file.writestr(info, "/etc/passwd")
    with pytest.raises(FileFormatError, match="is a link"):
        unpack(link, tmp_path / "in")
    good.write_bytes(good.read_bytes()[:-30])
    with pytest.raises(FileFormatError, match="cut off or damaged"):
        unpack(good, tmp_path / "other")


# -------------------------------------------------------------------------------- what there is
def test_every_source_is_complete():
    for source in SOURCES.values():
        assert source.title
        assert source.license
        assert source.page.startswith("http")
        assert source.checked or source.note
        for file in source.files:
            assert file.url.startswith("http")
            assert len(file.md5) in {0, 32}
            assert len(file.sha256) in {0, 64}
            assert file.sha256 or file.size
        said = {"md5": "nobody publishes a SHA-256", "archive": "No checksum is published"}
        assert said.get(source.checked, "") in source.note
    # Nothing weaker than SHA-256 but where nobody publishes one.
    weaker = {name: own.checked for name, own in SOURCES.items() if own.checked != "sha256"}
    assert weaker.pop("imagenet") == ""
    assert weaker == {"cifar100-c": "md5", "iwildcam": "archive", "camelyon17": "archive"}


def test_the_page_names_every_source():
    from tests.docs.blocks import ROOT

    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    assert [name for name in SOURCES if f"`{name}`" not in text] == []
    for source in SOURCES.values():
        assert [file.md5 for file in source.files if file.md5 not in text] == []
        assert [file.sha256 for file in source.files if file.sha256 not in text] == []


def test_commands(tmp_path, source, capsys):
    from abstain_bench.commands.data import data

    source()
    data(["fetch", "set", "--folder", str(tmp_path), "--no-keep"], result_action="return_value")
    printed = capsys.readouterr()
    assert f"The data set is in {tmp_path / 'set'}" in printed.out
    assert "no SHA-256 is published for it; it has the published MD5" in printed.err
    assert not (tmp_path / "set.tar.gz").exists()
    data(["list"], result_action="return_value")
    out = capsys.readouterr().out
    assert "A set" in out
    assert "md5" in out
    source(sha256=sha256(ARCHIVE))
    data(["fetch", "set", "--folder", str(tmp_path)], result_action="return_value")
    assert capsys.readouterr().err == ""
    data(["list"], result_action="return_value")
    assert "sha256" in capsys.readouterr().out


def test_what_the_disk_does_not_hold_is_not_unpacked(tmp_path, monkeypatch):
    archive = tmp_path / "zeros.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(1 << 20))
    full = SimpleNamespace(total=1 << 30, used=1 << 30, free=1 << 19)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: full)
    with pytest.raises(InputError, match="zeros takes 1,048,576 bytes, and the disk has 524,288"):
        unpack(archive, tmp_path / "in")
    assert not list((tmp_path / "in").iterdir())
