#| packages: numpy
#| xfail: L090 the default integer type has 32 bits
import numpy as np

print(np.arange(3).dtype, np.array([1, 2]).sum().dtype, np.array([100_000]) ** 2)
