/* What this build is. */
#ifndef ATS_ENGINE_VERSION_H
#define ATS_ENGINE_VERSION_H

const char *ats_version(void);  /* "0.1.0" */
const char *ats_git_hash(void); /* of the sources when the build was configured, or "unknown" */
const char *ats_hdf5_version(void);

#endif
