"""The HTTP interface: a server (`wasmsand serve`) and the client behind `Sandbox.connect`.

The server:

    serve.py          from settings to a listening process, and its end
    app.py            the ASGI application: one request from its header to its answer
    routes.py         the one table of routes (routing.py says what a route is)
    handlers/         what each route does
    messages.py       the types of what goes in and out; openapi.py makes the document
    failures.py       the one shape of errors, and which exception is which
    streaming.py      answers that are sent while they are made; long_answers.py: long JSON
    service.py        what all requests share
    registry.py       the sandboxes that live, and when they expire
    served.py         one of them; started.py: a command that goes on in it
    quotas.py         what each token holds and may still take; tokens.py: who may come in
    metrics.py        numbers for Prometheus
    settings.py       every limit of the server, with its default

The client:

    backend.py        a sandbox of a server, as a backend of the SDK
    process.py        a command that goes on in it
    transport.py      requests over kept connections
    answers.py        answers as values and exceptions

Connections, threads and the end of a server are in `wasmsand.serving`.

Rules: nothing that blocks runs on the event loop; everything a client can make grow is
bounded by a number of `settings.py`; the client needs the standard library only.
docs/protocols/http.md is the reference of the protocol.
"""
