"""One JSON value per line, over pipes: what the protocols on standard input and output share.

`strict_json` makes values of lines and lines of values, `lines` reads lines of bounded length,
`channel` takes standard input and output for a protocol and guards them. Nothing here knows a
protocol or a sandbox.
"""
