"""A watched folder in which files are renamed while it is read."""

import json

import pytest

from abstain.monitoring.followed_file import Folder


def lines_in(batches):
    """Accept all lines and return their ids."""
    ids = []
    for batch in batches:
        ids += [json.loads(text)["id"] for _, text in batch.lines]
        batch.accept(len(batch.lines))
    return ids


def text_of(prefix, n):
    return "".join(f'{{"id": "{prefix}{i}", "confidence": 0.9}}\n' for i in range(n))


@pytest.fixture
def watched(tmp_path):
    """A folder, and what is warned about it."""
    warnings = []
    return Folder(tmp_path, (), warnings.append), warnings


class RotatedDuring:
    """Renames a file to its name of rotation, and begins a new one, at the first call."""

    def __init__(self, path, text, function):
        self.path, self.text, self.function = path, text, function
        self.is_due = True

    def __call__(self, *given):
        result = self.function(*given)
        if self.is_due:
            self.is_due = False
            self.path.rename(self.path.with_name(f"{self.path.name}.1"))
            if self.text:
                self.path.write_text(self.text)
        return result


@pytest.mark.parametrize("n_new", [0, 2, 50])
@pytest.mark.parametrize("n_before", [0, 10])
def test_a_file_renamed_between_the_listing_and_the_reading_loses_no_line(
    watched, tmp_path, monkeypatch, n_before, n_new
):
    folder, warnings = watched
    path = tmp_path / "a.jsonl"
    path.write_text(text_of("a", n_before))
    assert len(lines_in(folder.batches())) == n_before
    with path.open("a") as file:
        file.write(text_of("b", 3))
    monkeypatch.setattr(folder, "_follow", RotatedDuring(path, text_of("c", n_new), folder._follow))
    ids = lines_in(folder.batches()) + lines_in(folder.batches()) + lines_in(folder.batches())
    assert ids == [f"b{i}" for i in range(3)] + [f"c{i}" for i in range(n_new)]
    assert warnings == []


def test_a_file_renamed_between_the_listing_and_its_comparison_does_not_stop_the_monitor(
    watched, tmp_path, monkeypatch
):
    folder, warnings = watched
    path = tmp_path / "a.jsonl"
    path.write_text(text_of("a", 10))
    assert len(lines_in(folder.batches())) == 10
    with path.open("a") as file:
        file.write(text_of("b", 3))
    monkeypatch.setattr(folder, "_list", RotatedDuring(path, "", folder._list))
    assert lines_in(folder.batches()) == ["b0", "b1", "b2"]
    assert warnings == []
    assert [position.name for position in folder.read] == ["a.jsonl.1"]
