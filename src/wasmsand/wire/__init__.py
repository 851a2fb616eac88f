"""One JSON value per line over pipes: shared by the protocols on standard input and output.

`strict_json` decodes and encodes lines, `lines` reads lines of bounded length, `channel` reserves
standard input and output for a protocol. Nothing here depends on a protocol or a sandbox.
"""
