// First in the file, so that it must bring what it needs; twice, so that its guard is tried.
#include "sparsesel.h"

static_assert(sizeof(sparsesel_status) == 4, "pinned by the ABI");
