#include "contract/problem.h"

#include <algorithm>
#include <bit>

namespace sparsesel {
namespace {

Status OutOfRange(const char* field, int64_t value, int64_t low, int64_t high) {
  return Status::Error(SPARSESEL_INVALID_ARGUMENT, "%s is %d, not in %d .. %d", field, value, low,
                       high);
}

Status InRange(const char* field, int64_t value, int64_t low, int64_t high) {
  return value < low || value > high ? OutOfRange(field, value, low, high) : Status();
}

Status Capacities(const sparsesel_problem& options, std::vector<int32_t>* capacities) {
  if (options.capacities == nullptr) {
    if (options.capacity_count != 0) {
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "capacities is NULL with capacity_count %d",
                           options.capacity_count);
    }
    *capacities = {1};
    return {};
  }
  SPARSESEL_RETURN_IF_ERROR(InRange("capacity_count", options.capacity_count, 1, kMaxCapacities));
  capacities->assign(options.capacities, options.capacities + options.capacity_count);
  std::sort(capacities->begin(), capacities->end());
  for (size_t i = 0; i < capacities->size(); ++i) {
    SPARSESEL_RETURN_IF_ERROR(InRange("a capacity", (*capacities)[i], 1, kMaxCapacity));
    if (i > 0 && (*capacities)[i] == (*capacities)[i - 1]) {
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "capacity %d is listed twice",
                           (*capacities)[i]);
    }
  }
  return {};
}

Status ParseIdMap(const sparsesel_problem& options, IdMap* map) {
  SPARSESEL_RETURN_IF_ERROR(InRange("id_map", options.id_map, 0, SPARSESEL_ID_INTERLEAVE));
  map->kind = options.id_map;
  if (map->kind == SPARSESEL_ID_OFFSET) {
    SPARSESEL_RETURN_IF_ERROR(InRange("id_offset", options.id_offset, 0, INT32_MAX));
    map->offset = options.id_offset;
  }
  if (map->kind == SPARSESEL_ID_INTERLEAVE) {
    SPARSESEL_RETURN_IF_ERROR(InRange("id_block", options.id_block, 1, INT32_MAX));
    SPARSESEL_RETURN_IF_ERROR(InRange("id_shards", options.id_shards, 1, INT32_MAX));
    SPARSESEL_RETURN_IF_ERROR(InRange("id_shard", options.id_shard, 0, options.id_shards - 1));
    map->block = options.id_block;
    map->shards = options.id_shards;
    map->shard = options.id_shard;
  }
  return {};
}

// A stride promise: 0 means `row`, less than `row` is refused.
Status Stride(const char* field, int64_t value, int64_t row, int64_t* stride) {
  *stride = value == 0 ? row : value;
  return InRange(field, *stride, row, int64_t{1} << 40);
}

}  // namespace

bool Problem::is_raced() const {
  const bool is_static =
      (workload & (SPARSESEL_WORKLOAD_DYNAMIC_SHAPE | SPARSESEL_WORKLOAD_DYNAMIC_COLLECTIVES |
                   SPARSESEL_WORKLOAD_NO_TUNING)) == 0;
  switch (race_policy) {
    case SPARSESEL_RACE_CONSERVATIVE:
      return is_static && phase == SPARSESEL_PHASE_DECODE && requests == 1;
    case SPARSESEL_RACE_ANY_STATIC:
      return is_static;
    default:
      return false;
  }
}

Status ParseProblem(const sparsesel_problem& options, Problem* problem) {
  Problem& p = *problem;
  p.k = options.k == 0 ? kDefaultK : options.k;
  SPARSESEL_RETURN_IF_ERROR(InRange("k", p.k, 1, kMaxK));
  SPARSESEL_RETURN_IF_ERROR(Capacities(options, &p.capacities));
  p.candidates = options.candidates == 0 ? kDefaultK : options.candidates;
  SPARSESEL_RETURN_IF_ERROR(InRange("candidates", p.candidates, 1, kMaxCandidates));
  p.alignment = options.alignment == 0 ? 4 : options.alignment;
  SPARSESEL_RETURN_IF_ERROR(InRange("alignment", p.alignment, 4, 256));
  if (!std::has_single_bit(static_cast<uint32_t>(p.alignment))) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "alignment is %d, not a power of two",
                         p.alignment);
  }

  SPARSESEL_RETURN_IF_ERROR(InRange("score_type", options.score_type, 0, SPARSESEL_SCORE_BF16));
  if (options.score_type != SPARSESEL_SCORE_FP32) {
    return Status::Error(SPARSESEL_UNSUPPORTED, "score_type %d is reserved", options.score_type);
  }
  SPARSESEL_RETURN_IF_ERROR(
      InRange("output_kind", options.output_kind, 0, SPARSESEL_OUTPUT_PAGE_SLOTS));
  if (options.output_kind != SPARSESEL_OUTPUT_GLOBAL_IDS) {
    return Status::Error(SPARSESEL_UNSUPPORTED, "output_kind %d is reserved", options.output_kind);
  }

  SPARSESEL_RETURN_IF_ERROR(
      InRange("input_kind", options.input_kind, 0, SPARSESEL_INPUT_POSITIONS));
  p.input_kind = options.input_kind;
  int64_t score_row = p.candidates;
  if (p.input_kind == SPARSESEL_INPUT_POSITIONS) {
    SPARSESEL_RETURN_IF_ERROR(
        InRange("score_row_length", options.score_row_length, 1, int64_t{1} << 31));
    p.score_row_length = score_row = options.score_row_length;
  } else if (options.score_row_length != 0) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "score_row_length is %d, but the input is pairs",
                         options.score_row_length);
  }
  SPARSESEL_RETURN_IF_ERROR(
      Stride("score_stride", options.score_stride, score_row, &p.score_stride));
  SPARSESEL_RETURN_IF_ERROR(Stride("id_stride", options.id_stride, p.candidates, &p.id_stride));
  SPARSESEL_RETURN_IF_ERROR(Stride("output_stride", options.output_stride, p.k, &p.output_stride));

  SPARSESEL_RETURN_IF_ERROR(InRange("input_order", options.input_order, 0, SPARSESEL_ORDER_FULL));
  p.input_order = options.input_order;
  SPARSESEL_RETURN_IF_ERROR(ParseIdMap(options, &p.id_map));
  SPARSESEL_RETURN_IF_ERROR(
      InRange("output_order", options.output_order, 0, SPARSESEL_OUTPUT_BY_ID));
  p.output_order = options.output_order;
  SPARSESEL_RETURN_IF_ERROR(
      InRange("outputs", options.outputs, 0, SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS));
  p.outputs = options.outputs;
  SPARSESEL_RETURN_IF_ERROR(
      InRange("output_scope", options.output_scope, 0, SPARSESEL_SCOPE_OWNED_ROWS));
  p.output_scope = options.output_scope;
  SPARSESEL_RETURN_IF_ERROR(InRange("phase", options.phase, 0, SPARSESEL_PHASE_PREFILL));
  p.phase = options.phase;
  p.requests = options.requests == 0 ? 1 : options.requests;
  SPARSESEL_RETURN_IF_ERROR(InRange("requests", p.requests, 1, INT32_MAX));
  SPARSESEL_RETURN_IF_ERROR(InRange("workload", options.workload, 0, 7));
  p.workload = options.workload;
  SPARSESEL_RETURN_IF_ERROR(InRange("race_policy", options.race_policy, 0, SPARSESEL_RACE_OFF));
  p.race_policy = options.race_policy;
  if (options.reserved != 0) return OutOfRange("reserved", options.reserved, 0, 0);
  p.memory_limit = options.memory_limit;
  return {};
}

std::vector<SharedField> SharedFields(const Problem& problem) {
  // FNV-1a over the list, so that any number of capacities compares as one field.
  uint64_t capacities = 0xcbf29ce484222325u;
  for (const int32_t capacity : problem.capacities) {
    capacities = (capacities ^ static_cast<uint32_t>(capacity)) * 0x100000001b3u;
  }
  return {
      {"k", static_cast<uint64_t>(problem.k)},
      {"capacities (digest)", capacities},
      {"output_order", static_cast<uint64_t>(problem.output_order)},
      {"outputs", problem.outputs},
      {"output_scope", static_cast<uint64_t>(problem.output_scope)},
      {"phase", static_cast<uint64_t>(problem.phase)},
      {"requests", static_cast<uint64_t>(problem.requests)},
      {"workload", problem.workload},
      {"race_policy", static_cast<uint64_t>(problem.race_policy)},
  };
}

}  // namespace sparsesel
