"""`abstain study --all`: every study of the catalogue, one folder each, and a page of all."""

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import abstain as ab
from abstain._foundation.files import MANIFEST, published_hashes
from abstain.cli.console import console, print_written_files
from abstain.cli.output_folder import REPORT, RESULTS, check_folder, current_command
from abstain.errors import AbstainError
from abstain_bench.commands.study.command import SAID, StudyOutput, found_by, left_by, missing
from abstain_bench.studies import STUDIES, StudyEntry, StudyResult

#: What an overview is called, where a study has its name.
_ALL: Final = "all"


def rerun(leave: StudyOutput, *, quick: bool) -> None:
    """Run every study, print the first sentence of each verdict, and leave all their files."""
    from abstain_bench.pages import study_terminal

    start = perf_counter()
    to = check_folder(leave.out, [*RESULTS, REPORT], [])
    rows = []
    for entry in STUDIES.values():
        rows.append(_row(entry, leave, quick=quick))
        found = _overview(rows, perf_counter() - start, quick=quick)
        if to is not None:
            # After each, so that a run that is stopped has the page of what it did.
            left = to.write(left_by(found, leave.figures))
    console().print(study_terminal(found))
    if to is not None:
        print_written_files(
            [*left, *(to.folder / row["study"] for row in rows if row["status"] == "done")]
        )
    if any(row["status"] != "done" for row in rows):
        raise SystemExit(1)


def _row(entry: StudyEntry, leave: StudyOutput, *, quick: bool) -> dict[str, Any]:
    """Run one study, or find it done; return what the overview says of it."""
    out = None if leave.out is None else leave.out / entry.name
    earlier = _done(out)
    if earlier is not None:
        return _said(entry, "done", earlier["seconds"], earlier["verdict"])
    try:
        found = _found(entry, out, leave, quick=quick)
    except (AbstainError, OSError) as error:
        return _said(entry, "failed", None, [str(error)])
    status = "incomplete" if missing(found) else "done"
    return _said(entry, status, found.seconds, found.verdict)


def _said(
    entry: StudyEntry, status: str, seconds: float | None, verdict: Sequence[str]
) -> dict[str, Any]:
    first = next(iter(verdict), "")
    return {"study": entry.name, "status": status, "seconds": seconds, "found": first}


def _found(entry: StudyEntry, out: Path | None, leave: StudyOutput, *, quick: bool) -> StudyResult:
    to = check_folder(out, [*RESULTS, REPORT], [])
    found = found_by(entry, out, entry.quick if quick else {})
    if to is not None:
        to.write(left_by(found, leave.figures))
    return found


def _done(out: Path | None) -> dict[str, Any] | None:
    """Return what a study said that this same command has left whole, if it has."""
    if out is None or not {MANIFEST, SAID} <= published_hashes(out).keys():
        return None
    try:
        receipt, said = (json.loads((out / name).read_bytes()) for name in (MANIFEST, SAID))
    except (OSError, ValueError):
        return None
    same = receipt.get("command") == current_command() and receipt.get("abstain") == ab.__version__
    return said if same else None


def _overview(rows: list[dict[str, Any]], seconds: float, *, quick: bool) -> StudyResult:
    done = sum(row["status"] == "done" for row in rows)
    verdict = [f"{done} of {len(STUDIES)} studies are done."]
    verdict += [f"{row['study']}: {row['found']}" for row in rows if row["status"] != "done"]
    return StudyResult(
        _ALL,
        "All studies",
        "What does each study of the literature find?",
        parameters={"quick": quick},
        tables={"results": rows},
        captions={"results": "Its own page says more: report.html in the folder of its name."},
        verdict=tuple(verdict),
        seconds=seconds,
    )
