"""A processor for rotel's logs: copies the name of each event into an attribute.

Rotel's exporter for ClickHouse leaves the name out. The table in README.md takes
it from this attribute where the column has no value.
"""

from rotel_sdk.open_telemetry.common.v1 import KeyValue


def process_logs(resource_logs):
    for scope_logs in resource_logs.scope_logs:
        for record in scope_logs.log_records:
            if record.event_name:
                name = KeyValue.new_string_value("event.name", record.event_name)
                record.attributes.append(name)
