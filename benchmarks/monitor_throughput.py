"""Lines a second of the monitor, with many remembered ids: python benchmarks/monitor_throughput.py.

Each order of lines is parsed and taken in batches of 5,000 lines, after a ledger of 1,000,000 ids.
The last one returns the requested labels after every 200 predictions, as through the same pipe.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import abstain as ab
from abstain.monitoring.lines import parse_lines
from abstain.monitoring.running import RunningMonitor
from abstain.monitoring.state import LABELED, Ledger

N_REMEMBERED, N_SAMPLES, BATCH = 1_000_000, 20_000, 5_000


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw confidences and losses, calibrated to each other."""
    confidence = rng.beta(4, 1, n)
    return confidence, rng.random(n) < 1 - confidence


def begin(label_share: float | None) -> RunningMonitor:
    """Begin a monitor that remembers many ids."""
    confidence, loss = draw(np.random.default_rng(0), 2000)
    data = ab.Predictions(confidence=confidence, loss=loss)
    rule = ab.set_threshold(data, max_risk=0.1, delta=0.05)
    monitor = ab.monitoring.start(rule, calibration=data, label_share=label_share)
    keys = np.random.default_rng(1).integers(0, 2**63, N_REMEMBERED, dtype=np.uint64)
    flags = np.full(N_REMEMBERED, LABELED, np.uint8)
    ledger = Ledger(keys, flags, np.zeros(N_REMEMBERED, np.uint64))
    return RunningMonitor(monitor.plan, replace(monitor.state, ledger=ledger))


def take(course: RunningMonitor, texts: list[str]) -> float:
    """Parse and take lines, and return the processor time in seconds."""
    start = time.process_time()
    for i in range(0, len(texts), BATCH):
        batch = [(f"line {j}", text) for j, text in enumerate(texts[i : i + BATCH])]
        lines, _ = parse_lines(batch, course.plan.scale, lambda *_: False)
        course.take_lines(lines, lambda *_: False)
    return time.process_time() - start


def measure() -> Iterator[tuple[str, int, float]]:
    """Yield the order, the number of lines and the seconds."""
    confidence, loss = draw(np.random.default_rng(2), N_SAMPLES)
    rows = enumerate(confidence.tolist())
    predictions = [json.dumps({"id": f"a{i}", "confidence": c}) for i, c in rows]
    labels = [json.dumps({"id": f"a{i}", "correct": not x}) for i, x in enumerate(loss.tolist())]
    course = begin(None)
    yield "predictions alone", len(predictions), take(course, predictions)
    yield "labels alone", len(labels), take(course, labels)
    alternating = [line for pair in zip(predictions, labels, strict=True) for line in pair]
    yield "alternating", len(alternating), take(begin(None), alternating)
    course, n_lines, seconds = begin(0.1), 0, 0.0
    returned: set[str] = set()
    for i in range(0, N_SAMPLES, 200):
        seconds += take(course, predictions[i : i + 200])
        requested = [
            item.name for item in course.items if item.is_waiting and item.name not in returned
        ]
        returned |= set(requested)
        answers = [json.dumps({"id": name, "correct": True}) for name in requested]
        seconds += take(course, answers)
        n_lines += 200 + len(answers)
    yield "requested labels return", n_lines, seconds


if __name__ == "__main__":
    for order, n_lines, seconds in measure():
        print(f"{order:25} {n_lines / seconds:10,.0f} lines/s")
