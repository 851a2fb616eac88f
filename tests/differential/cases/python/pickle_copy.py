"""pickle, marshal, shelve, struct, array, copyreg: values in and out of bytes."""

import array
import datetime
import marshal
import pickle
import shelve
import struct
from dataclasses import dataclass


@dataclass
class Node:
    name: str
    children: list["Node"]


tree = Node("root", [Node("a", []), Node("b", [])])
tree.children.append(tree.children[0])
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    back = pickle.loads(pickle.dumps(tree, protocol))
    print(protocol, back == tree, back.children[0] is back.children[2], len(pickle.dumps([1, "x", 2.5], protocol)))
values = {"set": {1, 2}, "when": datetime.datetime(2024, 1, 1), "big": 10**50, "bytes": b"\0\xff", "t": (None, True)}
print(pickle.loads(pickle.dumps(values)) == values, marshal.loads(marshal.dumps([1, 2.5, "é"])))
try:
    pickle.dumps(lambda: 0)
except (pickle.PicklingError, AttributeError) as error:
    print(type(error).__name__)
with shelve.open("shelf") as shelf:
    shelf["key"] = [1, 2, 3]
with shelve.open("shelf") as shelf:
    print(dict(shelf))
print(struct.pack("<IhbQd4s", 1, -2, 3, 2**60, 0.5, b"abcdef").hex(), struct.unpack(">Hh", b"\xff\xfe\xff\xfe"))
numbers = array.array("d", [1.5, 2.5])
numbers.extend(range(3))
print(numbers, numbers.tobytes()[:8].hex(), memoryview(bytearray(b"abcdef"))[1:4].tobytes())
