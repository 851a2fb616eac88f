"""/proc: a synthetic file system over what the kernel tells (`ProcSource`)."""

from wasmsand.kernel.vfs.proc.source import FdInfo, ProcessInfo, ProcSource, SystemInfo

__all__ = ["FdInfo", "ProcSource", "ProcessInfo", "SystemInfo"]
