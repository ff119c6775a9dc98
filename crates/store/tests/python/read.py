"""Reads the tables of a data directory as others do and prints what it finds as JSON."""

import json
import sys

import duckdb
from deltalake import DeltaTable

found = {}
for name in ("spans", "samples", "profiles", "stacks", "frames"):
    table = DeltaTable(f"{sys.argv[1]}/{name}")
    files = table.file_uris()
    rows = 0
    if files:
        rows = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [files]).fetchone()[0]
    adds = table.get_add_actions(flatten=True)
    found[name] = {
        "rows": rows,
        "rows_by_log": sum(adds.column("num_records").to_pylist()),
        "tenants": sorted(set(adds.column("partition.tenant").to_pylist())),
        "days": len(set(adds.column("partition.day").to_pylist())),
        "columns": [field.name for field in table.schema().fields],
    }

# The product's question in SQL: which functions ran in a trace.
frames = DeltaTable(f"{sys.argv[1]}/frames").file_uris()
stacks = DeltaTable(f"{sys.argv[1]}/stacks").file_uris()
samples = DeltaTable(f"{sys.argv[1]}/samples").file_uris()
functions = duckdb.execute(
    """
    SELECT f.function, sum(list_sum(s.values))::BIGINT AS value
    FROM read_parquet(?) s
    JOIN (SELECT DISTINCT stack_id, frame_ids FROM read_parquet(?)) k ON k.stack_id = s.stack_id
    JOIN (SELECT DISTINCT ON (frame_id) frame_id, function FROM read_parquet(?)) f ON f.frame_id = k.frame_ids[1]
    GROUP BY 1 ORDER BY 2 DESC
    """,
    [samples, stacks, frames],
).fetchall()
found["functions"] = functions
json.dump(found, sys.stdout)
