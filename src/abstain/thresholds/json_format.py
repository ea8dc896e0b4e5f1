"""The JSON text of a `DecisionRule`."""

import json
from dataclasses import asdict
from typing import Any, Final

from abstain._foundation import json_records, records
from abstain.thresholds import scales
from abstain.thresholds.scales import UNKNOWN

#: Kind of a JSON text with a rule without parts.
KIND: Final = "decision rule"
VERSION: Final = 5
#: Kind of a JSON text with a rule with parts.
KIND_WITH_PARTS: Final = "set of decision rules"
#: Default values of fields that older versions do not have.
_FIELDS_ADDED_LATER: Final[dict[int, dict[str, str]]] = {
    1: {"scale": UNKNOWN, "population": ""},
    2: {"population": ""},
    3: {},
    4: {},
}
#: Versions of a rule with parts. From version 2 on, its rules have `threshold_probability`. From
#: version 3 on, the rule of a group may have parts, the limits of the group.
_VERSIONS_WITH_PARTS: Final = (1, 2, 3)
#: Fields of a rule with parts.
_FIELDS_WITH_PARTS: Final = ("per", "parts", "joint", "delta")
#: Field of a file with the threshold in log-odds as a probability, for readers of the file.
_THRESHOLD_PROBABILITY: Final = "threshold_probability"
#: Largest difference between the two thresholds of a file.
_TOLERANCE: Final = 1e-9
#: Fields with another name in older versions.
_OLD_FIELD_NAMES: Final = {"promised_for": "population"}


def rule_to_json(rule: Any) -> str:
    """Return a rule as JSON text."""
    if not rule.parts:
        fields = {"kind": KIND, "version": VERSION, **_plain_fields(rule)}
        return json.dumps(fields, indent=2)
    # A rule with one guarantee per group is written in version 2, which older releases read.
    version = 3 if rule.per and rule.limits else 2
    fields = {"kind": KIND_WITH_PARTS, "version": version, **_fields_with_parts(rule)}
    return json.dumps(fields, indent=2)


def rule_from_json(text: str, rule_class: Any, part_class: Any) -> Any:
    """Read a rule of type `rule_class`, whose parts have the type `part_class`."""
    with json_records.invalid_file_errors("decision rule"):
        fields = json_records.parse_object(text)
        kind = json_records.pop_kind(fields, (KIND, KIND_WITH_PARTS))
        if kind == KIND_WITH_PARTS:
            json_records.pop_version(fields, "version", _VERSIONS_WITH_PARTS)
            return _read_parts(fields, rule_class, part_class)
        version = json_records.pop_version(fields, "version", (*_FIELDS_ADDED_LATER, VERSION))
        fields = _FIELDS_ADDED_LATER.get(version, {}) | fields
        return _read_rule(fields, "a decision rule", rule_class)


def _fields_with_parts(rule: Any) -> dict[str, Any]:
    """Return the fields of a rule with parts, including the fields of nested parts."""
    parts = [
        {
            "name": part.name,
            "rule": _fields_with_parts(part.rule) if part.rule.parts else _plain_fields(part.rule),
        }
        for part in rule.parts
    ]
    return {"per": rule.per, "parts": parts, "joint": rule.joint, "delta": rule.delta}


def _plain_fields(rule: Any) -> dict[str, Any]:
    """Return the fields of a rule without parts, with the threshold also as a probability."""
    fields = {k: v for k, v in asdict(rule).items() if k not in {"per", "joint", "parts"}}
    if rule.threshold is not None and rule.scale == "log-odds":
        fields[_THRESHOLD_PROBABILITY] = scales.lowest_accepted_probability(rule.threshold)
    return fields


def _read_rule(fields: object, description: str, rule_class: Any) -> Any:
    """Read a rule without parts, with the field names of this version or of older versions."""
    if not isinstance(fields, dict):
        return records.from_nested_fields(rule_class, fields, description)
    fields = {_OLD_FIELD_NAMES.get(name, name): value for name, value in fields.items()}
    fields = {"per": "", "joint": False, "parts": (), **fields}
    probability = fields.pop(_THRESHOLD_PROBABILITY, None)
    rule = records.from_nested_fields(rule_class, fields, description)
    _check_threshold_probability(rule, probability)
    return rule


def _check_threshold_probability(rule: Any, probability: object) -> None:
    """Raise an error if the threshold in log-odds and the threshold as a probability disagree."""
    if probability is None:
        return
    expected = _plain_fields(rule).get(_THRESHOLD_PROBABILITY)
    is_number = isinstance(probability, float | int) and not isinstance(probability, bool)
    if expected is None or not is_number or abs(float(str(probability)) - expected) > _TOLERANCE:
        json_records.raise_error(
            f"the field `{_THRESHOLD_PROBABILITY}` must be the `threshold` in log-odds as a "
            f"probability, {expected!r}; got {json_records.short_repr(probability)}. Change "
            "`threshold`, or drop this field"
        )


def _read_parts(fields: dict[str, Any], rule_class: Any, part_class: Any) -> Any:
    """Read a rule with parts, and compute its other fields from the parts."""
    records.check_field_names(fields, _FIELDS_WITH_PARTS, "a decision rule with parts")
    entries = fields.pop("parts")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        json_records.raise_error("the field `parts` must be a list, each with a name and a rule")
    parts = []
    for entry in entries:
        rule_fields = entry.get("rule")
        if isinstance(rule_fields, dict) and "method" not in rule_fields and "parts" in rule_fields:
            rule = _read_parts(rule_fields, rule_class, part_class)
        else:
            rule = _read_rule(rule_fields, "the `rule` of each of `parts`", rule_class)
        part_fields = {**entry, "rule": rule}
        parts.append(records.from_fields(part_class, part_fields, "a part of a decision rule"))
    return rule_class.from_parts(parts=tuple(parts), **fields)
