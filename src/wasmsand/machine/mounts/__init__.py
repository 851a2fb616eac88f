"""Directories of the host that are mounted in a sandbox.

Layout, lowest first: `beneath` opens paths below a directory handle, `quota` counts what a sandbox
writes, `host_directory` and `host_changes` read and change one host directory (both block),
`asking` brings these to the kernel without blocking it, `table` has the mounts of one machine,
`differences` and `applying` are about the changes of an overlay.

Rules: nothing else in wasmsand opens a file of a mounted directory.
"""
