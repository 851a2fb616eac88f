"""The bridge's view of HTTP requests, for hosts with rules on requests or with secrets.

    authority     the certificate authority of a sandbox, and certificates of hosts
    contexts      settings of TLS towards the guest and towards real hosts
    order         what one connection is inspected for
    inspector     `Inspector`: one connection, without input and output of its own
    transports    bytes of one side, as they are
    tls           bytes of one side, by TLS
    conversation  the requests of one connection, one after the other
    exchange      one allowed request and its response
    heads         strict checks of the bytes of a request's head
    examination   decides about a request, and writes the one that the host gets
    secrets       header values that the guest never sees
    refusals      responses that the bridge itself gives
    websocket     requests and responses that switch to WebSocket

Rules: nothing here opens files or sockets, waits or has threads. Every buffer is bounded. A secret
is written only to the transport of the host that it belongs to. Only these modules import
`cryptography` and `h11`, and they are imported only for hosts that are inspected.
"""
