"""Converts a sandbox's tools to the objects of agent frameworks; one file per framework.

Rules: an adapter only converts `SandboxTools.definitions` and calls `SandboxTools.handle`; only its
own file imports a framework's package, which the user installs (`pip install
'wasmsand[adapters]'` installs all of them but CrewAI, which is large). An error is a result for the
model, as `handle` returns it, so that no framework ends a run because of a missing file.
`smolagents_executor.py` is more than tools: it runs the code of an agent.
"""
