"""Benchmarks: the sandbox and this machine's native programs, side by side.

`wasmsand bench` (or `python -m bench.run`) prints every number that the documentation
shows. Rules: both sides run the same script with the same environment, taking turns in
one process, and the table shows medians.
"""
