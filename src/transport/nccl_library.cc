#include "transport/nccl_library.h"

#include <dlfcn.h>

#include "absl/strings/str_format.h"

namespace sparsesel {
namespace {

constexpr const char* kName = "libnccl.so.2";
constexpr int32_t kMajor = 2;
constexpr int32_t kOldest = 21900;  // 2.19.0
constexpr int32_t kEnd = 30000;     // 3.0.0

// One symbol, or the name of the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* handle) : handle_(handle) {}

  template <typename Function>
  void Find(const char* name, Function** function) {
    if (missing_ != nullptr) return;
    *function = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (*function == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }

 private:
  void* const handle_;
  const char* missing_ = nullptr;
};

Status Missing(const char* name) {
  return Status::Error(SPARSESEL_UNAVAILABLE, "NCCL has no function %s", name);
}

Status CheckVersion(const NcclLibrary& library) {
  if (library.version >= kOldest && library.version < kEnd) return {};
  return Status::Error(SPARSESEL_UNAVAILABLE,
                       "NCCL is version %s, but %s or a later one of major version %d is needed",
                       NcclVersionText(library.version), NcclVersionText(kOldest), kMajor);
}

Status FindFunctions(void* handle, NcclLibrary* library) {
  Symbols symbols(handle);
  symbols.Find("ncclGetVersion", &library->get_version);
  if (symbols.missing() != nullptr) return Missing(symbols.missing());
  const NcclResult told = library->get_version(&library->version);
  if (told != kNcclSuccess) {
    return Status::Error(SPARSESEL_UNAVAILABLE, "ncclGetVersion failed with %d", int32_t{told})
        .WithBackendCode(told);
  }
  // First: an old library lacks functions because it is old.
  SPARSESEL_RETURN_IF_ERROR(CheckVersion(*library));
  symbols.Find("ncclGetUniqueId", &library->get_unique_id);
  symbols.Find("ncclCommInitRank", &library->comm_init_rank);
  symbols.Find("ncclCommDestroy", &library->comm_destroy);
  symbols.Find("ncclCommAbort", &library->comm_abort);
  symbols.Find("ncclCommGetAsyncError", &library->comm_get_async_error);
  symbols.Find("ncclCommCount", &library->comm_count);
  symbols.Find("ncclCommUserRank", &library->comm_user_rank);
  symbols.Find("ncclCommCuDevice", &library->comm_cu_device);
  symbols.Find("ncclGroupStart", &library->group_start);
  symbols.Find("ncclGroupEnd", &library->group_end);
  symbols.Find("ncclAllGather", &library->all_gather);
  symbols.Find("ncclAllReduce", &library->all_reduce);
  symbols.Find("ncclSend", &library->send);
  symbols.Find("ncclRecv", &library->receive);
  symbols.Find("ncclGetErrorString", &library->get_error_string);
  symbols.Find("ncclGetLastError", &library->get_last_error);
  return symbols.missing() == nullptr ? Status() : Missing(symbols.missing());
}

}  // namespace

std::string NcclVersionText(int32_t version) {
  // Up to 2.8 the code had one digit less.
  const int32_t major = version < 10000 ? version / 1000 : version / 10000;
  const int32_t rest = version < 10000 ? version % 1000 : version % 10000;
  return absl::StrFormat("%d.%d.%d", major, rest / 100, rest % 100);
}

Status LoadNcclNamed(const char* name, NcclLibrary* library) {
  // Local: its symbols are for who asks this handle, and bind nobody else's.
  void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    // The error is the calling thread's.
    const char* const why = dlerror();  // NOLINT(concurrency-mt-unsafe)
    return Status::Error(SPARSESEL_UNAVAILABLE, "NCCL cannot be loaded: %s",
                         why == nullptr ? name : why);
  }
  NcclLibrary found;
  if (const Status status = FindFunctions(handle, &found); !status.ok()) {
    dlclose(handle);
    return status;
  }
  // Never closed: NCCL has threads, and communicators may outlive any comm.
  *library = found;
  return {};
}

Status LoadNccl(void* handle, NcclLibrary* library) {
  if (handle == nullptr) return LoadNcclNamed(kName, library);
  NcclLibrary found;
  SPARSESEL_RETURN_IF_ERROR(FindFunctions(handle, &found));
  *library = found;
  return {};
}

Status NcclStatus(const NcclLibrary& library, NcclResult result, sparsesel_status code,
                  const char* what) {
  if (result == kNcclSuccess) return {};
  const char* const last = library.get_last_error(nullptr);
  return Status::Error(code, "%s: %s%s%s", what, library.get_error_string(result),
                       last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last)
      .WithBackendCode(result);
}

}  // namespace sparsesel
