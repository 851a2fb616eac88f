"""The line protocol of `wasm-sandbox`: five types of request, one JSON object per line.

`requests` validates requests, `sandbox` executes them, `disk` stores the files, `server` is the
loop. docs/protocols/line.md is the reference for authors of clients.
"""
