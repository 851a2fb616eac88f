"""`wasmsand serve --workers N`: a front process and worker processes.

The front process:

    front.py          what all its requests share
    front_application.py  the ASGI application: admits a request, chooses its worker, forwards it
    forwarding.py     one request and its response, over a connection to a worker
    merging.py        one answer made of the answers of all workers: lists, metrics
    crew.py           the workers: start, watch, replace, stop
    slot.py           the place of one worker, which outlives the worker
    ledger.py         quotas of all workers together, and which worker has which sandbox
    store_service.py  the store, on behalf of the workers

A worker (started by `wasmsand.cli.serve_worker`):

    worker.py         the server's application, behind frames instead of HTTP
    worker_quotas.py  quotas that ask the ledger
    worker_store.py   a store that asks the front process

Both:

    frames.py         what is sent between them
    channel.py        calls of a worker to the front process, with descriptors

Rules: the front process runs no guest and parses all HTTP; a worker runs guests, and has neither
tokens nor files. Nothing that a worker sends is trusted beyond its own sandboxes.
docs/decisions/0031-workers-behind-a-front.md explains the design.
"""
