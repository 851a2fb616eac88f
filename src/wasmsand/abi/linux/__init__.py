"""The Linux system-call ABI of our own user space.

`table.py` lists every call; `calls_*.py` hold the handlers, one family per file; `context.py` is
what a handler works on; `structs.py` holds the C layouts.
"""
