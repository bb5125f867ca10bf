#include "kernels/state.h"

#include <math.h>
#include <string.h>

ats_state ats_state_identity(void) { return (ats_state){.m = (double)-INFINITY}; }

ats_state_factors ats_state_common(double mx, double my)
{
    const double m = mx > my ? mx : my;
    if (isinf(m)) return (ats_state_factors){.m = m};
    return (ats_state_factors){.m = m,
                               .fx = mx == m     ? 1.0
                                     : isinf(mx) ? 0.0
                                                 : exp(mx - m),
                               .fy = my == m     ? 1.0
                                     : isinf(my) ? 0.0
                                                 : exp(my - m)};
}

/* e moves with the maximum: sum p (z - m) = sum p (z - mx) + (mx - m) l. */
static double moved_e(const ats_state *x, double m, double factor)
{
    return factor > 0 ? factor * (x->e + (x->m - m) * x->l) : 0.0;
}

ats_state ats_state_merge(const ats_state *x, const ats_state *y)
{
    const ats_state_factors f = ats_state_common(x->m, y->m);
    return (ats_state){.m = f.m,
                       .l = f.fx * x->l + f.fy * y->l,
                       .e = moved_e(x, f.m, f.fx) + moved_e(y, f.m, f.fy),
                       .s2 = f.fx * f.fx * x->s2 + f.fy * f.fy * y->s2,
                       .a = f.fx * x->a + f.fy * y->a,
                       .n = x->n + y->n};
}

double ats_state_lse(const ats_state *x) { return x->l > 0 ? x->m + log(x->l) : (double)-INFINITY; }

double ats_log_add(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    if (isinf(low)) return high;
    return high + log1p(exp(low - high));
}

void ats_state_merge_values(const ats_state_factors *factors, int64_t count, const float *x,
                            const float *y, float *out)
{
    const float fx = (float)factors->fx, fy = (float)factors->fy;
    if (fx > 0 && fy > 0)
        for (int64_t i = 0; i < count; i++) out[i] = fx * x[i] + fy * y[i];
    else if (fx > 0)
        for (int64_t i = 0; i < count; i++) out[i] = fx * x[i];
    else if (fy > 0)
        for (int64_t i = 0; i < count; i++) out[i] = fy * y[i];
    else
        memset(out, 0, (size_t)count * sizeof *out);
}
