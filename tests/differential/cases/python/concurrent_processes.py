"""What takes several processes: a pool by subprocess; what fork and multiprocessing say."""

import json
import subprocess
import sys

code = "import json, sys; n = json.load(sys.stdin); print(json.dumps(sum(i * i for i in range(n))))"
children = [
    subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in range(4)
]
for n, child in enumerate(children, 1):
    child.stdin.write(json.dumps(n * 1000))
    child.stdin.close()
print([json.loads(child.stdout.read()) for child in children], [child.wait() for child in children])
