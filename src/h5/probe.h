/* Old HDF5 files (superblock 0 and 1, what h5py writes by default) have no checksum over their
 * structures, and HDF5 1.10 reads past its memory on some damaged ones. They are therefore walked
 * once in a process of their own before this one opens them. */
#ifndef ATS_H5_PROBE_H
#define ATS_H5_PROBE_H

#include "h5/file.h"

/* ATS_E_INPUT when walking the file ends that process by a signal, or never ends. Files with
 * checksummed structures, and what is no HDF5 file, pass at once. */
ATS_MUST_CHECK ats_code ats_h5_probe(const ats_h5_file *file, ats_err *err);

#endif
