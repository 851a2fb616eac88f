"""A tokenizer, a recursive-descent parser, an evaluator."""

import re
from typing import NamedTuple


class Token(NamedTuple):
    kind: str
    text: str
    at: int


SPEC = {"NUMBER": r"\d+(\.\d*)?", "NAME": r"[A-Za-z_]\w*", "OP": r"\*\*|[-+*/()=,]", "SPACE": r"\s+", "BAD": r"."}
SCANNER = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in SPEC.items()))


def tokens(text):
    for match in SCANNER.finditer(text):
        if match.lastgroup == "BAD":
            raise SyntaxError(f"unexpected {match[0]!r} at {match.start()}")
        if match.lastgroup != "SPACE":
            yield Token(match.lastgroup, match[0], match.start())
    yield Token("END", "", len(text))


class Parser:
    def __init__(self, text, names):
        self.stream = list(tokens(text))
        self.names = names

    def take(self, *texts):
        if self.stream[0].text in texts:
            return self.stream.pop(0).text
        return None

    def statement(self):
        if self.stream[0].kind == "NAME" and self.stream[1].text == "=":
            name = self.stream.pop(0).text
            self.take("=")
            self.names[name] = value = self.sum()
        else:
            value = self.sum()
        if self.stream[0].kind != "END":
            raise SyntaxError(f"unexpected {self.stream[0].text!r} at {self.stream[0].at}")
        return value

    def sum(self):
        value = self.product()
        while op := self.take("+", "-"):
            value = value + self.product() if op == "+" else value - self.product()
        return value

    def product(self):
        value = self.power()
        while op := self.take("*", "/"):
            value = value * self.power() if op == "*" else value / self.power()
        return value

    def power(self):
        value = self.atom()
        return value ** self.power() if self.take("**") else value

    def atom(self):
        if self.take("-"):
            return -self.power()
        if self.take("("):
            value = self.sum()
            if not self.take(")"):
                raise SyntaxError("missing )")
            return value
        token = self.stream.pop(0)
        match token.kind:
            case "NUMBER":
                return float(token.text) if "." in token.text else int(token.text)
            case "NAME":
                return self.names[token.text]
        raise SyntaxError(f"unexpected {token.text or 'end'!r}")


names = {"pi": 3.14159}
for line in ("1 + 2 * 3", "r = 2.5", "pi * r ** 2", "-(2 - 5) ** 2", "2 ** 3 ** 2", "1 /", "(1", "3 $ 4", "x + 1", "1 / 0"):
    try:
        print(line, "=", Parser(line, names).statement())
    except Exception as error:
        print(line, "->", type(error).__name__, error)
