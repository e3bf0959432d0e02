// A group whose ranks are threads of this process.
#ifndef SPARSESEL_TOOL_GROUP_H_
#define SPARSESEL_TOOL_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sparsesel.h"
#include "tool/result.h"

namespace sparsesel_tool {

// Owns a handle.
template <typename Handle, sparsesel_status (*release)(Handle*, sparsesel_error*)>
struct Releaser {
  void operator()(Handle* handle) const { release(handle, nullptr); }
};
using Comm = std::unique_ptr<sparsesel_comm, Releaser<sparsesel_comm, sparsesel_comm_release>>;
using Plan = std::unique_ptr<sparsesel_plan, Releaser<sparsesel_plan, sparsesel_plan_release>>;
using Report =
    std::unique_ptr<sparsesel_report, Releaser<sparsesel_report, sparsesel_report_release>>;
using Binding =
    std::unique_ptr<sparsesel_binding, Releaser<sparsesel_binding, sparsesel_binding_release>>;

class Group {
 public:
  // memory: SPARSESEL_MEMORY_...; devices: of each rank, or empty.
  static Result Create(int32_t world, int32_t memory, const std::vector<int32_t>& devices,
                       Group* out);

  int32_t world() const { return static_cast<int32_t>(comms_.size()); }
  sparsesel_comm* comm(int32_t rank) const { return comms_[static_cast<size_t>(rank)].get(); }

  // Calls `body` for every rank at once, each in a thread of its own, and waits for all. The first
  // rank to fail ends the group, so that none waits for it, and its failure is returned.
  Result Run(const std::function<Result(int32_t rank)>& body) const;

 private:
  std::vector<Comm> comms_;
};

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_GROUP_H_
