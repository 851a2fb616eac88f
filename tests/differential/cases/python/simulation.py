"""Random processes with fixed seeds: the same numbers everywhere."""

import random
from collections import Counter
from statistics import fmean, pstdev

rng = random.Random(2024)
rolls = Counter(rng.randint(1, 6) + rng.randint(1, 6) for _ in range(20_000))
print(sorted(rolls.items()))
inside = sum(rng.random() ** 2 + rng.random() ** 2 <= 1 for _ in range(50_000))
print(4 * inside / 50_000)
walk = [0]
for _ in range(1000):
    walk.append(walk[-1] + rng.choice((-1, 1)))
print(walk[-1], min(walk), max(walk), round(pstdev(walk), 6))
print([round(f(2, 3), 9) for f in (rng.gauss, rng.uniform, rng.betavariate, rng.gammavariate, rng.normalvariate)])
print(round(rng.expovariate(0.5), 9), rng.getrandbits(100), rng.sample("abcdefgh", 4), round(fmean(rng.triangular() for _ in range(100)), 9))
state = rng.getstate()
first = [rng.random() for _ in range(3)]
rng.setstate(state)
print(first == [rng.random() for _ in range(3)])


class Machine:
    """A queue of customers, by events."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def run(self, customers: int) -> float:
        clock = free = waited = 0.0
        for _ in range(customers):
            clock += self.random.expovariate(1.0)
            start = max(clock, free)
            waited += start - clock
            free = start + self.random.expovariate(1.25)
        return waited / customers


print([round(Machine(seed).run(500), 6) for seed in range(4)])
