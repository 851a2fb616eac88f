"""How a program ends: sys.exit, os._exit, exceptions, atexit, streams that are flushed."""

import subprocess
import sys

for code in (
    "import sys; sys.exit()",
    "import sys; sys.exit(3)",
    "import sys; sys.exit('message')",
    "raise SystemExit(300)",
    "import os; print('lost', end=''); os._exit(9)",
    "import atexit; atexit.register(print, 'at exit'); print('first')",
    "import atexit; atexit.register(lambda: 1/0); print('x')",
    "1/0",
    "import sys; sys.stdout.write('no newline')",
    "import os; os.abort()",
    "import sys; sys.excepthook = lambda *a: print('hook', a[0].__name__); 1/0",
    "import sys; sys.stdout.close(); sys.exit(1)",
    "def f():\n  try:\n    yield\n  finally:\n    print('closed')\ng = f(); next(g)",
    "raise KeyboardInterrupt",
    "import threading; threading.Thread(target=lambda: print('thread')).start(); print('main')",
):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    print(done.returncode, repr(done.stdout), repr(done.stderr.strip().splitlines()[-1:]))
