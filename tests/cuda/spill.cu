// Sixty-four numbers in twenty-four registers: what the spill gate must refuse.
__global__ void spill(float *p)
{
    float x[64];
#pragma unroll
    for (int i = 0; i < 64; i++) x[i] = p[i * 32 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i++) p[i * 32 + threadIdx.x] = x[63 - i] * x[(i * 7) % 64];
}
