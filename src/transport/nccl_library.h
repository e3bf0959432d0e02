// NCCL, found at run time: the library links none, so that it starts where there is none, and so
// that a host which has loaded one of its own can hand it over. Two copies of NCCL must not meet.
//
// The declarations follow nccl.h of 2.x, whose ABI is stable within the major version; only what is
// used is declared. Streams are void pointers here, as in the public header.
#ifndef SPARSESEL_TRANSPORT_NCCL_LIBRARY_H_
#define SPARSESEL_TRANSPORT_NCCL_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "contract/status.h"

namespace sparsesel {

using NcclHandle = struct NcclOpaque*;  // ncclComm_t

struct NcclUniqueId {
  char internal[128];
};

enum NcclResult : int32_t {  // ncclResult_t
  kNcclSuccess = 0,
  kNcclUnhandledCudaError = 1,
  kNcclSystemError = 2,
  kNcclInternalError = 3,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
  kNcclRemoteError = 6,
  kNcclInProgress = 7,
};

enum NcclType : int32_t {  // ncclDataType_t
  kNcclInt32 = 2,
  kNcclUint64 = 5,
  kNcclBfloat16 = 9,
};

inline constexpr int32_t kNcclSum = 0;  // of ncclRedOp_t

// As ncclGetVersion tells it: 22809 for 2.28.9.
std::string NcclVersionText(int32_t version);

struct NcclLibrary {
  int32_t version = 0;

  NcclResult (*get_version)(int32_t* version) = nullptr;
  NcclResult (*get_unique_id)(NcclUniqueId* id) = nullptr;
  NcclResult (*comm_init_rank)(NcclHandle* comm, int32_t ranks, NcclUniqueId id,
                               int32_t rank) = nullptr;
  NcclResult (*comm_destroy)(NcclHandle comm) = nullptr;
  NcclResult (*comm_abort)(NcclHandle comm) = nullptr;
  NcclResult (*comm_get_async_error)(NcclHandle comm, NcclResult* error) = nullptr;
  NcclResult (*comm_count)(NcclHandle comm, int32_t* count) = nullptr;
  NcclResult (*comm_user_rank)(NcclHandle comm, int32_t* rank) = nullptr;
  NcclResult (*comm_cu_device)(NcclHandle comm, int32_t* device) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*all_gather)(const void* send, void* receive, size_t count, NcclType type,
                           NcclHandle comm, void* stream) = nullptr;
  NcclResult (*all_reduce)(const void* send, void* receive, size_t count, NcclType type,
                           int32_t operation, NcclHandle comm, void* stream) = nullptr;
  NcclResult (*send)(const void* send, size_t count, NcclType type, int32_t peer, NcclHandle comm,
                     void* stream) = nullptr;
  NcclResult (*receive)(void* receive, size_t count, NcclType type, int32_t peer, NcclHandle comm,
                        void* stream) = nullptr;
  const char* (*get_error_string)(NcclResult result) = nullptr;
  const char* (*get_last_error)(NcclHandle comm) = nullptr;
};

// UNAVAILABLE, with the reason, if there is no NCCL or not one that serves: at least 2.19, and of
// major version 2. `handle` is a dlopen handle that the caller keeps open, or null: the system's
// libnccl.so.2, which then stays loaded.
Status LoadNccl(void* handle, NcclLibrary* library);
// The same, of a library by name, as dlopen finds it.
Status LoadNcclNamed(const char* name, NcclLibrary* library);

// What NCCL returned, as a status with its words; `what` is the call that failed.
Status NcclStatus(const NcclLibrary& library, NcclResult result, sparsesel_status code,
                  const char* what);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_NCCL_LIBRARY_H_
