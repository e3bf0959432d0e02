// What execute refuses: arrays that break the problem's promises.
#ifndef SPARSESEL_PLAN_IO_CHECK_H_
#define SPARSESEL_PLAN_IO_CHECK_H_

#include "contract/job.h"
#include "contract/status.h"
#include "sparsesel.h"

namespace sparsesel {

// Fills in default strides and checks pointers, strides, alignment and overlap; reads no array.
// `reads_only`: a trial input, whose outputs are ignored.
Status CheckIo(const Job& job, int32_t largest_capacity, bool reads_only, sparsesel_io* io);

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_IO_CHECK_H_
