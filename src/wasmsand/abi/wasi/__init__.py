"""WASI preview 1: the ABI of programs compiled for wasm32-wasip1.

`table.py` lists every function; `calls_*.py` hold the handlers, one family per file; `context.py`
is what a handler works on; `descriptors.py` maps a program's descriptors to open files and their
rights; `preopens.py` defines the directories that a program starts with; `structs.py`, `rights.py`
and `errno.py` hold the layouts and numbers of preview 1.
"""
