"""Coverage-guided fuzzing: `make fuzz`, or `python -m fuzz --seconds 60 [target ...]`.

Each target of `fuzz/targets` feeds bytes to one interface of wasmsand. An input that reaches
code that no earlier input reached is kept and mutated further. An input that breaks a rule of
`fuzz/oracles.py` is written to a file, with the command that repeats it. Why the loop is our own:
docs/decisions/0014-a-fuzzing-loop-of-our-own.md.
"""
