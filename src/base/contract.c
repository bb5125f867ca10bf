#include "base/contract.h"

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

bool ats_legal_position(const ats_contract *contract, int64_t pos_q, int64_t pos_k)
{
    int64_t distance = pos_q - pos_k;
    if (contract->causal && distance < 0) return false;
    if (contract->window > 0) {
        if (distance >= contract->window) return false;
        if (!contract->causal && -distance >= contract->window) return false;
    }
    if (contract->chunk > 0)
        return floor_div(pos_q, contract->chunk) == floor_div(pos_k, contract->chunk);
    return true;
}
