#include <vector>

#include "absl/functional/function_ref.h"
#include "compositions/device/device_slot.h"
#include "compositions/device/device_trains.h"
#include "compositions/device/nccl_slot.h"
#include "contract/guard.h"
#include "transport/peer_group.h"

namespace sparsesel {
namespace {

// Executes that a train of spans has before those that are looked at: the ranks' graphs do not
// begin at the same moment.
constexpr int32_t kWarmSpans = 3;

const TrainMeeting& MeetingOf(const Comm& comm) {
  return comm.transport() == SPARSESEL_TRANSPORT_NCCL ? NcclMeeting() : PeerMeeting();
}

Status Capture(const Comm& comm, cudaStream_t stream, absl::FunctionRef<Status()> enqueue,
               cudaGraphExec_t* out) {
  const std::lock_guard lock(TrialStreamUse(comm));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"));
  Status status = enqueue();
  cudaGraph_t graph = nullptr;
  const Status ended = CudaStatus(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  if (status.ok()) status = ended;
  if (status.ok()) status = CudaStatus(cudaGraphInstantiate(out, graph, 0), "cudaGraphInstantiate");
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  SPARSESEL_RETURN_IF_ERROR(status);
  return CudaStatus(cudaGraphUpload(*out, stream), "cudaGraphUpload");
}

Status CaptureTrain(const Comm& comm, const Executor& executor, const Slot& slot, int32_t length,
                    const Call& call, DeviceTrain* train) {
  ExecuteCounters counters;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&train->begin), "cudaEventCreate"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&train->end), "cudaEventCreate"));
  const auto enqueue = [&] {
    Status status;
    for (int32_t i = 0; i < length && status.ok(); ++i) {
      status = executor.Execute(call, slot, nullptr, &counters);
    }
    return status;
  };
  return Capture(comm, DeviceOf(slot).stream, enqueue, &train->graph);
}

Status RunTrain(const TrainMeeting& meeting, const Comm& comm, const Slot& slot,
                const DeviceTrain& train, int64_t deadline) {
  const cudaStream_t stream = DeviceOf(slot).stream;
  SPARSESEL_RETURN_IF_ERROR(meeting.meet(comm, slot, deadline));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(train.begin, stream), "cudaEventRecord"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaGraphLaunch(train.graph, stream), "cudaGraphLaunch"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(train.end, stream), "cudaEventRecord"));
  SPARSESEL_RETURN_IF_ERROR(meeting.await(slot, deadline));
  return comm.State();  // a train whose waits have failed took no time
}

Status Elapsed(cudaEvent_t begin, cudaEvent_t end, double* ns) {
  float milliseconds = 0;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime"));
  *ns = static_cast<double>(milliseconds) * 1e6;
  return {};
}

// Marks the stages of executes that are being captured by events in their graph.
class EventClock final : public StageClock {
 public:
  ~EventClock() override {
    for (const Mark& mark : marks_) (void)cudaEventDestroy(mark.event);
  }
  Status Begin(void* stream) override { return Record(kBegin, stream); }
  Status End(Stage stage, void* stream) override {
    return Record(static_cast<size_t>(stage), stream);
  }

  // After the graph has run: the times of the executes, in order.
  Status Read(std::span<SpanTimes> executes) const {
    size_t execute = 0;
    for (size_t i = 0; i < marks_.size(); ++i) {
      if (marks_[i].stage == kBegin) {
        execute += i > 0;
        continue;
      }
      double ns = 0;
      SPARSESEL_RETURN_IF_ERROR(Elapsed(marks_[i - 1].event, marks_[i].event, &ns));
      executes[execute].stage[marks_[i].stage] += static_cast<int64_t>(ns);
    }
    return {};
  }

 private:
  static constexpr size_t kBegin = kStages;
  struct Mark {
    cudaEvent_t event;
    size_t stage;  // that ended, or kBegin
  };

  Status Record(size_t stage, void* stream) {
    return Guarded([&]() -> Status {
      cudaEvent_t event = nullptr;
      SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&event), "cudaEventCreate"));
      marks_.push_back({event, stage});
      return CudaStatus(cudaEventRecordWithFlags(event, static_cast<cudaStream_t>(stream),
                                                 cudaEventRecordExternal),
                        "cudaEventRecordWithFlags");
    });
  }

  std::vector<Mark> marks_;
};

}  // namespace

std::mutex& TrialStreamUse(const Comm& comm) {
  void* const self = comm.self().get();
  return comm.transport() == SPARSESEL_TRANSPORT_NCCL ? static_cast<NcclRank*>(self)->stream_use
                                                      : static_cast<PeerRank*>(self)->stream_use;
}

void DestroyTrain(const DeviceTrain& train) {
  if (train.graph != nullptr) (void)cudaGraphExecDestroy(train.graph);
  if (train.begin != nullptr) (void)cudaEventDestroy(train.begin);
  if (train.end != nullptr) (void)cudaEventDestroy(train.end);
}

Status TimeDeviceTrain(const Comm& comm, const Executor& executor, const Slot& slot, int32_t length,
                       Call* call, double* ns) {
  DeviceTrain& train = DeviceOf(slot).trains[{executor.serial(), call->message.rows, length}];
  if (train.graph == nullptr) {
    DestroyTrain(train);
    train = {};
    SPARSESEL_RETURN_IF_ERROR(CaptureTrain(comm, executor, slot, length, *call, &train));
  }
  ++call->message.sequence;
  SPARSESEL_RETURN_IF_ERROR(RunTrain(MeetingOf(comm), comm, slot, train, call->deadline));
  SPARSESEL_RETURN_IF_ERROR(Elapsed(train.begin, train.end, ns));
  *ns /= length;
  return {};
}

Status TimeDeviceSpans(const Comm& comm, const Executor& executor, const Slot& slot, Call* call,
                       std::span<SpanTimes> executes) {
  EventClock clock;
  ExecuteCounters counters;
  const auto enqueue = [&] {
    Status status;
    for (int32_t i = 0; i < kWarmSpans && status.ok(); ++i) {
      status = executor.Execute(*call, slot, nullptr, &counters);
    }
    for (size_t i = 0; i < executes.size() && status.ok(); ++i) {
      status = executor.Execute(*call, slot, &clock, &counters);
    }
    return status;
  };
  DeviceTrain train;
  Status status = CudaStatus(cudaEventCreate(&train.begin), "cudaEventCreate");
  if (status.ok()) status = CudaStatus(cudaEventCreate(&train.end), "cudaEventCreate");
  if (status.ok()) status = Capture(comm, DeviceOf(slot).stream, enqueue, &train.graph);
  ++call->message.sequence;
  if (status.ok()) status = RunTrain(MeetingOf(comm), comm, slot, train, call->deadline);
  if (status.ok()) status = clock.Read(executes);
  DestroyTrain(train);
  return status;
}

}  // namespace sparsesel
