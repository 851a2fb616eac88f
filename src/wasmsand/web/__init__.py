"""A sandbox inside a JavaScript host: a browser's page, or Node.

The kernel, the ABIs and the file system are those of every other host. What differs is here: a
driver without threads, whose guests run in workers, and a machine around it. The JavaScript side is
the package in `web/`.
"""
