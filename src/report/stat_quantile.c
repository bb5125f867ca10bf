#include <math.h>

#include "report/stat.h"

static const double PI = 3.14159265358979323846;

double ats_stat_normal_cdf(double z) { return 0.5 * erfc(-z / sqrt(2.0)); }

static double ratio(const double *top, const double *bottom, double x)
{
    double a = top[7], b = bottom[6];
    for (int i = 6; i >= 0; i--) a = a * x + top[i];
    for (int i = 5; i >= 0; i--) b = b * x + bottom[i];
    return a / (b * x + 1);
}

/* Wichura 1988, algorithm AS 241 (PPND16): relative error about 1e-16. */
double ats_stat_normal_quantile(double p)
{
    static const double centre_top[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                        1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                        4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                        3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double centre_bottom[] = {4.2313330701600911252e+1, 6.8718700749205790830e+2,
                                           5.3941960214247511077e+3, 2.1213794301586595867e+4,
                                           3.9307895800092710610e+4, 2.8729085735721942674e+4,
                                           5.2264952788528545610e+3};
    static const double near_top[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                      5.76949722146069140550e0,  3.64784832476320460504e0,
                                      1.27045825245236838258e0,  2.41780725177450611770e-1,
                                      2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double near_bottom[] = {2.05319162663775882187e0,  1.67638483018380384940e0,
                                         6.89767334985100004550e-1, 1.48103976427480074590e-1,
                                         1.51986665636164571966e-2, 5.47593808499534494600e-4,
                                         1.05075007164441684324e-9};
    static const double far_top[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                     1.78482653991729133580e0,  2.96560571828504891230e-1,
                                     2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                     2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double far_bottom[] = {5.99832206555887937690e-1, 1.36929880922735805310e-1,
                                        1.48753612908506148525e-2, 7.86869131145613259100e-4,
                                        1.84631831751005468180e-5, 1.42151175831644588870e-7,
                                        2.04426310338993978564e-15};
    const double q = p - 0.5;
    if (!(p > 0)) return p == 0 ? (double)-INFINITY : (double)NAN;
    if (!(p < 1)) return p == 1 ? (double)INFINITY : (double)NAN;
    if (fabs(q) <= 0.425) return q * ratio(centre_top, centre_bottom, 0.180625 - q * q);
    const double r = sqrt(-log(q < 0 ? p : 1 - p));
    const double z =
        r <= 5 ? ratio(near_top, near_bottom, r - 1.6) : ratio(far_top, far_bottom, r - 5);
    return q < 0 ? -z : z;
}

/* Abramowitz and Stegun 26.7.3 and 26.7.4: a finite series for whole degrees of freedom. */
double ats_stat_t_cdf(double t, int64_t freedom)
{
    const double angle = atan(t / sqrt((double)freedom)), c2 = cos(angle) * cos(angle);
    const int64_t odd = freedom % 2;
    double term = odd ? cos(angle) : 1, sum = freedom > 1 ? term : 0;
    for (int64_t k = odd ? 3 : 2; k < freedom; k += 2) {
        term *= c2 * (double)(k - 1) / (double)k;
        sum += term;
    }
    const double within =
        odd ? 2 / PI * (angle + sin(angle) * sum) : sin(angle) * sum; /* P(|T| <= t), signed */
    return 0.5 * (1 + within);
}

double ats_stat_t_quantile(double p, int64_t freedom)
{
    if (!(p > 0 && p < 1)) return ats_stat_normal_quantile(p);
    double low = -1, high = 1;
    while (ats_stat_t_cdf(low, freedom) > p && low > -1e300) low *= 2;
    while (ats_stat_t_cdf(high, freedom) < p && high < 1e300) high *= 2;
    for (int i = 0; i < 2000 && high - low > 1e-15 * (fabs(low) + fabs(high)); i++) {
        const double middle = 0.5 * (low + high);
        *(ats_stat_t_cdf(middle, freedom) < p ? &low : &high) = middle;
    }
    return 0.5 * (low + high);
}
