"""A sandbox's tools as the objects of agent frameworks; one file per framework.

Rules: each is a translation of `SandboxTools.definitions` and `SandboxTools.handle` and adds
nothing; a framework's package is imported by its own file only, and installed by the user
(`pip install 'wasmsand[adapters]'` brings all of them). An error is a result that the model
reads, as `handle` returns it, so that no framework ends a run for a file that is missing.
"""
