#ifndef SPARSESEL_API_VERSION_H_
#define SPARSESEL_API_VERSION_H_

#include "sparsesel.h"

namespace sparsesel {

const char* VersionString();  // "0.1.0+<git hash>"
const char* StatusName(sparsesel_status status);

}  // namespace sparsesel

#endif  // SPARSESEL_API_VERSION_H_
