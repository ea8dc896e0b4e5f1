"""Measure the time and memory of streaming states on a billion rows, compared with reading them.

`python benchmarks/many_rows.py generate FILE --rows 1e9` writes float32 confidences and uint8
losses. `measure FILE --out TABLE.json` runs each state, DuckDB and polars. Before and after each
run, the script only reads the two columns. Each time is divided by the mean time of these two
readings. `--peers PYTHON` sets an interpreter with duckdb and polars.
"""

import argparse
import json
import os
import queue
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

BATCH = 1 << 20
COLUMNS = ["confidence", "loss"]
STATES = ("one_pass", "two_passes", "histogram")
PEERS = ("duckdb", "polars")
SEED = 0


def generate(path, rows):
    """Write confidences with log-odds |N(5, 3)| and calibrated losses."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("confidence", pa.float32()), ("loss", pa.uint8())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, BATCH):
            n = min(BATCH, rows - start)
            rng = np.random.default_rng([SEED, start // BATCH])
            z = np.abs(rng.standard_normal(n, dtype=np.float32) * 3 + 5)
            p = 1 / (1 + np.exp(-z))
            wrong = (rng.random(n, dtype=np.float32) > p).astype(np.uint8)
            table = pa.table({"confidence": p, "loss": wrong}, schema=schema)
            writer.write_table(table, row_group_size=BATCH)


def read_batches(path):
    """Yield the two columns by batches."""
    import pyarrow.parquet as pq

    # By default, pyarrow reads the columns of the entire file before it yields the first rows.
    file = pq.ParquetFile(path, pre_buffer=False)
    for batch in file.iter_batches(batch_size=BATCH, columns=COLUMNS):
        yield batch.column(0).to_numpy(), batch.column(1).to_numpy()


def prefetch(items):
    """Yield the items; a thread reads the next ones while the caller processes one."""
    prefetched = queue.Queue(maxsize=2)

    def fill():
        for item in items:
            prefetched.put(item)
        prefetched.put(None)

    threading.Thread(target=fill, daemon=True).start()
    while (item := prefetched.get()) is not None:
        yield item


def update_from_file(state, path):
    from abstain import streaming

    for batch in prefetch(read_batches(path)):
        state = streaming.update(state, *batch)
    return state


def only_read(path):
    rows = sum(c.size for c, _ in read_batches(path))
    return {"rows": rows}


def one_pass(path):
    from abstain import streaming

    state = update_from_file(streaming.one_pass(), path).finalized
    distinct = int(state.successes.value.size)
    samples = streaming.scored(state)
    del state
    return values_with_intervals(samples, ("augrc", "aurc_plugin", "aurc")) | {"distinct": distinct}


def two_passes(path):
    from abstain import streaming

    first = update_from_file(streaming.first_pass(), path)
    state = update_from_file(streaming.second_pass(first), path).finalized
    cuts = int(state.cuts.size)
    samples = streaming.scored(state)
    del state
    return values_with_intervals(samples, ("augrc", "aurc_plugin")) | {"cuts": cuts}


def values_with_intervals(samples, names):
    """Return the value and the bounds of the interval of each metric."""
    from abstain.metrics import METRICS
    from abstain.metrics.intervals import interval_of_metric

    numbers = {}
    for name in names:
        value = METRICS[name].compute(samples).value
        interval = interval_of_metric(METRICS[name], samples)
        numbers[name] = [value, interval.low, interval.high]
    return numbers


def histogram(path):
    from abstain import streaming

    state = update_from_file(streaming.init(), path)
    results = {name: streaming.compute(state, name) for name in ("augrc", "aurc_plugin", "aurc")}
    return {name: [result.value, result.low, result.high] for name, result in results.items()}


def duckdb(path):
    import duckdb as db

    # DuckDB counts samples and failures by confidence; `areas` computes the metrics for both peers.
    query = (
        f"SELECT confidence, count(*), sum(loss)::BIGINT FROM '{path}' "
        "GROUP BY confidence ORDER BY confidence DESC"
    )
    columns = db.sql(query).fetchnumpy()
    return areas(*(np.asarray(column) for column in columns.values()))


def polars(path):
    import polars as pl

    frame = pl.scan_parquet(path).group_by("confidence")
    frame = frame.agg(n=pl.len(), failed=pl.col("loss").cast(pl.Int64).sum())
    counts = frame.sort("confidence", descending=True).collect(engine="streaming")
    return areas(*(column.to_numpy() for column in counts.get_columns()))


def areas(_confidence, n_samples, n_failures):
    """Compute AUGRC and AURC (trapezoid) from the counts of tie groups, most confident first."""
    n_samples, n_failures = n_samples.astype(float), n_failures.astype(float)
    n_accepted, n_accepted_failures = np.cumsum(n_samples), np.cumsum(n_failures)
    n = n_accepted[-1]
    risk = n_accepted_failures / n_accepted
    previous_risk = np.concatenate((risk[:1], risk[:-1]))
    aurc = float(np.sum(n_samples * (risk + previous_risk)) / (2 * n))
    augrc = float(np.sum(n_samples * (2 * n_accepted_failures - n_failures)) / (2 * n * n))
    return {"augrc": [augrc], "aurc": [aurc], "distinct": int(n_samples.size)}


#: Functions that return the result of a run, by name.
CALLS = {f.__name__: f for f in (only_read, one_pass, two_passes, histogram, duckdb, polars)}


def run_call(name, path):
    """Print the result of a call, its time and the peak memory of this process as JSON."""
    start = time.perf_counter()
    result = CALLS[name](path)
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    print(json.dumps({"name": name, "seconds": seconds, "cpu": cpu, "peak": peak} | result))


def run_in_process(name, path, python):
    """Return what `run_call` prints in a new process, or its error."""
    command = [python, __file__, "run", str(path), "--name", name]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        return {"name": name, "failed": process.stderr.strip().splitlines()[-1:]}
    return json.loads(process.stdout)


def measure(path, names, rounds, peers):
    """Run each call between two readings of the file, and add the ratios to their mean.

    There are ratios of the elapsed time and of the processor time, which depends less on other
    programs on the machine.
    """
    rows = []
    for _ in range(rounds):
        reading_before = run_in_process("only_read", path, sys.executable)
        for name in names:
            row = run_in_process(name, path, peers if name in PEERS else sys.executable)
            reading_after = run_in_process("only_read", path, sys.executable)
            row |= {"rows": reading_after["rows"], "load": os.getloadavg()[0]}
            for key in ("seconds", "cpu"):
                reading = (reading_before[key] + reading_after[key]) / 2
                row[f"reading_{key}"] = reading
                row[f"ratio_{key}"] = row[key] / reading if key in row else None
            print(json.dumps(row), flush=True)
            rows.append(row)
            reading_before = reading_after
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("generate", "measure", "run"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--names", nargs="+", default=STATES)
    parser.add_argument("--name", choices=CALLS, default="only_read")
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.command == "generate":
        generate(options.file, int(options.rows))
    elif options.command == "run":
        run_call(options.name, options.file)
    else:
        rows = measure(options.file, options.names, options.rounds, options.peers)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
    main()
