#| packages: numpy
#| tolerance: 1e-8
import numpy as np

rng = np.random.default_rng(7)
a = rng.standard_normal((6, 6))
s = a @ a.T + 6 * np.eye(6)
b = rng.standard_normal(6)
print(np.linalg.solve(a, b).round(9), np.linalg.det(a), np.linalg.matrix_rank(a), np.trace(a))
print(np.linalg.inv(s).round(9)[0], np.linalg.cond(s), np.linalg.norm(a), np.linalg.norm(a, 1))
w, v = np.linalg.eigh(s)
print(w, np.allclose(v @ np.diag(w) @ v.T, s))
e = np.linalg.eigvals(a)
print(np.sort(e.real).round(8), np.sort(np.abs(e)).round(8))
u, d, vt = np.linalg.svd(a)
print(d, np.allclose((u * d) @ vt, a))
q, r = np.linalg.qr(a)
print(np.abs(np.diag(r)), np.allclose(q @ r, a), np.allclose(q.T @ q, np.eye(6)))
print(np.linalg.cholesky(s)[-1].round(9), np.linalg.slogdet(s))
x, residual, rank, singular = np.linalg.lstsq(
    rng.standard_normal((20, 3)), rng.standard_normal(20), rcond=None
)
print(x, residual, rank, singular)
print(np.linalg.pinv(a[:, :3]).shape, np.linalg.matrix_power(np.array([[1, 1], [1, 0]]), 30))
print(np.einsum("ij,jk->ik", a, s).round(6)[0], np.kron([1, 2], [1, 1]), np.outer([1, 2], [3, 4]))
print(np.cross([1, 0, 0], [0, 1, 0]), np.vdot([1j, 2], [1j, 2]), np.tensordot(a, s, 2))
try:
    np.linalg.inv(np.zeros((2, 2)))
except np.linalg.LinAlgError as error:
    print("LinAlgError", error)
big = rng.standard_normal((150, 150))
print(np.linalg.det(big / 12), (big @ big).trace(), np.linalg.svd(big, compute_uv=False)[:3])
