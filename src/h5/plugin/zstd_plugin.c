/* The plugin's two entry points: HDF5 finds the zstd filter through HDF5_PLUGIN_PATH. */
#include <hdf5.h>
#include <H5PLextern.h>

#include "h5/zstd_filter.h"

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }

const void *H5PLget_plugin_info(void) { return ats_zstd_filter_class(); }
