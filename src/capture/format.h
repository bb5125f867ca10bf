/* Words of the capture format, shared by reader, writer and printer. */
#ifndef ATS_CAPTURE_FORMAT_H
#define ATS_CAPTURE_FORMAT_H

#include "capture/capture.h"

#define ATS_CAPTURE_FORMAT "attnstress-capture"
enum { ATS_CAPTURE_VERSION = 1 };

const char *ats_rope_layout_word(ats_rope_layout layout);
const char *ats_positions_word(ats_positions positions);
/* False: an unknown word. */
bool ats_rope_layout_parse(const char *word, ats_rope_layout *out);
bool ats_positions_parse(const char *word, ats_positions *out);

#endif
