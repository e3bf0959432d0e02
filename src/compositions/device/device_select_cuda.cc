#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "compositions/device/device_select.h"
#include "kernels/answers.h"
#include "kernels/byte_floats.h"
#include "kernels/pack.h"
#include "kernels/peer_fused.h"
#include "kernels/restore.h"
#include "transport/peer_group.h"

namespace sparsesel {
namespace {

// Where ranks share a device, the one block with which each of the others waits may take a
// processor out of every group of 16; a cluster must fit beside them.
constexpr int32_t kSharedCluster = 8;

}  // namespace

Status DeviceSelect::Launch(std::byte* memory, const kernels::PeerRows& rows, RowRange selected,
                            const kernels::AnswerOutput& output, cudaStream_t stream) const {
  if (selected.size() == 0) return {};
  const int64_t k = job.problem.k;
  const int64_t length = job.longest;
  kernels::SelectArgs<kernels::RecordLists> args;
  args.input.base =
      reinterpret_cast<const Record*>(memory + layout.lists) + selected.begin * length;
  args.input.list_stride = rows.rows * length;
  args.input.row_stride = length;
  args.input.lists = job.world;
  std::copy_n(job.candidates.begin(), job.world, args.input.length);
  args.rows = selected.size();
  args.k = job.problem.k;
  args.active_rows = rows.active_rows;
  args.first_row = rows.begin + selected.begin;
  args.output.ids = output.ids;
  args.output.id_stride = output.id_stride;
  args.output.selected = output.counts != nullptr
                             ? output.counts
                             : reinterpret_cast<int32_t*>(memory + layout.selected);
  if (output.score_bits != nullptr) {
    args.output.keys = reinterpret_cast<uint64_t*>(memory + layout.keys);
    args.output.key_stride = k;
  }
  std::byte* const scratch = memory + layout.scratch;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(config.cluster == 0
                     ? kernels::LaunchRadix(device, args, scratch, layout.scratch_bytes, stream)
                     : kernels::LaunchSampled(device, config, args, stream),
                 "select"));
  const bool by_id = job.problem.output_order == SPARSESEL_OUTPUT_BY_ID;
  auto* const sources = by_id && output.score_bits != nullptr
                            ? reinterpret_cast<uint32_t*>(memory + layout.sources)
                            : nullptr;
  if (output.score_bits != nullptr) {
    kernels::RestoreArgs restore;
    restore.input = args.input;
    restore.keys = args.output.keys;
    restore.key_stride = k;
    restore.selected = args.output.selected;
    restore.rows = args.rows;
    restore.k = args.k;
    restore.scores = output.score_bits;
    restore.score_stride = output.score_stride;
    restore.sources = sources;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::LaunchRestore(restore, stream), "restore"));
  }
  if (by_id) {
    kernels::IdOrderArgs order;
    order.ids = output.ids;
    order.id_stride = output.id_stride;
    order.scores = output.score_bits;
    order.score_stride = output.score_stride;
    order.sources = sources;
    order.selected = args.output.selected;
    order.rows = args.rows;
    order.k = args.k;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchIdOrder(order, scratch, layout.scratch_bytes, stream), "order by id"));
  }
  return {};
}

Status PrepareSelectKernels(int32_t ordinal, const kernels::SelectDevice& device) {
  static std::mutex mutex;
  static std::vector<int32_t> prepared;
  const std::lock_guard lock(mutex);
  if (std::find(prepared.begin(), prepared.end(), ordinal) != prepared.end()) return {};
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareSampled(device), "PrepareSampled"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareFused(device), "PrepareFused"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareRadix(), "PrepareRadix"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareRestore(), "PrepareRestore"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareIdOrder(), "PrepareIdOrder"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PreparePack(), "PreparePack"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareAnswers(), "PrepareAnswers"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareByteFloats(), "PrepareByteFloats"));
  prepared.push_back(ordinal);
  return {};
}

Status ChooseFused(const kernels::SelectDevice& device, const kernels::SelectShape& shape,
                   int32_t ranks_on_device, kernels::SelectConfig* chosen) {
  std::array<kernels::SelectConfig, 64> configs;
  const int32_t found =
      kernels::SampledConfigs(device, shape, configs.data(), static_cast<int32_t>(configs.size()));
  *chosen = {};
  for (int32_t i = 0; i < std::min<int32_t>(found, configs.size()); ++i) {
    int32_t rows = 0;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::FusedRows(device, configs[static_cast<size_t>(i)], shape, ranks_on_device, &rows),
        "FusedRows"));
    // A rank with a device of its own makes progress row by row, however many there are.
    if (rows < (ranks_on_device == 1 ? 1 : 2 * shape.rows)) continue;
    *chosen = configs[static_cast<size_t>(i)];
    break;
  }
  return {};
}

kernels::SelectConfig ChooseSelect(const kernels::SelectDevice& device,
                                   const kernels::SelectShape& shape, bool shared) {
  const kernels::SelectConfig usual = kernels::SampledDefault(device, shape);
  if (!shared || usual.cluster <= kSharedCluster) return usual;
  std::array<kernels::SelectConfig, 64> configs;
  const int32_t found =
      kernels::SampledConfigs(device, shape, configs.data(), static_cast<int32_t>(configs.size()));
  for (int32_t i = 0; i < std::min<int32_t>(found, configs.size()); ++i) {
    const kernels::SelectConfig& config = configs[static_cast<size_t>(i)];
    if (config.cluster <= kSharedCluster) return config;
  }
  return {};
}

size_t SelectScratchBytes(const Job& job, const kernels::SelectDevice& device,
                          const kernels::SelectShape& shape, const kernels::SelectConfig& config) {
  size_t scratch = config.cluster == 0 ? kernels::RadixWorkspaceBytes(device, shape) : 0;
  if (job.problem.output_order == SPARSESEL_OUTPUT_BY_ID) {
    kernels::IdOrderArgs order;
    order.rows = shape.rows;
    order.k = shape.k;
    scratch = std::max(scratch, kernels::IdOrderWorkspaceBytes(order));
  }
  return scratch;
}

}  // namespace sparsesel
