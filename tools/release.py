"""Build both distributions of the last commit from scratch and try each as a user would install it.

`make release` runs it. What is built comes from an export of the commit, so that a file which is
not committed is missed here and not by users. The two files are left in dist/.
"""

import os
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_TABLE = "label,prediction,confidence\ncat,cat,0.9\ndog,cat,0.4\ndog,dog,0.8\ncat,dog,0.6\n"
_PIP = ("-m", "pip", "--disable-pip-version-check", "install", "-q")
#: What the build makes and the repository has not.
_CHARTS = "import abstain.report as r; open(r.__path__[0] + '/templates/vega.js').close()"
#: Nothing of this checkout may be found by its path.
_ALONE = {name: said for name, said in os.environ.items() if name != "PYTHONPATH"}


def main() -> None:
    """Build, install each file in an environment of its own, and run the program there."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for made in _built(place):
            attempt = _try_bench if made.name.startswith("abstain_bench") else _try
            attempt(made, place / f"try-{made.name}")
            (_ROOT / "dist").mkdir(exist_ok=True)
            shutil.copy(made, _ROOT / "dist")
            print(f"dist/{made.name} installs and runs")


def _built(place: Path) -> list[Path]:
    source = place / "source"
    source.mkdir()
    _run("git", "-C", _ROOT, "archive", "-o", place / "source.tar", "HEAD")
    _run("tar", "-xf", place / "source.tar", "-C", source)
    python = _environment(place / "build")
    _run(python, *_PIP, "build>=1.2", "twine>=6")
    for distribution in (source, source / "bench"):
        _run(python, "-m", "build", distribution, "--outdir", place / "dist")
    made = sorted((place / "dist").iterdir())
    _run(python, "-m", "twine", "check", "--strict", *made)
    return made


def _try(made: Path, place: Path) -> None:
    """Install the file with what it asks for; evaluate a table and leave a page."""
    python = _environment(place / "environment")
    _run(python, *_PIP, made)
    table = place / "p.csv"
    table.write_text(_TABLE, encoding="utf-8")
    program = python.with_name("abstain" + python.suffix)
    _run(program, "--version", cwd=place)
    _run(program, "evaluate", table, "--out", place / "report", cwd=place)
    _run(python, "-c", _CHARTS, cwd=place)


def _try_bench(made: Path, place: Path) -> None:
    """Install the file beside the abstain of the same commit; run a study, which needs no torch."""
    python = _environment(place / "environment")
    _run(python, *_PIP, *made.parent.glob("abstain-*.whl"))
    _run(python, *_PIP, "--no-deps", made)
    program = python.with_name("abstain" + python.suffix)
    _run(program, "study", "weights", "--quick", cwd=place)
    _run(program, "list", "tasks", cwd=place)


def _environment(place: Path) -> Path:
    venv.create(place, with_pip=True, clear=True)
    windows = os.name == "nt"
    return place / ("Scripts" if windows else "bin") / ("python.exe" if windows else "python")


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run([*map(str, command)], check=True, cwd=cwd, env=_ALONE)


if __name__ == "__main__":
    main()
