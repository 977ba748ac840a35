"""What is around the collector in the tests of a fleet: a gate before it and a
store behind it.

    daemons --OTLP--> gate --OTLP--> rotel --ClickHouse's HTTP--> store

The store takes `INSERT ... FORMAT RowBinary` as a ClickHouse server does, and
appends the rows to one file for each table, with the statement next to it. Its
directory is a small file system, which the test fills.

The gate passes requests on to rotel. Rotel acknowledges what it has in memory,
so what it has not stored is lost when it is killed. The gate therefore
acknowledges records only when the store has them, as a collector with a queue
on disk does. If they do not arrive in time, or rotel is gone, it answers 503.

Usage: store.py GATE_PORT ROTEL_PORT STORE_PORT DIRECTORY

The line `counts` on standard input is answered by one line of JSON: what passed
so far.
"""

import asyncio
import json
import os
import re
import sys
import urllib.parse

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
)

GATE, ROTEL, STORE = (int(port) for port in sys.argv[1:4])
DIRECTORY = sys.argv[4]

# Less than the time after which a daemon gives a request up.
PATIENCE = 8.0

# The columns of `otel_logs` in the order of rotel's statement, by how RowBinary
# writes them.
LOGS = "time str str byte str byte str str str map str str str map map".split()


class State:
    # The identities of records: the daemon's instance and the record's uid.
    stored = set()
    # Those that the gate has acknowledged.
    acknowledged = set()
    # The highest number of an acknowledged record, by the daemon's instance.
    reported = {}
    changed = asyncio.Event()
    counts = {
        "requests": 0,
        "records": 0,
        "record_bytes": 0,
        "refused": 0,
        "bytes": 0,
        "rows": 0,
        "full": 0,
    }


def count(name, more=1):
    State.counts[name] += more


async def message(reader):
    """Returns the first line and the body of a request or of an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int((await reader.readline()).strip() or b"0", 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return first, headers, body


def answer(writer, status, body=b"", kind="text/plain", close=False):
    connection = "close" if close else "keep-alive"
    head = (
        f"HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: {connection}\r\n\r\n"
    )
    writer.write(head.encode() + body)


# ----- the gate


def identities(body):
    """Returns the number of each record, by its identity."""
    request = ExportLogsServiceRequest()
    request.ParseFromString(body)
    found = {}
    for resource in request.resource_logs:
        of = {a.key: a.value.string_value for a in resource.resource.attributes}
        for scope in resource.scope_logs:
            for record in scope.log_records:
                by = {a.key: a.value for a in record.attributes}
                uid = by["log.record.uid"].string_value
                number = by["touchmark.record.number"].int_value
                found[of["service.instance.id"], uid] = number
    return found


async def forward(path, body):
    reader, writer = await asyncio.open_connection("127.0.0.1", ROTEL)
    try:
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{ROTEL}\r\n"
            f"Content-Type: application/x-protobuf\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        first, headers, back = await message(reader)
        return int(first.split(" ")[1]), headers, back
    finally:
        writer.close()


async def until(condition):
    while not condition():
        await State.changed.wait()


def changed():
    State.changed.set()
    State.changed = asyncio.Event()


async def gate(reader, writer):
    try:
        first, _, body = await message(reader)
        path = first.split(" ")[1]
        count("requests")
        count("bytes", len(body))
        status, back, kind = 503, b"", "text/plain"
        try:
            async with asyncio.timeout(PATIENCE):
                status, headers, back = await forward(path, body)
                kind = headers.get("content-type", kind)
                if status == 200:
                    numbers = identities(body)
                    wanted = set(numbers)
                    await until(lambda: wanted <= State.stored)
                    State.acknowledged |= wanted
                    for (instance, _), number in numbers.items():
                        most = max(number, State.reported.get(instance, 0))
                        State.reported[instance] = most
                    count("records", len(wanted))
                    count("record_bytes", len(body))
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            status, back = 503, b""
        if status != 200:
            count("refused")
        answer(writer, status, back, kind, close=True)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


# ----- the store


def rows(body):
    """Returns the identities of the rows of `otel_logs` in RowBinary."""
    at = 0

    def text():
        nonlocal at
        length = shift = 0
        while True:
            byte = body[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        at += length
        return body[at - length : at]

    def several():
        nonlocal at
        size = body[at]
        # The test's maps have fewer than 128 entries.
        assert size < 0x80
        at += 1
        return {text(): text() for _ in range(size)}

    found = []
    while at < len(body):
        maps = []
        for kind in LOGS:
            if kind == "time":
                at += 8
            elif kind == "byte":
                at += 1
            elif kind == "str":
                text()
            else:
                maps.append(several())
        resource, _, attributes = maps
        instance = resource[b"service.instance.id"].decode()
        found.append((instance, attributes[b"log.record.uid"].decode()))
    return found


def append(table, statement, body):
    """Appends rows as a whole or not at all."""
    place = os.path.join(DIRECTORY, table)
    # Without a buffer, which would be written once more when it is closed.
    with open(place + ".rows", "ab", buffering=0) as out:
        size = out.tell()
        try:
            # After a failure it may be there, and empty.
            if not os.path.exists(place + ".sql") or not os.path.getsize(place + ".sql"):
                with open(place + ".sql", "w") as sql:
                    sql.write(statement)
            left = memoryview(body)
            while left:
                left = left[out.write(left) :]
        except OSError:
            out.truncate(size)
            raise


async def store(reader, writer):
    try:
        while True:
            first, _, body = await message(reader)
            query = urllib.parse.urlsplit(first.split(" ")[1]).query
            statement = urllib.parse.parse_qs(query)["query"][0]
            table = re.match(r"INSERT INTO (\w+) ", statement)[1]
            try:
                append(table, statement, body)
            except OSError:
                count("full")
                answer(writer, 500, b"Code: 243. DB::Exception: NOT_ENOUGH_SPACE")
                await writer.drain()
                continue
            if table == "otel_logs":
                found = rows(body)
                count("rows", len(found))
                State.stored.update(found)
            changed()
            answer(writer, 200)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    await asyncio.start_server(gate, "127.0.0.1", GATE, backlog=1024)
    await asyncio.start_server(store, "127.0.0.1", STORE, backlog=1024)
    print(json.dumps({}), flush=True)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    while line := (await commands.readline()).decode().strip():
        said = {}
        if line == "counts":
            said = State.counts | {
                "stored": len(State.stored),
                "acknowledged": len(State.acknowledged),
                "lost": len(State.acknowledged - State.stored),
                "reported": sum(State.reported.values()),
            }
        print(json.dumps(said), flush=True)


asyncio.run(main())
