/* First in the file, so that it must bring what it needs; twice, so that its guard is tried. */
#include "sparsesel.h"

typedef int sparsesel_header_is_usable_as_c;
