"""The MCP server: a sandbox for any client of the Model Context Protocol.

`wasmsand mcp` serves one client on standard input and output; `wasmsand mcp --http` serves
many, each with its own sandbox. It needs the package `mcp`: `pip install 'wasmsand[mcp]'`.

`sessions.py` creates and ends sandboxes, `server.py` handles requests, `results.py` and
`resources.py` format results, `stdio.py` and `streamable_http.py` are the two transports,
`gate.py` controls access over HTTP. The tools are those of `wasmsand.tools`.
"""
