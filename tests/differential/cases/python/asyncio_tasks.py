"""asyncio: tasks, groups, timeouts, queues, cancellation."""

import asyncio


async def worker(name: str, queue: asyncio.Queue[int], results: list[tuple[str, int]]) -> None:
    while True:
        number = await queue.get()
        await asyncio.sleep(0)
        results.append((name, number * number))
        queue.task_done()


async def main() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    results: list[tuple[str, int]] = []
    workers = [asyncio.create_task(worker(f"w{i}", queue, results)) for i in range(3)]
    for n in range(7):
        queue.put_nowait(n)
    await queue.join()
    for task in workers:
        task.cancel()
    print(await asyncio.gather(*workers, return_exceptions=True))
    print(sorted(square for _, square in results))
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(10)
    except TimeoutError:
        print("timed out")
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(10))
            group.create_task(fail())
    except* ValueError as errors:
        print(errors.exceptions)
    order = []

    async def note(delay: float, name: str) -> None:
        await asyncio.sleep(delay)
        order.append(name)

    await asyncio.gather(note(0.03, "c"), note(0.01, "a"), note(0.02, "b"))
    print(order)
    print(await asyncio.to_thread(sum, range(10)))


async def fail() -> None:
    raise ValueError("no")


asyncio.run(main())
