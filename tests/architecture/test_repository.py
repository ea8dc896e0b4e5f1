"""The files that a repository is met by: they agree with the package and promise nothing false."""

import re
import subprocess
import tomllib

import pytest
from tests.architecture.source import ROOT

import abstain as ab

if not (ROOT / ".github").is_dir():
    pytest.skip("a source distribution has none of these", allow_module_level=True)

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")

#: What only those can fill in who host the project. Only to be shortened.
TO_FILL_IN = {
    "CODE_OF_CONDUCT.md": "whom to tell",
    "SECURITY.md": "an address",
    "pyproject.toml": "[project.urls]",
}
FILES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CODE_OF_CONDUCT.md", ROOT / "SECURITY.md",
    ROOT / "CITATION.cff", ROOT / "Dockerfile", ROOT / "pyproject.toml", ROOT / "recipe/recipe.yaml",
    *sorted(p for p in (ROOT / ".github").rglob("*") if p.is_file()),
]  # fmt: skip


def test_the_citation_has_the_version_and_the_license_of_the_package():
    cited = dict(
        re.findall(r"^(version|license): (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    )
    assert cited == {"version": ab.__version__, "license": PROJECT["license"]}


def test_the_workflow_runs_targets_that_there_are():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    ran = re.findall(r"- run: (?:make ([a-z-]+)|(\.ci/run))", WORKFLOW)
    assert {target for target, _ in ran if target} <= targets
    assert len(ran) == WORKFLOW.count("- run: ") == WORKFLOW.count("runs-on:")
    assert (ROOT / ".ci/run").stat().st_mode & 0o100
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    asked = [
        word for line in re.findall(r"^make (.*)$", script, re.MULTILINE) for word in line.split()
    ]
    made = {word for word in asked if not word.startswith("-") and "=" not in word}
    stamps = set(
        re.findall(
            r"^\$\(TEST\)/\.installed|^\$\(VENV\)/[a-z]+/\.installed", MAKEFILE, re.MULTILINE
        )
    )
    stamps = {s.replace("$(TEST)", ".venv/test").replace("$(VENV)", ".venv") for s in stamps}
    assert made <= targets | stamps
    phony = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert targets == {name for names in phony for name in names.split()}


def test_every_python_that_is_named_is_run():
    [listed] = re.findall(r"python: \[(.*)\]", WORKFLOW)
    run = re.findall(r'"([0-9.]+)"', listed)
    named = [m[1] for c in PROJECT["classifiers"] if (m := re.search(r":: (3\.\d+)$", c))]
    assert set(named) <= set(run)
    assert PROJECT["requires-python"] == f">={named[0]}" == f">={run[0]}"


def test_what_is_to_be_filled_in_is_known_and_listed_for_a_release():
    results = {}
    for path in FILES:
        for said in re.findall("TO FILL IN: (.*)", path.read_text(encoding="utf-8")):
            results[path.relative_to(ROOT).as_posix()] = said
    assert results.keys() == TO_FILL_IN.keys()
    assert all(results[name].startswith(said) for name, said in TO_FILL_IN.items())
    checklist = (ROOT / "docs/releasing.md").read_text(encoding="utf-8")
    assert not [name for name in TO_FILL_IN if name not in checklist]


def test_no_address_is_made_up():
    """No place of the project itself is named while it has none, and no mailbox."""
    assert "urls" not in PROJECT, "take the addresses given there instead of this test"
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"https?://\S*\babstain\b", text), path
        assert not re.findall(r"[\w.]+@[\w-]+\.\w+", text), path


def test_the_image_is_made_of_files_that_are_there():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    copied = {
        name
        for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE)
        for name in line.split()[:-1]
    }
    assert copied == sent
    assert all((ROOT / name).exists() for name in copied)


#: What conda-forge calls otherwise than PyPI.
OF_CONDA = {"matplotlib": "matplotlib-base", "torch": "pytorch"}


def for_conda(requirement):
    """A requirement of pyproject.toml as recipes write it."""
    name, bounds = re.fullmatch(r"([\w-]+)(?:\[.*\])?(.*)", requirement).groups()
    return f"{OF_CONDA.get(name, name)} {bounds}".strip()


def test_the_conda_package_asks_for_what_the_wheel_does():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text(encoding="utf-8"))
    context, asked = recipe["context"], recipe["requirements"]
    assert str(context["version"]) == ab.__version__
    assert PROJECT["requires-python"] == f">={context['python_min']}"
    python = ["python >=${{ python_min }}"]
    assert asked["run"] == python + [for_conda(r) for r in PROJECT["dependencies"]]
    build = ["python ${{ python_min }}.*", "pip"]
    assert asked["host"] == build + [for_conda(r) for r in PYPROJECT["build-system"]["requires"]]
    extras = {for_conda(r) for rs in PROJECT["optional-dependencies"].values() for r in rs}
    assert set(asked["run_constraints"]) <= extras
    [point] = recipe["build"]["python"]["entry_points"]
    assert PROJECT["scripts"] == dict([point.split(" = ")])
    assert recipe["about"]["license"] == PROJECT["license"]
    place = ROOT / "recipe" / recipe["source"]["path"]
    assert (place / recipe["about"]["license_file"]).is_file()


def test_the_recipe_tries_commands_that_there_are():
    yaml = pytest.importorskip("yaml")
    from abstain.cli.main import run

    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text(encoding="utf-8"))
    [lines] = [test["script"] for test in recipe["tests"] if "script" in test]
    for line in lines:
        assert run(line.split()[1:]) == 0


def test_nothing_is_committed_that_is_ignored():
    done = subprocess.run(
        ["git", "ls-files", "-ci", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        assert done.stdout == ""
