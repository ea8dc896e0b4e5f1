"""A billion rows of a file: what each state takes beside reading it, and beside DuckDB and polars.

`python benchmarks/many_rows.py generate FILE --rows 1e9` writes float32 confidences and uint8
losses (5.4 bytes a row); `measure FILE --out TABLE.json` takes turns: between two runs of anything
the two columns are read alone, and each number is a ratio to the mean of the two.
`--peers PYTHON` is an interpreter that has duckdb and polars.
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
    """Write |N(5, 3)| as log-odds, each sample wrong with the chance that its probability says."""
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


def read(path):
    """Yield the two columns by batches."""
    import pyarrow.parquet as pq

    # By default pyarrow fetches the columns of a whole file before it yields the first rows.
    file = pq.ParquetFile(path, pre_buffer=False)
    for batch in file.iter_batches(batch_size=BATCH, columns=COLUMNS):
        yield batch.column(0).to_numpy(), batch.column(1).to_numpy()


def ahead(items):
    """Yield the same, read by a thread while the one before is computed on."""
    waiting = queue.Queue(maxsize=2)

    def fill():
        for item in items:
            waiting.put(item)
        waiting.put(None)

    threading.Thread(target=fill, daemon=True).start()
    while (item := waiting.get()) is not None:
        yield item


def over(state, path):
    from abstain import streaming

    for batch in ahead(read(path)):
        state = streaming.update(state, *batch)
    return state


def only_read(path):
    rows = sum(c.size for c, _ in read(path))
    return {"rows": rows}


def one_pass(path):
    from abstain import streaming

    state = over(streaming.one_pass(), path).finalized
    distinct = int(state.successes.value.size)
    samples = streaming.scored(state)
    del state
    return numbers(samples, ("augrc", "aurc_plugin", "aurc")) | {"distinct": distinct}


def two_passes(path):
    from abstain import streaming

    state = streaming.second_pass(over(streaming.first_pass(), path))
    state = over(state, path).finalized
    cuts = int(state.cuts.size)
    samples = streaming.scored(state)
    del state
    return numbers(samples, ("augrc", "aurc_plugin")) | {"cuts": cuts}


def numbers(samples, names):
    from abstain.metrics import METRICS
    from abstain.metrics.intervals import interval_of_metric

    out = {}
    for name in names:
        found = interval_of_metric(METRICS[name], samples)
        out[name] = [METRICS[name].compute(samples).value, found.low, found.high]
    return out


def histogram(path):
    from abstain import streaming

    state = over(streaming.init(), path)
    found = {name: streaming.compute(state, name) for name in ("augrc", "aurc_plugin", "aurc")}
    return {name: [x.value, x.low, x.high] for name, x in found.items()}


def duckdb(path):
    import duckdb as db

    # Its counts of each confidence; what follows of them is the same few lines for both.
    query = (
        f"SELECT confidence, count(*), sum(loss)::BIGINT FROM '{path}' "
        "GROUP BY confidence ORDER BY confidence DESC"
    )
    found = db.sql(query).fetchnumpy()
    return areas(*(np.asarray(column) for column in found.values()))


def polars(path):
    import polars as pl

    frame = pl.scan_parquet(path).group_by("confidence")
    frame = frame.agg(n=pl.len(), failed=pl.col("loss").cast(pl.Int64).sum())
    found = frame.sort("confidence", descending=True).collect(engine="streaming")
    return areas(*(column.to_numpy() for column in found.get_columns()))


def areas(_, count, failed):
    """AUGRC and AURC (trapezoid) of tie groups, most confident first."""
    count, failed = count.astype(float), failed.astype(float)
    through, wrong = np.cumsum(count), np.cumsum(failed)
    n = through[-1]
    risk = wrong / through
    before = np.concatenate((risk[:1], risk[:-1]))
    aurc = float(np.sum(count * (risk + before)) / (2 * n))
    augrc = float(np.sum(count * (2 * wrong - failed)) / (2 * n * n))
    return {"augrc": [augrc], "aurc": [aurc], "distinct": int(count.size)}


def one(name, path):
    """Print what one of them finds, in which time, and the most memory of its process."""
    start = time.perf_counter()
    kinds = {f.__name__: f for f in (one_pass, two_passes, histogram, duckdb, polars)}
    found = kinds.get(name, only_read)(path)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    print(json.dumps({"name": name, "seconds": seconds, "cpu": cpu, "peak": peak} | found))


def timed(name, path, python):
    command = [python, __file__, "one", str(path), "--name", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"name": name, "failed": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout)


def measure(path, names, rounds, peers):
    """Run each between two readings; the ratios are to the mean of both.

    Of the time on the clock, and of that of the processor, which others on the machine change less.
    """
    out = []
    for _ in range(rounds):
        before = timed("read", path, sys.executable)
        for name in names:
            found = timed(name, path, peers if name in PEERS else sys.executable)
            after = timed("read", path, sys.executable)
            found |= {"rows": after["rows"], "load": os.getloadavg()[0]}
            for key in ("seconds", "cpu"):
                alone = (before[key] + after[key]) / 2
                found[f"reading_{key}"] = alone
                found[f"ratio_{key}"] = found[key] / alone if key in found else None
            print(json.dumps(found), flush=True)
            out.append(found)
            before = after
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("generate", "measure", "one"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--names", nargs="+", default=STATES)
    parser.add_argument("--name", default="read")
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.what == "generate":
        generate(given.file, int(given.rows))
    elif given.what == "one":
        one(given.name, given.file)
    else:
        found = measure(given.file, given.names, given.rounds, given.peers)
        if given.out:
            given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
    main()
