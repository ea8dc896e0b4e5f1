"""`abstain completion`: a real shell completes with what is printed."""

import shutil
import subprocess

import pytest

from abstain.cli.main import run

BASH = """
source "$1"
complete_() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _abstain; echo "${COMPREPLY[@]}"; }
complete_ abstain eva
complete_ abstain threshold --max-ri
complete_ abstain list met
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_and_choices(tmp_path, capsys):
    assert run(["completion", "bash"]) == 0
    script = tmp_path / "abstain.bash"
    script.write_text(capsys.readouterr().out)
    command = ["bash", "-c", BASH, "bash", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["evaluate", "--max-risk", "metrics"]


def test_an_unknown_shell_raises_an_error(capsys):
    assert run(["completion", "tcsh"]) == 2
    assert "tcsh" in capsys.readouterr().err
