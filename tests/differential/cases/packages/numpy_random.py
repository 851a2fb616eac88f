#| packages: numpy
import numpy as np

rng = np.random.default_rng(12345)
print(rng.random(3), rng.integers(0, 10, 8), rng.normal(size=3), rng.standard_exponential(2))
print(
    rng.choice(["a", "b", "c"], 5, p=[0.5, 0.3, 0.2]), rng.permutation(6), rng.shuffle(np.arange(3))
)
print(rng.binomial(10, 0.5, 5), rng.poisson(4, 5), rng.gamma(2.0, 2.0, 2), rng.beta(1, 2, 2))
print(rng.multivariate_normal([0, 0], [[2, 1], [1, 2]], 2), rng.dirichlet([1, 2, 3]))
print(rng.uniform(-1, 1, (2, 2)), rng.triangular(0, 1, 2), rng.geometric(0.3, 4), rng.zipf(2.5, 4))
print(rng.bytes(6).hex(), rng.hypergeometric(10, 5, 6, 4), rng.multinomial(10, [0.2, 0.3, 0.5]))
old = np.random.RandomState(42)
print(old.rand(2), old.randn(3), old.randint(0, 100, 5), old.choice(5, 3, replace=False))
np.random.seed(0)
print(np.random.rand(2), np.random.normal(0, 1, 2), np.random.permutation(4))
for generator in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64):
    print(generator.__name__, np.random.Generator(generator(1)).integers(0, 1 << 62, 2))
children = np.random.SeedSequence(9).spawn(2)
print([np.random.default_rng(child).integers(0, 1000) for child in children])
