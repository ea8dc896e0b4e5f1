"""Measure the lines per second of a monitor: `python benchmarks/monitor_throughput.py`.

The monitor has stored 1,000,000 ids before the measurement. It parses and processes lines in
batches of 5,000, in several orders of predictions and labels. In the last order, the requested
labels return after every 200 predictions.
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

N_STORED_IDS, N_SAMPLES, BATCH_SIZE = 1_000_000, 20_000, 5_000


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw calibrated confidences and their losses."""
    confidence = rng.beta(4, 1, n)
    return confidence, rng.random(n) < 1 - confidence


def start_monitor(label_share: float | None = None) -> RunningMonitor:
    """Start a monitor with many stored ids."""
    confidence, loss = draw(np.random.default_rng(0), 2000)
    data = ab.Predictions(confidence=confidence, loss=loss)
    rule = ab.set_threshold(data, max_risk=0.1, delta=0.05)
    monitor = ab.monitoring.start(rule, calibration=data, label_share=label_share)
    keys = np.random.default_rng(1).integers(0, 2**63, N_STORED_IDS, dtype=np.uint64)
    flags = np.full(N_STORED_IDS, LABELED, np.uint8)
    ledger = Ledger(keys, flags, np.zeros(N_STORED_IDS, np.uint64))
    return RunningMonitor(monitor.plan, replace(monitor.state, ledger=ledger))


def process_lines(monitor: RunningMonitor, texts: list[str]) -> float:
    """Parse and process lines, and return the CPU time in seconds."""
    start = time.process_time()
    for i in range(0, len(texts), BATCH_SIZE):
        batch = [(f"line {j}", text) for j, text in enumerate(texts[i : i + BATCH_SIZE])]
        lines, _ = parse_lines(batch, monitor.plan.scale, lambda *_: False)
        monitor.take_lines(lines, lambda *_: False)
    return time.process_time() - start


def measure() -> Iterator[tuple[str, int, float]]:
    """Yield the name of each order, the number of lines and the CPU time in seconds."""
    confidence, loss = draw(np.random.default_rng(2), N_SAMPLES)
    predictions = [
        json.dumps({"id": f"a{i}", "confidence": c}) for i, c in enumerate(confidence.tolist())
    ]
    labels = [json.dumps({"id": f"a{i}", "correct": not x}) for i, x in enumerate(loss.tolist())]
    monitor = start_monitor()
    yield "predictions alone", len(predictions), process_lines(monitor, predictions)
    yield "labels alone", len(labels), process_lines(monitor, labels)
    alternating = [line for pair in zip(predictions, labels, strict=True) for line in pair]
    yield "alternating", len(alternating), process_lines(start_monitor(), alternating)
    monitor = start_monitor(label_share=0.1)
    n_lines, seconds = 0, 0.0
    answered: set[str] = set()
    for i in range(0, N_SAMPLES, 200):
        seconds += process_lines(monitor, predictions[i : i + 200])
        requested = [
            item.name for item in monitor.items if item.is_waiting and item.name not in answered
        ]
        answered |= set(requested)
        answers = [json.dumps({"id": name, "correct": True}) for name in requested]
        seconds += process_lines(monitor, answers)
        n_lines += 200 + len(answers)
    yield "requested labels return", n_lines, seconds


if __name__ == "__main__":
    for order, n_lines, seconds in measure():
        print(f"{order:25} {n_lines / seconds:10,.0f} lines/s")
