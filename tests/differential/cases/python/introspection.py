"""inspect, ast, dis, importlib, sys, gc: a program looks at itself and at the library."""

import ast
import dis
import gc
import importlib
import importlib.util
import inspect
import io
import json
import pkgutil
import sys
import types


def sample(a: int, *rest: str, flag: bool = False, **more) -> str:
    """A docstring."""
    return f"{a}{rest}"


print(inspect.signature(sample), inspect.getdoc(sample), inspect.getsource(sample).splitlines()[0])
print("def dumps" in inspect.getsource(json.dumps), json.__file__.startswith("/"), inspect.isfunction(json.loads))
tree = ast.parse("x = 1 + 2 * y\nprint(x)")
print(ast.dump(tree.body[0]), ast.unparse(tree), [type(n).__name__ for n in ast.walk(tree)][:6])
print(ast.literal_eval("{'a': [1, (2, 3)], 'b': None}"), eval("__import__('math').pi", {"__builtins__": __builtins__}))
out = io.StringIO()
dis.dis(compile("a + b", "<s>", "eval"), file=out)
print([line.split()[1] for line in out.getvalue().splitlines() if len(line.split()) > 1][:4])
module = types.ModuleType("made")
exec("def f(): return 42", module.__dict__)
sys.modules["made"] = module
print(importlib.import_module("made").f(), importlib.util.find_spec("no_such_module"))
print(sys.version_info[:2], sys.implementation.name, sys.platform, sys.byteorder, sys.maxunicode)
print(sys.getrecursionlimit(), sys.getrefcount([]) < 4, sys.intern("x") is sys.intern("x"))
gc.collect()
print(gc.isenabled(), len(sys.stdlib_module_names) > 200)
names = {m.name for m in pkgutil.iter_modules()}
print({"json", "asyncio", "sqlite3", "http", "xml", "email"} <= names)
frame = inspect.currentframe()
print(frame.f_lineno > 40, frame.f_code.co_name, sample.__annotations__, sample.__kwdefaults__)
