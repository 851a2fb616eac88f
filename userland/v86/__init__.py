"""The v86 machine: a small Debian for i386, booted once and saved.

    packages.toml   what it is made of, pinned by hash
    pinned          reads that table and fetches the files
    root_disk       the root file system, as a disk
    initrd          the first file system, which only boots
    boot            boots the machine in Node and saves it
    build           the steps of `wasmsand build v86`, and the image directory
    agent.c         process 1 of the machine
    init.sh         what runs before it

Rules: nothing here is part of the other recipes or of their keys; `wasmsand build` without names
does not build it.
"""
