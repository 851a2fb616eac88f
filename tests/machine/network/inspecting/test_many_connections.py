"""Many inspected connections at once, and what is left of them."""

from __future__ import annotations

import gc
import time

from tests.machine.network.inspecting.guests import inspected
from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.servers import echo_server
from tests.machine.network.servers import PATIENCE, run
from wasmsand.machine.network.inspecting.inspector import Inspector

PROGRAM = """
import asyncio, ssl
context = ssl.create_default_context()
async def talk(number):
    reader, writer = await asyncio.open_connection("api.test", 443, ssl=context)
    for _ in range(4):
        head = b"POST /%d HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: 3\\r\\n\\r\\nabc"
        writer.write(head % number)
        await writer.drain()
        assert (await reader.readuntil(b"\\r\\n\\r\\n")).startswith(b"HTTP/1.1 200")
        assert await reader.readline() == b"POST /%d 3\\n" % number
    writer.close()
async def main():
    await asyncio.gather(*map(talk, range(60)))
asyncio.run(main())
"""


def test_many_connections_are_served_at_once_and_leave_nothing(
    private_authority: PrivateAuthority,
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(
            private_authority, "POST api.test", hosts={"api.test": f"127.0.0.1:{echo.port}"}
        ) as machine,
    ):
        assert run(machine, "python3", "-c", PROGRAM) == ("", "")
        assert len(echo.requests) == 240
        end = time.monotonic() + PATIENCE
        while machine.kernel.network.sockets or _inspectors():
            assert time.monotonic() < end, (machine.kernel.network.sockets, _inspectors())
            time.sleep(0.05)
            gc.collect()
        requests = [event for event in machine.bridge.log.events() if event.kind == "request"]
        assert len(requests) == 240


def _inspectors() -> int:
    return sum(isinstance(value, Inspector) for value in gc.get_objects())
