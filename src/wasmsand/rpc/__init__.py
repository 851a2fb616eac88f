"""JSON-RPC 2.0 over standard input and output: `wasmsand rpc`, one sandbox per process.

`protocol` implements JSON-RPC without sandboxes, `methods` holds the table of methods (with
`methods_*`), `session` the state of a client, `server` the loop. `client` starts a server process
and calls it; `backend` implements `Sandbox(isolation="process")` with it. Both ends use `values`
and `params`. docs/protocols/json-rpc.md is the reference for authors of clients.
"""
