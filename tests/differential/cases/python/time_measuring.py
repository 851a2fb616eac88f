"""Clocks and timing, without printing what differs."""

import sched
import time
import timeit

start = time.monotonic()
time.sleep(0.02)
elapsed = time.monotonic() - start
print(0.015 < elapsed < 5, time.time() > 1_700_000_000, time.time_ns() // 10**9 >= int(time.time()) - 1)
print(time.process_time() >= 0, time.perf_counter() > 0, time.get_clock_info("monotonic").monotonic)
print(time.gmtime(86400 * 365)[:6], time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1e9)), time.tzname, time.timezone)
print(time.mktime(time.strptime("2024-06-01", "%Y-%m-%d")), time.ctime(0), time.asctime(time.gmtime(0)))
print(timeit.timeit("sum(range(10))", number=100) > 0)
events = []
scheduler = sched.scheduler()
scheduler.enter(0.02, 1, events.append, ["second"])
scheduler.enter(0.01, 1, events.append, ["first"])
scheduler.run()
print(events)
