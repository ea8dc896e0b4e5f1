"""Inputs and the values that FD-Shifts, torch-uncertainty and scikit-learn compute for them.

`risk_coverage.json` has one case per line: `name`, `confidence`, `loss`, `labels` (or null) and `expected`, the values by
name. The cases have continuous, tied and saturated confidences, binary and graded losses, and 2 to 400 samples. Names
that begin with `fdshifts_` are values of FD-Shifts, with `tu_` of torch-uncertainty and with `failure_` of scikit-learn;
`aurc_plugin`, `aurc_log` and `sele` are the estimators of Zhou et al. (2025).
"""

import json
from pathlib import Path

PATH = Path(__file__).with_name("risk_coverage.json")
CASES = json.loads(PATH.read_text(encoding="utf-8"))
