#| packages: scipy
#| tolerance: 1e-7
import numpy as np
from scipy import linalg, sparse
from scipy.sparse import linalg as sla
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree

rng = np.random.default_rng(2)
a = rng.standard_normal((8, 8))
s = a @ a.T + np.eye(8)
print(linalg.expm(a / 4)[0], linalg.logm(s).real[0], linalg.sqrtm(s)[0].real)
p, l, u = linalg.lu(a)
print(
    np.allclose(p @ l @ u, a),
    np.diag(u),
    linalg.solve(s, np.ones(8), assume_a="pos"),
    linalg.eigh(s, eigvals_only=True, subset_by_index=[0, 2]),
)
t, z = linalg.schur(a)
print(
    np.allclose(z @ t @ z.T, a),
    linalg.svdvals(a),
    linalg.null_space(np.ones((2, 3))).shape,
    linalg.toeplitz([1, 2, 3]),
    linalg.hilbert(3),
)
print(
    linalg.solve_banded((1, 1), np.array([[0, 1, 1], [4, 4, 4], [1, 1, 0]]), [1, 2, 3]),
    linalg.cho_solve(linalg.cho_factor(s), np.ones(8))[:2],
    linalg.det(a),
    linalg.pinv(a)[0, 0],
)
m = sparse.random_array((200, 200), density=0.02, rng=rng, format="csr") + 5 * sparse.eye_array(200)
b = np.arange(200.0)
print(
    m.nnz,
    sla.spsolve(m.tocsc(), b)[:4],
    sla.gmres(m, b, rtol=1e-10)[1],
    sla.splu(m.tocsc()).solve(b)[:2],
    m.diagonal()[:3],
)
lap = sparse.diags_array([-1, 2, -1], offsets=[-1, 0, 1], shape=(100, 100), dtype=float).tocsc()
print(
    np.sort(sla.eigsh(lap, k=3, which="SA", return_eigenvectors=False, v0=np.ones(100), tol=1e-10)),
    sla.svds(m, k=2, return_singular_vectors=False, v0=np.ones(200)).round(6),
    sla.norm(m),
    sla.cg(lap, np.ones(100), rtol=1e-10)[1],
)
g = sparse.csr_array([[0, 1, 2, 0], [0, 0, 0, 1], [0, 0, 0, 3], [0, 0, 0, 0]])
print(
    dijkstra(g, indices=0),
    connected_components(g)[1].tolist(),
    minimum_spanning_tree(g).toarray(),
    (g @ g).toarray(),
    sparse.coo_array(([1, 2], ([0, 1], [1, 0]))).toarray(),
)
