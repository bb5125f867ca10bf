"""Writes fixtures/stat_values.h: what scipy and statsmodels say of fixed numbers.

usage: python3 -m venv v && v/bin/pip install scipy==1.17.1 statsmodels==0.15.0
       v/bin/python tests/report/make_stat_fixtures.py > tests/report/fixtures/stat_values.h
"""
import numpy as np
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests


def array(name, values):
    text = ", ".join(repr(float(v)) for v in values)
    lines, line = [], ""
    for word in text.split(" "):
        if len(line) + len(word) > 92:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word
    lines.append(line)
    print(f"static const double {name}[] = {{\n    " + "\n    ".join(lines) + "};")


def quantiles():
    p = [1e-300, 1e-20, 1e-8, 0.001, 0.02425, 0.075, 0.3, 0.5, 0.7, 0.975, 0.999999]
    array("NORMAL_P", p)
    array("NORMAL_Z", stats.norm.ppf(p))
    rows = [(q, f) for f in (1, 2, 3, 4, 7, 10, 19, 23, 100) for q in (0.005, 0.3, 0.975, 0.9995)]
    array("T_P", [q for q, _ in rows])
    array("T_FREEDOM", [f for _, f in rows])
    array("T_VALUE", [stats.t.ppf(q, f) for q, f in rows])


def rank_cases(rng):
    tied = np.array([0.5, -0.5, 1, 1, 1.5, 0, 2, -1, 0.5, 2.5, 0, 3])
    return {
        "PLAIN": rng.normal(0.3, 1, 10),
        "TIED": tied,
        "LONG": rng.normal(0.2, 1, 45),
        "MANY": np.round(rng.normal(0.25, 1, 80), 1),
    }


def ranks(rng):
    for name, d in rank_cases(rng).items():
        array(f"RANK_{name}", d)
        normal = stats.wilcoxon(d, method="asymptotic", zero_method="wilcox", correction=False)
        plus = stats.wilcoxon(d, method="asymptotic", alternative="greater").statistic
        expected = [plus, normal.pvalue]
        if name == "TIED":  # every choice of signs
            exact = stats.wilcoxon(d[d != 0], method=stats.PermutationMethod(n_resamples=np.inf))
            expected.append(exact.pvalue)
        elif name != "MANY":
            expected.append(stats.wilcoxon(d, method="exact").pvalue)
        array(f"RANK_{name}_IS", expected)  # positive rank sum, normal p, exact p


def flips(rng):
    for n in (1, 2, 5, 11, 16):
        d = np.round(rng.normal(0.4, 1, n), 2)
        array(f"FLIP_{n}", d)
        if n == 1:
            array("FLIP_1_IS", [1, 0.5 if d[0] < 0 else 1, 0.5 if d[0] > 0 else 1])
            continue
        p = [stats.permutation_test((d,), np.mean, permutation_type="samples", vectorized=False,
                                    n_resamples=np.inf, alternative=a).pvalue
             for a in ("two-sided", "less", "greater")]
        array(f"FLIP_{n}_IS", p)


def adjustments():
    p = [0.01, 0.04, 0.03, 0.005, 0.5, 0.03, 1.0, 0.2]
    array("ADJUST_P", p)
    array("ADJUST_HOLM", multipletests(p, method="holm")[1])
    array("ADJUST_BH", multipletests(p, method="fdr_bh")[1])


def bootstrap(rng):
    d = rng.gamma(1.5, 1, 23) - 1
    n = len(d)
    few = stats.bootstrap((d,), np.mean, method="BCa", n_resamples=399, rng=rng)
    array("BCA_D", d)
    array("BCA_VALUES", few.bootstrap_distribution)
    wide = np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1)
    expanded = stats.bootstrap((d,), np.mean, method="BCa", n_resamples=0, bootstrap_result=few,
                               confidence_level=1 - 2 * stats.norm.cdf(-wide))
    array("BCA_FEW_IS", [*few.confidence_interval, *expanded.confidence_interval])
    many = stats.bootstrap((d,), np.mean, method="BCa", n_resamples=1000000, batch=20000, rng=rng)
    wider = stats.bootstrap((d,), np.mean, method="BCa", n_resamples=0, bootstrap_result=many,
                            confidence_level=1 - 2 * stats.norm.cdf(-wide))
    array("BCA_MANY_IS", [*many.confidence_interval, *wider.confidence_interval])


def main():
    rng = np.random.default_rng(20261129)
    print(f"/* Written by make_stat_fixtures.py with scipy {scipy.__version__}, statsmodels "
          f"{statsmodels.__version__}. */")
    print("/* clang-format off */")
    quantiles()
    ranks(rng)
    flips(rng)
    adjustments()
    bootstrap(rng)
    print("/* clang-format on */")


main()
