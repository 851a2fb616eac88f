"""The parts of the Python driver that a session loads when it first needs them.

The host never imports these files; their sources run in the sandbox (see `python_source`), each in
its own namespace, where the name `driver` gives access to `python_driver`. Rules: only the standard
library and `driver` are imported; nothing here is trusted by the host.

    asking      input()
    awaiting    the event loop of the session
    display     display() and the classes of IPython.display
    failing     the description of an exception
    figures     figures of matplotlib
    forms       the MIME forms of a value
    imports     the module IPython, and the hook for the import of matplotlib
    lines       translates `!command` and `%magic` lines
    magics      runs them
    values      which values an answer contains as they are
"""
