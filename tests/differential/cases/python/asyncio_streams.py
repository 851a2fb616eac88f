"""A server and clients over a loopback socket, and one over a Unix socket."""

import asyncio


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: str) -> str:
    writer.write(text.encode() + b"\n")
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer.decode().strip()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        asked = (ask(*connection, f"client {i}") for i, connection in enumerate(connections))
        answers = await asyncio.gather(*asked)
    print(answers)
    server = await asyncio.start_unix_server(serve, "socket")
    async with server:
        print(await ask(*await asyncio.open_unix_connection("socket"), "über unix"))
    try:
        await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        print(type(error).__name__)


asyncio.run(main())
