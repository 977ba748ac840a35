"""Loads stored rows into ClickHouse (chdb) and answers queries about them.

Reads JSON on standard input: `tables`, statements that make the tables; `rows`,
the directory in which store.py keeps rows; `queries`, by their names. Prints
JSON: for each name the rows as lists, and `columns`, the names of the columns.
"""

import json
import os
import sys
import tempfile

from chdb import session

order = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as place:
    clickhouse = session.Session(place)
    clickhouse.query("CREATE DATABASE otel")
    clickhouse.query("USE otel")
    for statement in order["tables"]:
        clickhouse.query(statement)
    for name in sorted(os.listdir(order["rows"])):
        table, kind = os.path.splitext(name)
        if kind != ".sql":
            continue
        place = os.path.join(order["rows"], table)
        with open(place + ".sql") as statement:
            into, form = statement.read().rsplit(" FORMAT ", 1)
        clickhouse.query(f"{into} FROM INFILE '{place}.rows' FORMAT {form}")
    answers = {}
    for name, query in order["queries"].items():
        answer = json.loads(clickhouse.query(query, "JSONCompact").bytes())
        answers[name] = {
            "columns": [column["name"] for column in answer["meta"]],
            "rows": answer["data"],
        }
    print(json.dumps(answers))
