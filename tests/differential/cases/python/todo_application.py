"""A small application: classes, JSON storage, a command loop on standard input."""

import json
import subprocess
import sys
from pathlib import Path

APPLICATION = '''
import json, sys
from pathlib import Path

class Store:
    def __init__(self, path):
        self.path = Path(path)
        self.items = json.loads(self.path.read_text()) if self.path.exists() else []
    def save(self):
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.items, indent=1))
        temporary.replace(self.path)

store = Store("todo.json")
for line in sys.stdin:
    command, _, rest = line.strip().partition(" ")
    match command:
        case "add" if rest:
            store.items.append({"text": rest, "done": False})
        case "done":
            try:
                store.items[int(rest) - 1]["done"] = True
            except (ValueError, IndexError) as error:
                print(f"error: {error}", file=sys.stderr)
        case "list":
            for number, item in enumerate(store.items, 1):
                print(f"{number}. [{'x' if item['done'] else ' '}] {item['text']}")
        case "quit":
            break
        case _:
            print(f"what is {command!r}?", file=sys.stderr)
store.save()
'''
Path("todo.py").write_text(APPLICATION)
for commands in ("add milk\nadd bread\ndone 1\nlist\n", "list\ndone 9\ndone x\nfly\nquit\nadd never\n"):
    done = subprocess.run([sys.executable, "todo.py"], input=commands, text=True, capture_output=True)
    print(done.returncode, done.stdout, done.stderr, sep="|")
print(json.loads(Path("todo.json").read_text()))
