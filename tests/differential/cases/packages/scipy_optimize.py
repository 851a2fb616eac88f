#| packages: scipy
#| tolerance: 1e-5
import numpy as np
from scipy import optimize


def rosen(x):
    return sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


x0 = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
for method in ("Nelder-Mead", "BFGS", "L-BFGS-B", "SLSQP", "Powell", "COBYQA"):
    r = optimize.minimize(rosen, x0, method=method, options={"maxiter": 20000})
    print(method, r.success, r.x.round(2))
print(
    optimize.brentq(lambda x: x**3 - 2, 0, 2),
    optimize.newton(lambda x: np.cos(x) - x, 1.0),
    optimize.root(lambda x: [x[0] + x[1] - 3, x[0] * x[1] - 2], [0, 3]).x.round(6),
)
x = np.linspace(0, 4, 50)
y = 2.5 * np.exp(-1.3 * x) + 0.5
p, cov = optimize.curve_fit(lambda x, a, b, c: a * np.exp(-b * x) + c, x, y)
print(p, optimize.least_squares(lambda p: p[0] * x - 2 * x, [1.0]).x)
r = optimize.linprog(
    [-1, 4], A_ub=[[-3, 1], [1, 2]], b_ub=[6, 4], bounds=[(None, None), (-3, None)]
)
print(
    r.x,
    r.fun,
    r.status,
    optimize.milp(
        c=[-1, -2], constraints=optimize.LinearConstraint([[1, 1]], ub=3.5), integrality=[1, 1]
    ).x,
)
print(
    optimize.minimize_scalar(lambda x: (x - 2) ** 2).x,
    optimize.fsolve(lambda x: x**2 - 4, 1.0),
    [part.tolist() for part in optimize.linear_sum_assignment([[4, 1, 3], [2, 0, 5], [3, 2, 2]])],
)
print(
    optimize.differential_evolution(lambda x: (x**2).sum(), [(-5, 5)] * 2, seed=1).x.round(3),
    optimize.nnls(np.eye(2), [1, -1])[0],
)
