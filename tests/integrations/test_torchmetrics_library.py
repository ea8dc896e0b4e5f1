"""An absent extra and a torchvision that breaks torchmetrics are said in one line."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

SRC = Path(__file__).parents[2] / "src"
LIBRARY = SRC / "abstain" / "integrations" / "torchmetrics" / "_library.py"
NAMES = ("torch", "torchmetrics", "torchvision")


def refusal(tmp_path, monkeypatch, modules):
    """What loading the libraries ends with, where these modules are found first; None is absent."""
    for name, text in modules.items():
        path = tmp_path / name / "__init__.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text or "", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    spec = importlib.util.spec_from_file_location("library_of_a_test", LIBRARY)
    with mock.patch.dict(sys.modules):
        for name in NAMES:
            sys.modules.pop(name, None)
        sys.modules.update({name: None for name, text in modules.items() if text is None})
        with pytest.raises(ImportError) as caught:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("absent", ["torch", "torchmetrics"])
def test_an_absent_extra(tmp_path, monkeypatch, absent):
    modules = {"torch": "", "torchmetrics": ""} | {absent: None}
    assert refusal(tmp_path, monkeypatch, modules) == (
        f"abstain.integrations.torchmetrics needs {absent}: pip install 'abstain[torch]'"
    )


def test_a_broken_torchvision(tmp_path, monkeypatch):
    modules = {
        "torch": "",
        "torchmetrics": "import torchvision",
        "torchvision": "raise RuntimeError('operator torchvision::nms does not exist')",
    }
    message = refusal(tmp_path, monkeypatch, modules)
    assert message.startswith("torchmetrics imports torchvision if it is installed")
    assert "pip uninstall torchvision" in message
    assert "torchvision::nms does not exist" in message


def test_a_torchvision_hidden_behind_another_error(tmp_path, monkeypatch):
    modules = {
        "torch": "",
        "torchmetrics": (
            "try:\n    import torchvision\n"
            "except RuntimeError as error:\n    raise ImportError('no metrics') from error\n"
        ),
        "torchvision": "raise RuntimeError('no nms')",
    }
    assert "pip uninstall torchvision" in refusal(tmp_path, monkeypatch, modules)


def test_another_broken_library(tmp_path, monkeypatch):
    modules = {"torch": "", "torchmetrics": "raise OSError('libfoo is missing')"}
    assert refusal(tmp_path, monkeypatch, modules) == (
        "torchmetrics cannot be imported (OSError: libfoo is missing)"
    )


def test_the_traceback_ends_with_that_line():
    code = "import sys; sys.modules['torch'] = None; import abstain.integrations.torchmetrics"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(SRC)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1].endswith("needs torch: pip install 'abstain[torch]'")
