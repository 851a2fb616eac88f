"""The network of a sandbox in a JavaScript host.

    bridge        what a sandbox may reach: the rules and the budget of every host
    stream        one connection of a guest, which ends here
    conversation  the requests on it; each becomes a request of the host
    tls           TLS with the guest, which the JavaScript side speaks

Rules: a page has no sockets, only `fetch`. So every connection of a guest ends in the kernel's
worker, each request is decided by the same policy as on a server, and the host makes the request.
"""
