#!/usr/bin/env python3
"""A program run by its first line, in a pipeline, with its output cut off."""

import os
import stat
import subprocess

with open("tool", "w") as file:
    file.write("#!/usr/bin/env python3\nimport sys\nfor line in sys.stdin:\n    print(line.strip()[::-1])\n")
os.chmod("tool", os.stat("tool").st_mode | stat.S_IXUSR)
print(subprocess.run("printf 'abc\\ndef\\n' | ./tool | sort -r", shell=True, capture_output=True, text=True))
script = "for i in range(100000): print(i)"
print(subprocess.run(f"python3 -c '{script}' 2>err | head -n 2; echo ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash", capture_output=True, text=True).stdout)
print("BrokenPipeError" in open("err").read())
os.remove("err")
script = "import sys; print(sum(int(x) for x in sys.stdin))"
print(subprocess.getoutput(f"seq 1000 | python3 -c '{script}' | awk '{{print $1 * 2}}'"))
print(subprocess.getoutput("echo '{\"a\": [1, 2]}' | python3 -m json.tool"))
print(subprocess.getoutput("python3 -c 'print(open(0).read().upper())' < tool").splitlines()[0])
print(subprocess.getoutput("find . -name tool -exec python3 -c 'import sys; print(sys.argv[1:])' {} +"))
