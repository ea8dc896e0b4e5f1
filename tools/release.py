"""Build both distributions of the last commit, install each from scratch and run it.

`make release` runs this script. It builds from an export of the commit, so it fails if a required
file is not committed. It copies the distributions to dist/.
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
#: Opens a file that the build creates and the repository does not contain.
_OPEN_CHARTS = "import abstain.report as r; open(r.__path__[0] + '/templates/vega.js').close()"
#: Without PYTHONPATH, so that no module of this checkout is imported.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def main() -> None:
    """Build the distributions, and install and run each in a new environment."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for distribution in _build(folder):
            is_bench = distribution.name.startswith("abstain_bench")
            check = _check_bench if is_bench else _check_abstain
            check(distribution, folder / f"try-{distribution.name}")
            (_ROOT / "dist").mkdir(exist_ok=True)
            shutil.copy(distribution, _ROOT / "dist")
            print(f"dist/{distribution.name} installs and runs")


def _build(folder: Path) -> list[Path]:
    """Return the wheels and source distributions of the last commit."""
    source = folder / "source"
    source.mkdir()
    _run("git", "-C", _ROOT, "archive", "-o", folder / "source.tar", "HEAD")
    _run("tar", "-xf", folder / "source.tar", "-C", source)
    python = _create_environment(folder / "build")
    _run(python, *_PIP, "build>=1.2", "twine>=6")
    for project in (source, source / "bench"):
        _run(python, "-m", "build", project, "--outdir", folder / "dist")
    distributions = sorted((folder / "dist").iterdir())
    _run(python, "-m", "twine", "check", "--strict", *distributions)
    return distributions


def _check_abstain(distribution: Path, folder: Path) -> None:
    """Install the distribution with its dependencies; evaluate a table and write a report."""
    python = _create_environment(folder / "environment")
    _run(python, *_PIP, distribution)
    table = folder / "p.csv"
    table.write_text(_TABLE, encoding="utf-8")
    program = python.with_name("abstain" + python.suffix)
    _run(program, "--version", cwd=folder)
    _run(program, "evaluate", table, "--out", folder / "report", cwd=folder)
    _run(python, "-c", _OPEN_CHARTS, cwd=folder)


def _check_bench(distribution: Path, folder: Path) -> None:
    """Install the distribution with abstain of the same commit; run a study without torch."""
    python = _create_environment(folder / "environment")
    _run(python, *_PIP, *distribution.parent.glob("abstain-*.whl"))
    _run(python, *_PIP, "--no-deps", distribution)
    program = python.with_name("abstain" + python.suffix)
    _run(program, "study", "weights", "--quick", cwd=folder)
    _run(program, "list", "tasks", cwd=folder)


def _create_environment(folder: Path) -> Path:
    """Create a virtual environment and return its Python interpreter."""
    venv.create(folder, with_pip=True, clear=True)
    if os.name == "nt":
        return folder / "Scripts" / "python.exe"
    return folder / "bin" / "python"


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run([*map(str, command)], check=True, cwd=cwd, env=_ENVIRONMENT)


if __name__ == "__main__":
    main()
