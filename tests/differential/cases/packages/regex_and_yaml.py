#| packages: regex pyyaml
import datetime
import regex
import yaml

print(
    regex.findall(r"\p{Lu}\w+", "Ärger und Übung, ok"),
    regex.sub(r"(?<=a)b+", "-", "abbb cb"),
    regex.fullmatch(r"(?:ab){e<=1}", "abx"),
)
print(
    regex.match(r"(\w)+", "abc").captures(1),
    regex.findall(r"(?r)\d\d", "12345"),
    regex.split(r"(?V1)(?=b)", "abab"),
    regex.search(r"(?<n>\d+)", "x42")["n"],
)
print(
    regex.findall(r"\X", "e\u0301a"),
    regex.sub(r"(?i)HELLO", "bye", "Hello"),
    regex.search(r"\((?:[^()]|(?R))*\)", "x(a(b)c)y").group(),
    regex.fullmatch(r"(?:cats|cat){e<=1}", "cast", regex.BESTMATCH),
)
data = {
    "a": [1, 2.5, None, True],
    "b": {"c": "text: with colon", "d": "multi\nline"},
    "when": datetime.date(2024, 5, 1),
    "ü": "ß",
}
text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
print(text, yaml.safe_load(text) == data, yaml.dump(data, default_flow_style=True))
print(
    yaml.safe_load(
        "x: &k {p: 1}\ny: *k\nz: !!str 5\nl:\n - 0x1F\n - 1_000\n - 12:30\n - yes\n - ~\n"
    ),
    list(yaml.safe_load_all("a: 1\n---\nb: 2")),
)
print(
    yaml.__with_libyaml__,
    yaml.load("[1, {a: b}]", Loader=yaml.CSafeLoader),
    yaml.dump({"k": [1]}, Dumper=yaml.CSafeDumper),
)
for bad in ("a: [1", "a: b: c", "\t- x"):
    try:
        yaml.safe_load(bad)
    except yaml.YAMLError as error:
        print(type(error).__name__, " ".join(str(error).split()))
