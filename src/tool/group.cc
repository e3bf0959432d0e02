#include "tool/group.h"

#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace sparsesel_tool {
namespace {

Result Guarded(const std::function<Result(int32_t)>& body, int32_t rank) {
  try {
    return body(rank);
  } catch (const std::exception& exception) {
    return Failure(exception.what());
  }
}

}  // namespace

Result Group::Create(int32_t world, int32_t memory, const std::vector<int32_t>& devices,
                     Group* out) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
  options.memory = memory;
  options.devices = devices.data();
  options.device_count = static_cast<int32_t>(devices.size());
  std::vector<sparsesel_comm*> made(static_cast<size_t>(world));
  const sparsesel_status status = sparsesel_comm_create_local(world, &options, made.data(), &error);
  out->comms_.clear();
  for (sparsesel_comm* comm : made) out->comms_.emplace_back(comm);
  return LibraryResult("comm_create_local", status, error);
}

Result Group::Run(const std::function<Result(int32_t rank)>& body) const {
  std::mutex mutex;
  Result first;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(world()));
  for (int32_t rank = 0; rank < world(); ++rank) {
    threads.emplace_back([&, rank] {
      Result result = Guarded(body, rank);
      if (result.ok()) return;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (first.ok()) first = std::move(result);
      }
      sparsesel_comm_abort(comm(rank), nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

}  // namespace sparsesel_tool
