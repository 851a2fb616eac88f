#| ignore: files
"""The interpreter's options and variables."""

import os
import subprocess
import sys


def run(*arguments, stdin="", **variables):
    done = subprocess.run(
        [sys.executable, *arguments], input=stdin, capture_output=True, text=True,
        env={**os.environ, **variables},
    )
    print(arguments, variables, done.returncode, done.stdout, done.stderr.replace(sys.executable, "python"), sep="|")


with open("module_x.py", "w") as file:
    file.write("import sys\nprint(__name__, sys.argv[1:])\nassert not sys.argv[1:], 'argument'\n")
os.mkdir("package")
open("package/__init__.py", "w").close()
with open("package/__main__.py", "w") as file:
    file.write("from . import __name__ as n\nprint('main of', n)\n")
run("-c", "import sys; print(sys.argv)", "a", "-b")
run("-m", "module_x", "1")
run("-O", "-m", "module_x", "1")
run("module_x.py")
run("-m", "package")
run("package")
run("-", "x", stdin="import sys; print('stdin', sys.argv)")
run(stdin="print(1)\nprint(2)")
run("-u", "-c", "print('unbuffered')")
run("-W", "error", "-c", "import warnings; warnings.warn('w')")
run("-I", "-c", "import sys; print(sys.flags.isolated, '' in sys.path)")
run("-c", "import sys; print(sys.flags.ignore_environment, sys.flags.no_user_site, sys.flags.optimize)", "-E")
run("-Esc", "import sys; print(sys.flags.ignore_environment, sys.flags.no_user_site)")
run("-c", "import module_y", PYTHONPATH="/nowhere:elsewhere")
run("-c", "import sys; print([p for p in sys.path if 'elsewhere' in p] != [])", PYTHONPATH="elsewhere")
run("-c", "import sys; print(sys.flags.hash_randomization, list({'a', 'b'} | {'c'}) != [])", PYTHONHASHSEED="0")
run("-c", "import sys; print(sys.flags.hash_randomization)", PYTHONHASHSEED="123")
run("-X", "utf8=0", "-c", "import sys; print(sys.flags.utf8_mode)")
run("-c", "import sys; print(sys.dont_write_bytecode)", PYTHONDONTWRITEBYTECODE="1")
run("-c", "print(__debug__)", PYTHONOPTIMIZE="2")
run("-i", "-c", "x = 5", stdin="print(x * 2)\n")
run("-q", "-i", stdin="1 + 1\nimport sys\nraise SystemExit(3)\n")
run("-Z")
run("nowhere.py")
run("-c", "x = (")
run("-V")
run("-c", "import sys; print(sys.stdout.encoding, sys.getfilesystemencoding(), sys.stdin.encoding)")
print(sorted(name for name in os.listdir() if name == "__pycache__"), os.listdir("__pycache__"))
