"""The line protocol of `wasm-sandbox`: five types of request, one JSON object per line.

`requests` is what a client may ask, `sandbox` does it, `disk` keeps its files, `server` is the
loop. docs/protocols/line.md is the reference for those who write clients.
"""
