"""Threads: workers on a queue, locks, events, conditions, pools, timers, thread-local data."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

jobs: queue.Queue[int | None] = queue.Queue(maxsize=2)
done: list[int] = []
lock = threading.Lock()


def work() -> None:
    while (job := jobs.get()) is not None:
        with lock:
            done.append(job * job)
        jobs.task_done()


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for n in range(10):
    jobs.put(n)
jobs.join()
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
print(sorted(done), [t.is_alive() for t in threads])

counter = 0


def count() -> None:
    global counter
    for _ in range(1000):
        with lock:
            counter += 1


threads = [threading.Thread(target=count) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(counter)

ready = threading.Event()
seen = []
waiter = threading.Thread(target=lambda: seen.append(ready.wait(5)))
waiter.start()
ready.set()
waiter.join()
print(seen)

condition = threading.Condition()
turns = []


def take_turns(name: str) -> None:
    for _ in range(3):
        with condition:
            condition.wait_for(lambda: len(turns) % 2 == (name == "pong"))
            turns.append(name)
            condition.notify_all()


players = [threading.Thread(target=take_turns, args=(name,)) for name in ("ping", "pong")]
[p.start() for p in players]
[p.join() for p in players]
print(turns)

with ThreadPoolExecutor(max_workers=4) as pool:
    print(list(pool.map(lambda x: x * x, range(8))))
    futures = {pool.submit(divmod, 100, n): n for n in (7, 0)}
    for future in sorted(as_completed(futures), key=lambda f: futures[f]):
        print(futures[future], future.exception() or future.result())

local = threading.local()
local.value = "main"
values = []


def own() -> None:
    values.append(getattr(local, "value", None))
    local.value = "mine"


thread = threading.Thread(target=own)
thread.start()
thread.join()
print(values, local.value)
start = time.monotonic()
sleepers = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(5)]
[t.start() for t in sleepers]
[t.join() for t in sleepers]
print("together" if time.monotonic() - start < 0.9 else "one after the other")
timer = threading.Timer(0.01, lambda: print("timer"))
timer.start()
timer.join()
print(threading.active_count(), threading.current_thread().name)
