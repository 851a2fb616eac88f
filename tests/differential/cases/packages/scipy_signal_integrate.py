#| packages: scipy
#| tolerance: 1e-6
import numpy as np
from scipy import cluster, fft, integrate, interpolate, ndimage, signal, spatial

print(
    integrate.quad(lambda x: np.exp(-(x**2)), -np.inf, np.inf),
    integrate.dblquad(lambda y, x: x * y, 0, 1, 0, 2)[0],
    integrate.simpson([1, 4, 9], dx=1),
    integrate.trapezoid([1, 2, 3]),
)
sol = integrate.solve_ivp(lambda t, y: [y[1], -y[0]], (0, 10), [1, 0], t_eval=[2, 5, 10], rtol=1e-8)
print(
    sol.y.round(6),
    integrate.odeint(lambda y, t: -0.5 * y, 3.0, [0, 1, 2]).ravel(),
    integrate.solve_ivp(lambda t, y: -1000 * (y - np.cos(t)), (0, 1), [0], method="BDF")
    .y[0, -1]
    .round(4),
)
x = np.linspace(0, 10, 11)
y = np.sin(x)
print(
    interpolate.CubicSpline(x, y)(2.5),
    interpolate.interp1d(x, y, kind="quadratic")(3.3),
    interpolate.UnivariateSpline(x, y, s=0)(4.4),
    interpolate.PchipInterpolator(x, y)(0.5),
)
pts = np.random.default_rng(0).random((30, 2))
print(
    interpolate.griddata(pts, pts.sum(1), [[0.5, 0.5]], method="linear"),
    interpolate.RBFInterpolator(pts, pts[:, 0])([[0.4, 0.6]]),
)
b, a = signal.butter(4, 0.2)
print(
    b,
    signal.filtfilt(b, a, np.sin(np.arange(50)))[:3],
    signal.find_peaks(np.sin(np.arange(40)))[0],
    signal.welch(np.sin(np.arange(256)), nperseg=64)[1][:3],
)
print(
    signal.convolve([1, 2, 3], [1, 1]),
    signal.savgol_filter(y, 5, 2)[:3],
    signal.hilbert(y)[0],
    signal.resample(y, 5),
    signal.stft(y, nperseg=4)[2].shape,
    signal.detrend(y)[:2],
)
print(
    fft.dct([1, 2, 3, 4]),
    fft.rfft(y)[:3],
    fft.next_fast_len(997),
    ndimage.gaussian_filter(np.eye(5), 1)[2],
    ndimage.label([[1, 0, 1], [0, 0, 1]])[1],
    ndimage.zoom([[1, 2], [3, 4]], 2, order=1),
    ndimage.rotate(np.eye(4), 45, order=1).shape,
)
tree = spatial.KDTree(pts)
print(
    tree.query([0.5, 0.5], k=2),
    spatial.ConvexHull(pts).volume,
    spatial.Delaunay(pts).simplices.shape,
    spatial.distance.pdist(pts[:3]),
    spatial.distance.cosine([1, 0], [1, 1]),
    spatial.transform.Rotation.from_euler("z", 90, degrees=True).apply([1, 0, 0]).round(9),
)
print(
    cluster.hierarchy.fcluster(cluster.hierarchy.linkage(pts, "ward"), 3, "maxclust"),
    cluster.vq.kmeans2(pts, 2, seed=1, minit="++")[0].shape,
    spatial.Voronoi(pts).vertices.shape,
)
