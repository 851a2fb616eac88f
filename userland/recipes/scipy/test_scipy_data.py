"""scipy: statistics, signals, points, special functions, files."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[[str], str]


def test_statistics_are_computed(scipy_python: Run) -> None:
    printed = scipy_python(
        """
import numpy as np
from scipy import stats

print(
    round(stats.norm.cdf(1.96), 9),
    round(stats.t.ppf(0.975, 10), 9),
    round(stats.gamma.sf(2, 3), 9),
)
print(stats.binom.pmf(3, 10, 0.5).round(12), stats.poisson.cdf(2, 3).round(9))
first, second = np.arange(10.0), np.arange(10.0) * 1.1 + 0.5
print(
    stats.ttest_ind(first, second).pvalue.round(6),
    stats.pearsonr(first, second).statistic.round(12),
)
print(
    stats.linregress(first, second).slope.round(12),
    stats.spearmanr(first, second).statistic.round(9),
)
print(
    stats.mannwhitneyu(first, second).pvalue.round(6),
    stats.kstest(first / 10, "uniform").pvalue.round(6),
)
print(
    round(stats.fisher_exact([[8, 2], [1, 5]]).pvalue, 6),
    stats.chi2_contingency([[8, 2], [1, 5]]).pvalue.round(6),
)
print(
    stats.shapiro(first).pvalue.round(5),
    stats.norm.fit(first)[1].round(6),
    stats.gaussian_kde(first)(4.5).round(6).tolist(),
)
print(
    stats.norm.rvs(size=3, random_state=1).round(6).tolist(),
    stats.qmc.Sobol(2, scramble=False).random(2).tolist(),
)
print(
    stats.multivariate_normal([0, 0], np.eye(2)).pdf([0, 0]).round(9),
    stats.nct.cdf(1, 5, 0.5).round(6),
)
"""
    )
    assert printed.splitlines() == [
        "0.975002105 2.228138852 0.676676416",
        "0.1171875 0.423190081",
        "0.512949 1.0",
        "1.1 1.0",
        "0.545199 0.999637",
        "0.034965 0.050962",
        "0.89237 2.872281 [0.099189]",
        "[1.624345, -0.611756, -0.528172] [[0.0, 0.0], [0.5, 0.5]]",
        "0.159154943 0.666536",
    ]


def test_signals_are_filtered_and_transformed(scipy_python: Run) -> None:
    printed = scipy_python(
        """
import numpy as np
from scipy import fft, ndimage, signal

x = np.arange(12.0)
print(
    np.allclose(fft.ifft(fft.fft(x)), x),
    np.allclose(fft.idct(fft.dct(x)), x),
    np.allclose(fft.irfft(fft.rfft(x)), x),
)
print(np.allclose(fft.fft2(np.ones((4, 6)), workers=2)[0, 0], 24))
b, a = signal.butter(2, 0.5)
print(b.round(6).tolist(), signal.lfilter(b, a, np.ones(4)).round(6).tolist())
print(signal.find_peaks([0, 2, 0, 3, 0])[0].tolist(), signal.convolve([1, 2], [1, 1]).tolist())
print(
    signal.filtfilt(b, a, np.ones(20)).round(9).sum(),
    signal.resample(x, 6).shape,
    signal.welch(x, nperseg=8)[0].size,
)
print(ndimage.gaussian_filter(np.eye(3), 1).round(6)[0].tolist(), ndimage.label([[1, 0, 1]])[1])
print(
    ndimage.zoom(np.eye(2), 2, order=1).shape,
    ndimage.distance_transform_edt([[0, 1, 1]]).tolist(),
)
"""
    )
    assert printed.splitlines() == [
        "True True True",
        "True",
        "[0.292893, 0.585786, 0.292893] [0.292893, 0.87868, 1.12132, 1.020815]",
        "[1, 3] [1, 3, 2]",
        "20.0 (6,) 5",
        "[0.502413, 0.329174, 0.168414] 2",
        "(4, 4) [[0.0, 1.0, 2.0]]",
    ]


def test_points_are_interpolated_and_searched(scipy_python: Run) -> None:
    printed = scipy_python(
        """
import numpy as np
from scipy import cluster, interpolate, spatial

x = np.linspace(0, 1, 11)
print(
    interpolate.CubicSpline(x, x**3)(0.55).round(9),
    interpolate.interp1d(x, x * 2)(0.25).round(9),
)
print(
    interpolate.make_interp_spline(x, x**2)(0.33).round(9),
    interpolate.PchipInterpolator(x, x)(0.7).round(9),
)
print(np.round(interpolate.splev(0.5, interpolate.splrep(x, x**3)), 9))
points = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
print(interpolate.griddata(points, points.sum(1), [[0.2, 0.3]]).round(9).tolist())
print(interpolate.RBFInterpolator(points, points.sum(1))([[0.2, 0.3]]).round(6).tolist())
print(
    spatial.KDTree(points).query([0.9, 0.9])[1],
    spatial.cKDTree(points).query_ball_point([0, 0], 0.8),
)
print(
    spatial.ConvexHull(points).volume,
    len(spatial.Delaunay(points).simplices),
    spatial.Voronoi(points).vertices.shape,
)
print(
    spatial.distance.cdist(points[:2], points[:2]).tolist(),
    spatial.distance.pdist(points[:3], "cityblock").tolist(),
)
print(
    spatial.transform.Rotation.from_euler("z", 90, degrees=True)
    .apply([1, 0, 0])
    .round(9)
    .tolist()
)
print(
    cluster.hierarchy.fcluster(
        cluster.hierarchy.linkage([[0], [0.1], [5]]), 1, "distance"
    ).tolist()
)
"""
    )
    assert printed.splitlines() == [
        "0.166375 0.5",
        "0.1089 0.7",
        "0.125",
        "[0.5]",
        "[0.5]",
        "3 [0, 4]",
        "1.0 4 (4, 2)",
        "[[0.0, 1.0], [1.0, 0.0]] [1.0, 1.0, 2.0]",
        "[0.0, 1.0, 0.0]",
        "[1, 1, 2]",
    ]


def test_special_functions_have_their_values(scipy_python: Run) -> None:
    printed = scipy_python(
        """
import numpy as np
from scipy import constants, special

for value in (
    special.gamma(5),
    special.erf(0.5),
    special.jv(1, 2),
    special.zeta(2),
    special.betainc(2, 3, 0.4),
    special.ellipk(0.5),
    special.hyp2f1(1, 2, 3, 0.5),
    special.expit(0),
    special.logsumexp([0, 0]),
    special.lambertw(1).real,
    special.airy(0)[0],
    special.comb(10, 3),
    special.gammaincinv(2, 0.5),
    special.eval_legendre(3, 0.5),
    special.iv(0, 1),
    special.wofz(1j).real,
    special.digamma(1),
):
    print(round(float(value), 9))
print(constants.c, special.roots_legendre(2)[0].round(9).tolist())
try:
    with special.errstate(all="raise"):
        special.gammaln(-1)
except special.SpecialFunctionError as error:
    print(type(error).__name__)
"""
    )
    assert printed.splitlines() == [
        *("24.0", "0.520499878", "0.576724808", "1.644934067", "0.5248", "1.854074677"),
        *("1.545177444", "0.5", "0.693147181", "0.56714329", "0.355028054", "120.0"),
        *("1.67834699", "-0.4375", "1.266065878", "0.427583576", "-0.577215665"),
        "299792458.0 [-0.577350269, 0.577350269]",
        "SpecialFunctionError",
    ]


def test_files_of_other_programs_are_read(scipy_python: Run) -> None:
    printed = scipy_python(
        """
import numpy as np
from scipy import io

io.savemat("/tmp/a.mat", {"x": np.eye(2), "name": "text"}, do_compression=True)
loaded = io.loadmat("/tmp/a.mat")
print(loaded["x"].tolist(), loaded["name"].tolist())
io.wavfile.write("/tmp/a.wav", 8000, np.arange(5, dtype=np.int16))
print(io.wavfile.read("/tmp/a.wav")[1].tolist())
io.mmwrite("/tmp/a.mtx", np.eye(2))
print(io.mmread("/tmp/a.mtx").tolist())
"""
    )
    assert printed.splitlines() == [
        "[[1.0, 0.0], [0.0, 1.0]] ['text']",
        "[0, 1, 2, 3, 4]",
        "[[1.0, 0.0], [0.0, 1.0]]",
    ]
