"""Boots the machine once, in Node, and saves it.

Rules: the boot has a time limit; the kernel's messages go to the log of the build.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from userland.builder.commands import Commands
from userland.builder.errors import StepFailed

MACHINE_SCRIPT: Final = Path(__file__).resolve().parents[2] / "src/wasmsand/v86/machine.mjs"
MEMORY_BYTES: Final = 1152 << 20
"""What the machine has."""
MOST_MEMORY_BYTES: Final = 1 << 30
"""What commands may use of it."""
COMMAND_LINE: Final = (
    "console=ttyS0 quiet tsc=reliable mitigations=off random.trust_cpu=on nokaslr "
    "cryptomgr.notests lsm= audit=0 apparmor=0 acpi=off nosmp noapic nolapic lpj=4000000 "
    "pnpbios=off edd=off i8042.noaux=1 i8042.nokbd=1 init_on_alloc=0 panic=0 "
    "cgroup_no_v1=all printk.time=0 libata.dma=1"
)


def boot_and_save(
    folder: Path, scratch: Path, boot: dict[str, str], commands: Commands, log: Path
) -> None:
    """Boot the machine in `folder` with a new scratch disk, and write `state.zst` there."""
    settings = {
        "v86": str(folder / "v86"),
        "memory_bytes": MEMORY_BYTES,
        "root": str(folder / "root.ext4"),
        "scratch_bytes": scratch.stat().st_size,
        "boot": {
            **boot,
            "scratch": str(scratch),
            "command_line": COMMAND_LINE,
            "state": str(folder / "state.zst"),
        },
    }
    with log.open("ab") as stream:
        status = commands.run(
            [folder / "node", "--liftoff-only", MACHINE_SCRIPT, json.dumps(settings)],
            output=stream,
        )
    if status != 0 or not (folder / "state.zst").is_file():
        tail = log.read_text(errors="replace").splitlines()[-20:]
        raise StepFailed("v86", "boot", f"Node ended with status {status}", log, "\n".join(tail))
