"""JSON-RPC 2.0 over standard input and output: `wasmsand rpc`, one sandbox per process.

`protocol` knows JSON-RPC and no sandbox, `methods` is the table of what can be called (the rest
of it is in `methods_*`), `session` what a client has, `server` the loop. `client` starts a server
and talks to it, and `backend` makes `Sandbox(isolation="process")` of that; `values` and `params`
are for both ends. docs/protocols/json-rpc.md is the reference for those who write clients.
"""
