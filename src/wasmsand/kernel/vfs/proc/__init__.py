"""/proc: a synthetic file system that shows kernel state (`ProcSource`)."""

from wasmsand.kernel.vfs.proc.procfs import ProcFs
from wasmsand.kernel.vfs.proc.source import FdInfo, ProcessFacts, ProcSource, SystemInfo

__all__ = ["FdInfo", "ProcFs", "ProcSource", "ProcessFacts", "SystemInfo"]
