#include "engine/version.h"

const char *ats_version(void) { return ATS_VERSION; }
const char *ats_git_hash(void) { return ATS_GIT_HASH; }
const char *ats_hdf5_version(void) { return ATS_HDF5_VERSION; }
