# The portable table has no flags of its own; contraction makes a * b + c one FMA in both others.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/cpu_ops_avx2.c PROPERTIES
  COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-ffp-contract=fast")
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/cpu_ops_avx512.c PROPERTIES
  COMPILE_OPTIONS "-mavx512f;-mavx512vl;-mavx512dq;-mavx512bw;-mfma;-ffp-contract=fast")
