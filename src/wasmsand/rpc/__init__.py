"""JSON-RPC 2.0 over standard input and output: `wasmsand rpc`, one sandbox per process.

`protocol` knows JSON-RPC and no sandbox, `methods` is the table of what can be called,
`server` is the loop. docs/protocols/json-rpc.md is the reference for those who write clients.
"""
