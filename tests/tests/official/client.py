"""Drives `touchmark mcp` by the protocol's own Python library, which compares
what comes with the schemas by itself. Arguments: the era (a mode of
`mcp.Client`), the protocol's version that must come of it, the workspace, and
the server's command."""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

CHANGES = "touchmark://changes"


async def main() -> None:
    mode, version, workspace, *command = sys.argv[1:]
    path = os.path.join(workspace, "a.txt")
    told = asyncio.Event()

    async def heard(message) -> None:
        if type(message).__name__ == "ResourceUpdatedNotification":
            told.set()

    server = StdioServerParameters(
        command=command[0], args=command[1:], env=dict(os.environ)
    )
    async with Client(server, mode=mode, message_handler=heard) as client:
        assert client.protocol_version == version, client.protocol_version
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"read_file", "edit_file", "changed_files"} <= tools, tools

        async def call(tool, error=False, **arguments):
            result = await client.call_tool(tool, arguments)
            assert bool(result.is_error) == error, result
            assert result.structured_content is None, result
            return result.meta["touchmark/result"]

        assert (await call("read_file", path="a.txt"))["text"] == "one\n"
        assert (await call("read_file", path="a.txt"))["verdict"] == "repeat"

        async def user_writes(text) -> None:
            with open(path, "w") as file:
                file.write(text)

        if mode == "legacy":
            await client.session.subscribe_resource(CHANGES)
            await user_writes("two\n")
            await asyncio.wait_for(told.wait(), 20)
        else:
            async with client.listen(resource_subscriptions=[CHANGES]) as events:
                await user_writes("two\n")
                event = await asyncio.wait_for(anext(aiter(events)), 20)
                assert event.uri == CHANGES, event

        refused = await call(
            "edit_file", error=True, path="a.txt", oldString="two", newString="2"
        )
        assert refused["error"]["code"] == "stale", refused
        [change] = (await call("changed_files"))["changes"]
        assert change["path"] == "a.txt", change
        assert change["changedBy"] == [{"kind": "user"}], change
        assert (await call("changed_files"))["changes"] == []
        resource = await client.read_resource(CHANGES)
        assert resource.contents[0].text == '{"changes":[]}', resource

        await call("read_file", path="a.txt")
        await call("edit_file", path="a.txt", oldString="two", newString="2")
        await call("write_file", path="b.txt", text="b\n")
        found = await call("grep", pattern="^2$")
        assert [match["path"] for match in found["matches"]] == ["a.txt"], found
        versions = (await call("who_changed", path="a.txt"))["versions"]
        assert versions[0]["author"]["kind"] == "agent", versions
        made = await call("checkpoint", action="create")
        assert (await call("checkpoint", action="detect", checkpoint=made["checkpoint"]))["files"] == []
        states = (await call("file_status"))["files"]
        assert [file["state"] for file in states] == ["fresh", "fresh"], states
    print(version)


asyncio.run(main())
