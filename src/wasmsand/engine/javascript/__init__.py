"""The WebAssembly of a JavaScript host: a browser or Node.

This Python runs in Pyodide, in a worker of that host. Each guest runs in a worker of its own, with
a shared memory, or in this worker, suspended while it waits: the host decides. Its calls and its
memory are reached from here. Rules: `host` describes
everything that the JavaScript side offers; nothing else here touches a JavaScript object.
"""

from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.engine.javascript.host import JavaScriptHost

__all__ = ["JavaScriptEngine", "JavaScriptHost"]
