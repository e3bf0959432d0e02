#include <nvtx3/nvToolsExt.h>

#include "contract/trace.h"

namespace sparsesel {
namespace {

nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("sparsesel");
  return domain;
}

}  // namespace

TraceRange::TraceRange(const char* name, int64_t payload) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = payload;
  nvtxDomainRangePushEx(Domain(), &event);
}

TraceRange::~TraceRange() { nvtxDomainRangePop(Domain()); }

}  // namespace sparsesel
