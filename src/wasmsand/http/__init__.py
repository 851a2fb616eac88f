"""The HTTP interface: a server (`wasmsand serve`) and the client behind `Sandbox.connect`.

The server:

    serve.py          starts and stops the listening process
    app.py            the ASGI application: checks a request, calls its handler, responds
    routes.py         the table of routes (routing.py defines a route)
    handlers/         one function per route
    messages.py       types of JSON requests and responses; openapi.py documents them
    failures.py       the JSON form of errors; maps exceptions to status and code
    streaming.py      responses sent while they are produced; long_answers.py: long JSON
    service.py        state that all requests share
    registry.py       the live sandboxes and their expiry
    served.py         one sandbox; started.py: one started command in it
    quotas.py         what each token uses and may use; tokens.py: authentication
    metrics.py        metrics for Prometheus
    settings.py       every limit of the server, with its default

The client:

    backend.py        a server's sandbox, as a backend of the SDK
    process.py        a started command in it
    transport.py      requests over persistent connections
    answers.py        decodes responses into values and exceptions

Connections, threads and shutdown are in `wasmsand.serving`.

Rules: nothing that blocks runs on the event loop; `settings.py` bounds everything that a
client can make grow; the client needs only the standard library.
docs/protocols/http.md is the reference of the protocol.
"""
