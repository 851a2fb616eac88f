#| packages: scipy
#| tolerance: 1e-7
import numpy as np
from scipy import special, stats

rng = np.random.default_rng(11)
a, b = rng.normal(0, 1, 60), rng.normal(0.5, 1.2, 70)
print(
    stats.ttest_ind(a, b, equal_var=False),
    stats.mannwhitneyu(a, b),
    stats.ks_2samp(a, b).pvalue,
    stats.shapiro(a).pvalue,
)
print(
    stats.pearsonr(a, a**2 + a),
    stats.spearmanr(a, b[:60]).statistic,
    stats.kendalltau([1, 2, 3, 4], [1, 3, 2, 4]).statistic,
    stats.linregress(a, 2 * a + 1).slope,
)
print(
    stats.chi2_contingency([[10, 20], [30, 25]]).pvalue,
    stats.fisher_exact([[8, 2], [1, 5]]).pvalue,
    stats.f_oneway(a, b, a + b[:60]).pvalue,
    stats.wilcoxon(a).pvalue,
)
for d in (
    stats.norm(1, 2),
    stats.t(5),
    stats.gamma(2.0),
    stats.beta(2, 3),
    stats.expon(scale=2),
    stats.lognorm(0.5),
    stats.binom(10, 0.3),
    stats.poisson(4),
):
    print(d.dist.name, d.mean(), d.var(), d.cdf(1.5), d.ppf(0.9), d.rvs(2, random_state=1))
print(
    stats.describe(a),
    stats.skew(a),
    stats.kurtosis(a),
    stats.zscore(a)[:2],
    stats.iqr(a),
    stats.trim_mean(a, 0.1),
    stats.mode([1, 2, 2]).mode,
)
print(
    stats.norm.fit(a),
    stats.gaussian_kde(a)(0.0),
    stats.bootstrap((a,), np.mean, n_resamples=200, rng=1).standard_error,
    stats.entropy([0.5, 0.5]),
)
print(
    special.gamma(4.5),
    special.erf(0.3),
    special.jv(1, 2.5),
    special.comb(10, 3),
    special.expit(0.2),
    special.logsumexp([1, 2, 3]),
    special.zeta(3),
    special.hyp2f1(1, 2, 3, 0.4),
)
print(
    special.beta(2, 3),
    special.digamma(2),
    special.legendre(3)(0.5),
    special.ellipk(0.3),
    special.lambertw(1).real,
    special.i0(1.0),
    special.factorial(12),
    special.betainc(1, 2, 0.5),
    special.gammaincinv(2, 0.3),
)
