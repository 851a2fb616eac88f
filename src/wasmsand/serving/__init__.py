"""What every HTTP server of ours shares: `wasmsand serve` and `wasmsand mcp --http`.

    connections.py    one TCP connection: its timers, and what it may hold
    crowd.py          all connections of a server: how many, whose, and who goes first
    lanes.py          threads and queues for calls that block, per tenant
    daemons.py        the threads themselves
    endings.py        work that frees something: never refused, never waited for on the loop
    shares.py         a fair division of something among tenants
    hosts.py          which names stand for this machine
    ending.py         the end of a server: always, and within seconds

A tenant is whoever must not disturb others: a token, or a session. Rules: nothing that can
wait for a sandbox runs on the event loop; whatever a client can make grow has a bound per
tenant and a bound in all; work that outlives its request keeps its place until it is done.
"""
