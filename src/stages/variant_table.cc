// Every variant there is. Decisions name variants; order only says which is tried first, and serves
// where nothing could be measured.
#include <cstring>
#include <string_view>
#include <vector>

#include "stages/host/select.h"
#include "stages/variant.h"

namespace sparsesel {
namespace {

constexpr int32_t kNoConfiguration[] = {0};
constexpr int32_t kPrefixes[] = {64, 128, 256, 512, 1024};

bool Always(const Job&, const Topology&, int32_t) { return true; }

// A sorted list has forgotten the original positions, which break ties of one id with several
// scores when the output is ordered by id and shows the scores.
bool PositionsDoNotMatter(const Job& job, const Topology&, int32_t) {
  return !(job.problem.output_order == SPARSESEL_OUTPUT_BY_ID && job.problem.wants_scores());
}

bool ShortensLists(const Job& job, const Topology& topology, int32_t prefix) {
  return prefix < job.longest && PositionsDoNotMatter(job, topology, prefix);
}

bool RowsGoEverywhere(const Job& job, const Topology&, int32_t) { return job.everywhere(); }
bool SumsBf16(const Job& job, const Topology& topology, int32_t) {
  return job.everywhere() && topology.sum_bf16;
}
bool SumsInt32(const Job& job, const Topology& topology, int32_t) {
  return job.everywhere() && topology.sum_int32;
}

Variant HostVariant(const char* name, Stage stage, uint32_t compositions,
                    std::span<const int32_t> configurations,
                    bool (*supports)(const Job&, const Topology&, int32_t)) {
  return {name, stage, stage, compositions, SPARSESEL_MEMORY_HOST, 1, configurations, supports};
}

#if defined(SPARSESEL_HAS_CUDA)
// What moves data is of one transport.
template <int32_t transport>
bool Moves(const Job&, const Topology& topology, int32_t) {
  return topology.transport == transport;
}
template <int32_t transport>
bool Replicates(const Job& job, const Topology& topology, int32_t) {
  return job.everywhere() && topology.transport == transport;
}

// One kernel for everything writes ids in the order of scores, of all rows.
bool FusedSupports(const Job& job, const Topology& topology, int32_t) {
  return topology.transport == SPARSESEL_TRANSPORT_PEER && job.everywhere() &&
         !job.problem.wants_scores() && job.problem.output_order == SPARSESEL_OUTPUT_BY_SCORE;
}

// Prefixes too short to hold k would seldom be enough, and lists must be said to be in order.
bool FusedPrefixSupports(const Job& job, const Topology& topology, int32_t prefix) {
  return FusedSupports(job, topology, prefix) && job.problem.input_order == SPARSESEL_ORDER_FULL &&
         prefix < job.longest && int64_t{prefix} * job.world > job.problem.k;
}

std::vector<Variant> DeviceVariants() {
  constexpr int32_t kDevice = SPARSESEL_MEMORY_DEVICE;
  constexpr int32_t kPeer = SPARSESEL_TRANSPORT_PEER;
  constexpr int32_t kNccl = SPARSESEL_TRANSPORT_NCCL;
  return {
      {"peer.push", Stage::kPack, Stage::kExchange, kInBoth, kDevice, 1, kNoConfiguration,
       Moves<kPeer>},
      {"nccl.exchange", Stage::kPack, Stage::kExchange, kInBoth, kDevice, 1, kNoConfiguration,
       Moves<kNccl>},
      {"peer.fused", Stage::kPack, Stage::kSelect, kInReplicated, kDevice, 1, kNoConfiguration,
       FusedSupports},
      {"peer.fused_prefix", Stage::kPack, Stage::kSelect, kInReplicated, kDevice, 1, kPrefixes,
       FusedPrefixSupports},
      {"select.sampled", Stage::kSelect, Stage::kSelect, kInBoth, kDevice, 1, kNoConfiguration,
       Always},
      {"peer.answers", Stage::kReplicate, Stage::kReplicate, kInOwner, kDevice, 1, kNoConfiguration,
       Replicates<kPeer>},
      {"nccl.all_gather", Stage::kReplicate, Stage::kReplicate, kInOwner, kDevice, 1,
       kNoConfiguration, Replicates<kNccl>},
      {"nccl.bf16", Stage::kReplicate, Stage::kReplicate, kInOwner, kDevice, 1, kNoConfiguration,
       Replicates<kNccl>},
      {"nccl.int32_sum", Stage::kReplicate, Stage::kReplicate, kInOwner, kDevice, 1,
       kNoConfiguration, Replicates<kNccl>},
  };
}
#else
std::vector<Variant> DeviceVariants() { return {}; }
#endif

std::vector<Variant> MakeTable() {
  std::vector<Variant> table = {
      HostVariant("pack.plain", Stage::kPack, kInBoth, kNoConfiguration, Always),
      HostVariant("pack.sorted", Stage::kPack, kInBoth, kNoConfiguration, PositionsDoNotMatter),
      HostVariant("pack.top", Stage::kPack, kInBoth, kPrefixes, ShortensLists),
      HostVariant("exchange.full", Stage::kExchange, kInBoth, kNoConfiguration, Always),
      HostVariant("exchange.prefix", Stage::kExchange, kInBoth, kPrefixes, ShortensLists),
      HostVariant("replicate.all_gather", Stage::kReplicate, kInOwner, kNoConfiguration,
                  RowsGoEverywhere),
      HostVariant("replicate.bf16", Stage::kReplicate, kInOwner, kNoConfiguration, SumsBf16),
      HostVariant("replicate.int32_sum", Stage::kReplicate, kInOwner, kNoConfiguration, SumsInt32),
  };
  for (const Variant& variant : DeviceVariants()) table.push_back(variant);
  for (const HostSelectVariant& select : HostSelectVariants()) {
    Variant variant = HostVariant(select.name, Stage::kSelect, kInBoth, kNoConfiguration, Always);
    variant.revision = select.revision;
    table.push_back(variant);
  }
  return table;
}

}  // namespace

const char* StageName(Stage stage) {
  constexpr const char* kNames[kStages] = {"pack", "exchange", "select", "replicate"};
  return kNames[static_cast<int32_t>(stage)];
}

std::span<const Variant> Variants() {
  static const std::vector<Variant> table = MakeTable();
  return table;
}

const Variant* FindVariant(const char* name, size_t length) {
  for (const Variant& variant : Variants()) {
    if (std::string_view(variant.name) == std::string_view(name, length)) return &variant;
  }
  return nullptr;
}

}  // namespace sparsesel
