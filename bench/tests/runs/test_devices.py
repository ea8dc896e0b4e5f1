"""Devices: read, refused where they are not, and dealt out."""

import subprocess
import sys

import pytest

from abstain.errors import InputError
from abstain_bench.runs.jobs import engine
from abstain_bench.runs.jobs.engine import (
    check_devices_available,
    device_kind,
    device_of_this_process,
    parse_devices,
    set_process_index,
)


def test_devices_are_read():
    assert parse_devices("cpu") == ("cpu",)
    assert parse_devices(" cuda ") == ("cuda",)
    assert parse_devices("cuda:0,cuda:1 , cuda:12") == ("cuda:0", "cuda:1", "cuda:12")
    assert device_kind(parse_devices("cuda:3,cuda:1")) == "cuda"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be like"),
        ("cuda:", "must be like"),
        ("cuda:-1", "must be like"),
        ("cuda:0,", "must be like"),
        ("cuda:²", "must be like"),
        ("cpu,cuda:0", "must number"),
        ("cuda,cuda:1", "must number"),
        ("cuda:0,cuda:0", "each device once"),
        ("cuda:0,mps:0", "of one kind; got cuda, mps"),
    ],
)
def test_devices_that_make_no_sense_raise_an_error(text, said):
    with pytest.raises(InputError, match=said):
        parse_devices(text)


def test_devices_are_dealt_out_in_turn(monkeypatch):
    monkeypatch.setattr(engine, "_process_index", 0)
    two = ("cuda:0", "cuda:1")
    given = []
    for number in range(4):
        set_process_index(number)
        given.append(device_of_this_process(two))
    assert given == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    assert device_of_this_process(["cpu"]) == "cpu"


def test_devices_that_are_not_there_raise_an_error():
    torch = pytest.importorskip("torch")
    check_devices_available(["cpu"])
    absent = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(InputError, match=f"`device` '{absent}' cannot be used: ."):
        check_devices_available(["cpu", absent])
    with pytest.raises(InputError, match="`device` 'bogus' cannot be used"):
        check_devices_available(["bogus"])
    with pytest.raises(InputError, match="`device` 'meta' cannot be used"):
        check_devices_available(["meta"])


def test_reading_devices_needs_no_torch():
    code = "import sys, abstain_bench.runs.jobs.engine as d; d.parse_devices('cuda'); print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
