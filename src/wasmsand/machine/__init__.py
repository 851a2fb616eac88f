"""One sandbox's life: options to image, kernel and engine; run, capture, timeout."""

from wasmsand.machine.command import Completed
from wasmsand.machine.files import FileEntry, HostFiles
from wasmsand.machine.image import ImageMissing, base_image, image_programs
from wasmsand.machine.machine import Machine, MachineOptions
from wasmsand.machine.terminal import HostTerminal
from wasmsand.machine.tools import ToolRejected

__all__ = [
    "Completed",
    "FileEntry",
    "HostFiles",
    "HostTerminal",
    "ImageMissing",
    "Machine",
    "MachineOptions",
    "ToolRejected",
    "base_image",
    "image_programs",
]
