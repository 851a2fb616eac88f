"""A job server that all running makes share.

If several recipes are built at once, each `make -jN` would start N compilers. GNU make's job
server is a pipe with one byte per free slot. Every make takes a byte before it starts another
command and puts it back afterwards, so all of them together run about N commands.
"""

from __future__ import annotations

import os


class JobServer:
    """A pipe with one token per job, besides the one job that every make may always run."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._read, self._write = os.pipe()
        os.write(self._write, b"+" * (jobs - 1))

    @property
    def make_flags(self) -> str:
        """The value of MAKEFLAGS for a make that shares this server."""
        return f" -j{self._jobs} --jobserver-auth={self._read},{self._write}"

    @property
    def descriptors(self) -> tuple[int, int]:
        """The descriptors that a make must inherit."""
        return self._read, self._write

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)
