# The portable table has no flags of its own; contraction makes a * b + c one FMA in the others.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/cpu_ops_avx2.c PROPERTIES
  COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-ffp-contract=fast")
set(avx512_flags -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -ffp-contract=fast)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/cpu_ops_avx512.c PROPERTIES
  COMPILE_OPTIONS "${avx512_flags}")
# A compiler that does not know the newer sets leaves their levels out.
include(CheckCCompilerFlag)
check_c_compiler_flag("-mavx512bf16" ATS_HAS_AVX512_BF16_FLAG)
if(ATS_HAS_AVX512_BF16_FLAG)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/cpu_ops_avx512_bf16.c PROPERTIES
    COMPILE_OPTIONS "${avx512_flags};-mavx512bf16")
endif()
check_c_compiler_flag("-mamx-tile -mamx-bf16" ATS_HAS_AMX_FLAGS)
if(ATS_HAS_AMX_FLAGS)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/cpu_ops_amx.c PROPERTIES
    COMPILE_OPTIONS "${avx512_flags};-mamx-tile;-mamx-bf16")
endif()
