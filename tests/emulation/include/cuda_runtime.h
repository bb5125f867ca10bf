// Found before the toolkit's header when a host compiler compiles a .cu file as C++.
#pragma once
#include_next <cuda_runtime.h>
#include <cuemu.h>
