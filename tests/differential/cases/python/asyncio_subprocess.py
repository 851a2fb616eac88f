"""Processes of asyncio: pipes both ways, exit codes, kill, many at once."""

import asyncio
import sys


async def main() -> None:
    process = await asyncio.create_subprocess_exec(
        "tr", "a-z", "A-Z", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    print(await process.communicate(b"hello\n"), process.returncode)
    process = await asyncio.create_subprocess_shell(
        "echo out; echo err >&2; exit 3",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    print(await process.communicate(), process.returncode)
    process = await asyncio.create_subprocess_exec("sleep", "60")
    process.kill()
    print(await process.wait())

    async def child(i: int) -> bytes:
        code = f"print({i} ** 2)"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
        )
        return (await process.communicate())[0]

    print(await asyncio.gather(*(child(i) for i in range(4))))
    try:
        await asyncio.create_subprocess_exec("no-such-program")
    except FileNotFoundError as error:
        print(error)


asyncio.run(main())
