"""JSON in, JSON out, with all its kinds of values and errors."""

import json
from decimal import Decimal

text = '{"name": "Zoë", "tags": ["a", "b\\n", "\\u20ac"], "n": 1e3, "big": 12345678901234567890, "none": null}'
data = json.loads(text)
print(data, type(data["n"]), data["big"] + 1)
data["nested"] = {"z": 1, "a": [True, False, 0.1 + 0.2]}
print(json.dumps(data, sort_keys=True, indent=2))
print(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
print(json.loads("[1.10, 2]", parse_float=Decimal))
for bad in ('{"a": }', "[1, 2", "", '{"a": 1, "a": 2} x', "nul"):
    try:
        json.loads(bad)
    except json.JSONDecodeError as error:
        print(repr(bad), "->", error)
with open("records.jsonl", "w") as file:
    for i in range(3):
        file.write(json.dumps({"id": i, "square": i**2}) + "\n")
with open("records.jsonl") as file:
    print(sum(json.loads(line)["square"] for line in file))
