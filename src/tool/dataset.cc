#include "tool/dataset.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "tool/reference.h"
#include "tool/safetensors.h"

namespace sparsesel_tool {
namespace {

std::string Shape(const Tensor& tensor) {
  std::string text = "[";
  for (const int64_t extent : tensor.shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

// A tensor of the type and number of dimensions that are wanted; null and OK if an optional one is
// not there.
Result FindTensor(const Safetensors& file, std::string_view name, std::string_view dtype,
                  size_t dimensions, bool required, const Tensor** tensor) {
  const std::string who = "tensor " + std::string(name);
  *tensor = file.Find(name);
  if (*tensor == nullptr) return required ? Failure(who + " is missing") : Result();
  if ((*tensor)->dtype != dtype) {
    return Failure(who + " is of type " + (*tensor)->dtype + ", not " + std::string(dtype));
  }
  if ((*tensor)->shape.size() != dimensions) {
    return Failure(who + " has shape " + Shape(**tensor) + ", not " + std::to_string(dimensions) +
                   " dimensions");
  }
  return {};
}

Result CheckExtent(const char* what, int64_t extent, int64_t most) {
  if (extent >= 1 && extent <= most) return {};
  return Failure("the number of " + std::string(what) + " is " + std::to_string(extent) +
                 ", not 1 to " + std::to_string(most));
}

// Element `begin` and those after it, as many as `out` holds. Files are little-endian, as are the
// machines this runs on; the data need not be aligned.
template <typename Element>
void Copy(const Tensor& tensor, size_t begin, std::vector<Element>* out) {
  std::memcpy(out->data(), tensor.data.data() + begin * sizeof(Element),
              out->size() * sizeof(Element));
}

struct Tensors {
  const Tensor* scores = nullptr;
  const Tensor* ids = nullptr;
  const Tensor* counts = nullptr;
  const Tensor* expected = nullptr;
};

Result FindTensors(const Safetensors& file, Tensors* t) {
  if (Result r = FindTensor(file, "scores", "F32", 3, true, &t->scores); !r.ok()) return r;
  if (Result r = FindTensor(file, "ids", "I32", 3, true, &t->ids); !r.ok()) return r;
  if (Result r = FindTensor(file, "counts", "I32", 2, false, &t->counts); !r.ok()) return r;
  if (Result r = FindTensor(file, "expected_ids", "I32", 2, false, &t->expected); !r.ok()) return r;

  const std::vector<int64_t>& shape = t->scores->shape;
  if (t->ids->shape != shape) {
    return Failure("tensor ids has shape " + Shape(*t->ids) + ", but scores " + Shape(*t->scores));
  }
  if (Result r = CheckExtent("ranks", shape[0], kMaxRanks); !r.ok()) return r;
  if (Result r = CheckExtent("rows", shape[1], kMaxRows); !r.ok()) return r;
  if (Result r = CheckExtent("candidates", shape[2], kMaxListLength); !r.ok()) return r;
  if (t->counts != nullptr && t->counts->shape != std::vector<int64_t>{shape[0], shape[1]}) {
    return Failure("tensor counts has shape " + Shape(*t->counts) + ", but scores " +
                   Shape(*t->scores));
  }
  if (t->expected != nullptr) {
    if (t->expected->shape[0] != shape[1]) {
      return Failure("tensor expected_ids has shape " + Shape(*t->expected) + ", but there are " +
                     std::to_string(shape[1]) + " rows");
    }
    return CheckExtent("expected ids", t->expected->shape[1], kMaxListLength);
  }
  return {};
}

}  // namespace

Result LoadDataset(const std::string& path, Dataset* out) {
  std::vector<std::byte> bytes;
  Safetensors file;
  Tensors tensors;
  Result result = ReadWholeFile(path, &bytes);
  if (result.ok()) result = Safetensors::Parse(std::move(bytes), &file);
  if (result.ok()) result = FindTensors(file, &tensors);
  if (!result.ok()) return Failure(path + ": " + result.text);

  Dataset dataset;
  dataset.name = path;
  const auto world = static_cast<size_t>(tensors.scores->shape[0]);
  const auto rows = static_cast<size_t>(tensors.scores->shape[1]);
  const auto candidates = static_cast<size_t>(tensors.scores->shape[2]);
  dataset.rows = static_cast<int32_t>(rows);
  for (size_t rank = 0; rank < world; ++rank) {
    RankLists& lists = dataset.ranks.emplace_back();
    lists.candidates = static_cast<int32_t>(candidates);
    lists.scores.resize(rows * candidates);
    lists.ids.resize(rows * candidates);
    Copy(*tensors.scores, rank * rows * candidates, &lists.scores);
    Copy(*tensors.ids, rank * rows * candidates, &lists.ids);
    if (tensors.counts == nullptr) continue;
    lists.counts.resize(rows);
    Copy(*tensors.counts, rank * rows, &lists.counts);
  }
  if (tensors.expected != nullptr) {
    dataset.expected_k = static_cast<int32_t>(tensors.expected->shape[1]);
    dataset.expected.resize(rows * static_cast<size_t>(dataset.expected_k));
    Copy(*tensors.expected, 0, &dataset.expected);
  }
  *out = std::move(dataset);
  return {};
}

Truth TruthOf(const Dataset& dataset, int32_t k) {
  if (dataset.expected.empty() || k > dataset.expected_k) {
    return {"the tool's own reference", ReferenceIds(dataset, k)};
  }
  Truth truth{"expected_ids of the file", {}};
  for (int32_t row = 0; row < dataset.rows; ++row) {
    const auto begin = dataset.expected.begin() + int64_t{row} * dataset.expected_k;
    truth.ids.insert(truth.ids.end(), begin, begin + k);
  }
  return truth;
}

}  // namespace sparsesel_tool
