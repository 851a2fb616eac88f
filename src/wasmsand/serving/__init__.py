"""What the HTTP servers `wasmsand serve` and `wasmsand mcp --http` share.

    connections.py    one TCP connection: its timers and limits
    crowd.py          all connections of a server: their number, owners, and eviction
    lanes.py          threads and queues for calls that block, per tenant
    daemons.py        the threads
    endings.py        work that frees resources: never refused, never awaited on the loop
    shares.py         divides a resource fairly among tenants
    hosts.py          which names mean this machine
    listening.py      the listening socket
    pages.py          the files of a web page, and their headers
    page_server.py    a small server for a page, on this machine only
    shutdown.py       shutdown, within seconds, whatever hangs

A tenant is a token or a session; tenants must not disturb each other. Rules: nothing that can
wait for a sandbox runs on the event loop; everything that a client can make grow has a limit
per tenant and a total limit; work that outlives its request keeps its place until it ends.
"""
