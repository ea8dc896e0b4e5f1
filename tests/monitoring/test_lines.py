"""Lines of predictions and labels: what they mean, and what is said of bad ones."""

import pytest

from abstain.errors import FileFormatError
from abstain.monitoring.lines import parse_line, parse_lines


def test_a_line_is_a_prediction_a_label_or_both():
    both = parse_line('{"id": 3, "confidence": 0.5, "prediction": "cat", "label": "dog"}', "line 1")
    assert (both.id, both.confidence, both.prediction, both.label) == ("3", 0.5, "cat", "dog")
    assert parse_line('{"id": "a", "loss": 0.25}', "line 2").loss == 0.25
    assert parse_line('{"id": "a", "correct": 1, "more": []}', "line 2").loss == 0.0


BAD = {
    "{": "it is not valid JSON",
    '{"confidence": 0.5}': "`id` must be a text that is not empty, or a whole number; got none",
    '{"id": true, "confidence": 0.5}': "`id` must be .*; got True",
    '{"id": 1, "confidence": NaN}': "NaN",
    '{"id": 1, "confidence": "0.5"}': "`confidence` must be a finite number; got '0.5'",
    '{"id": 1, "confidence": 1.5}': r"`confidence` must lie in \[0, 1\] with scale 'probability'; got 1.5",
    '{"id": 1}': "a line has `confidence`",
    '{"id": 1, "correct": 2}': r"`correct` must be true, false or in \[0, 1\]; got 2",
    '{"id": 1, "loss": -0.5}': r"`loss` must be a number in \[0, 1\]; got -0.5",
    '{"id": 1, "correct": true, "loss": 0}': "one of `correct`, `loss` and `label`; got correct and loss",
    '{"id": 1, "id": 2, "confidence": 0.5}': "twice",
    "[1]": "not a JSON object",
}


@pytest.mark.parametrize(("text", "said"), BAD.items())
def test_a_bad_line_is_named_by_its_place_and_the_rule(text, said):
    with pytest.raises(FileFormatError, match=f"line 7: .*{said}"):
        parse_line(text, "line 7", scale="probability")
    skipped = []
    texts = [("line 7", text), ("line 8", " ")]

    def skip(index, error):
        skipped.append((index, str(error)))
        return True

    assert parse_lines(texts, "probability", skip) == ([], [])
    assert [index for index, _ in skipped] == [0]
