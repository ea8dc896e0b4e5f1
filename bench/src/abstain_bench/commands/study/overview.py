"""`abstain study --all`: run all studies, each into a folder, and write an overview."""

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
from abstain_bench.commands.study.command import (
    STUDY_RECORD,
    StudyOutput,
    has_missing_jobs,
    run_study,
    study_files,
)
from abstain_bench.studies import STUDIES, StudyEntry, StudyResult

#: Name of the overview, in place of the name of a study.
_ALL: Final = "all"


def rerun(output: StudyOutput, *, quick: bool) -> None:
    """Run all studies, print the first sentence of each conclusion, and write all files."""
    from abstain_bench.pages import study_terminal

    start = perf_counter()
    target = check_folder(output.out, [*RESULTS, REPORT], [])
    rows = []
    for entry in STUDIES.values():
        rows.append(_row(entry, output, quick=quick))
        overview = _overview(rows, perf_counter() - start, quick=quick)
        if target is not None:
            # After each study, so that an interrupted command leaves an overview.
            written = target.write(study_files(overview, output.figures))
    console().print(study_terminal(overview))
    if target is not None:
        print_written_files(
            [*written, *(target.folder / row["study"] for row in rows if row["status"] == "done")]
        )
    if any(row["status"] != "done" for row in rows):
        raise SystemExit(1)


def _row(entry: StudyEntry, output: StudyOutput, *, quick: bool) -> dict[str, Any]:
    """Run a study unless it is complete; return its row of the overview."""
    out = None if output.out is None else output.out / entry.name
    completed = _completed_record(out)
    if completed is not None:
        return _overview_row(entry, "done", completed["seconds"], completed["verdict"])
    try:
        result = _run_and_write(entry, out, output, quick=quick)
    except (AbstainError, OSError) as error:
        return _overview_row(entry, "failed", None, [str(error)])
    status = "incomplete" if has_missing_jobs(result) else "done"
    return _overview_row(entry, status, result.seconds, result.verdict)


def _overview_row(
    entry: StudyEntry, status: str, seconds: float | None, verdict: Sequence[str]
) -> dict[str, Any]:
    first = next(iter(verdict), "")
    return {"study": entry.name, "status": status, "seconds": seconds, "found": first}


def _run_and_write(
    entry: StudyEntry, out: Path | None, output: StudyOutput, *, quick: bool
) -> StudyResult:
    target = check_folder(out, [*RESULTS, REPORT], [])
    result = run_study(entry, out, entry.quick if quick else {})
    if target is not None:
        target.write(study_files(result, output.figures))
    return result


def _completed_record(out: Path | None) -> dict[str, Any] | None:
    """Return the record of a study that the same command completed earlier, or None."""
    if out is None or not {MANIFEST, STUDY_RECORD} <= published_hashes(out).keys():
        return None
    try:
        manifest, record = (
            json.loads((out / name).read_bytes()) for name in (MANIFEST, STUDY_RECORD)
        )
    except (OSError, ValueError):
        return None
    is_current = (
        manifest.get("command") == current_command() and manifest.get("abstain") == ab.__version__
    )
    return record if is_current else None


def _overview(rows: list[dict[str, Any]], seconds: float, *, quick: bool) -> StudyResult:
    done = sum(row["status"] == "done" for row in rows)
    verdict = [f"{done} of {len(STUDIES)} studies are complete."]
    verdict += [f"{row['study']}: {row['found']}" for row in rows if row["status"] != "done"]
    return StudyResult(
        _ALL,
        "All studies",
        "What are the conclusions of all studies?",
        parameters={"quick": quick},
        tables={"results": rows},
        captions={"results": "The page of a study is report.html in its folder."},
        verdict=tuple(verdict),
        seconds=seconds,
    )
