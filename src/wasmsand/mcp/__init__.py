"""The MCP server: a sandbox for any client of the Model Context Protocol.

`wasmsand mcp` serves one client on standard input and output; `wasmsand mcp --http` serves
many, each with a sandbox of its own. Needs the package `mcp`: `pip install 'wasmsand[mcp]'`.

`sessions.py` has the sandboxes and their lives, `server.py` the protocol's requests,
`results.py` and `resources.py` the words of its answers, `stdio.py` and `streamable_http.py`
the two transports, `gate.py` who may use HTTP. The tools are those of `wasmsand.tools`.
"""
