"""Notes: their sentences, and the sums of their counts over the parts of a table."""

from abstain._foundation.notes import DROPPED, READING, Note, RowCount, merge_notes


def test_a_note_is_written_with_its_source_and_its_rows():
    note = Note(READING, "have no label", rows=RowCount(1234, 5000), source="a.csv")
    assert str(note) == note.message == "a.csv: 1,234 of 5,000 rows (24.68%) have no label"
    dropped = Note(DROPPED, "no label in 'y'", rows=RowCount(1, 8))
    assert str(dropped) == "1 of 8 rows (12.50%) dropped: no label in 'y'"


def test_a_source_is_named_once():
    note = Note(READING, "read label from 'y'")
    assert str(note.within("a.csv")) == "a.csv: read label from 'y'"
    assert note.within("a.csv").within("a.csv") == note.within("a.csv")
    assert str(note.within("a.csv").within("folder")) == "folder: a.csv: read label from 'y'"


def test_counts_of_parts_are_added_up():
    label, score = Note(DROPPED, "no label"), Note(DROPPED, "no score")
    text = Note(READING, "compared as text")

    def counted(note, n, n_total):
        return Note(note.kind, note.text, rows=RowCount(n, n_total))

    parts = [
        (10, [counted(label, 2, 10), text]),
        (30, []),
        (60, [text, counted(label, 3, 60), counted(score, 1, 60)]),
    ]
    assert merge_notes(parts) == (counted(label, 5, 100), text, counted(score, 1, 100))
    assert merge_notes([]) == ()
