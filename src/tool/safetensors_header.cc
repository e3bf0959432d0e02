#include "tool/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tool/safetensors.h"

namespace sparsesel_tool {
namespace {

constexpr const char* kMetadata = "__metadata__";
constexpr size_t kMaxQuoted = 60;

// The events of nlohmann's parser. Every handler returns false to stop.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(std::vector<TensorHeader>* tensors) : tensors_(tensors) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return Unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return Unexpected("a number that is not a whole one in 64 bits");
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (where_ != Where::kList) return Unexpected("a number");
    if (list_->size() == Safetensors::kMaxDimensions) return Stop("has too long a list");
    list_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (where_ == Where::kStrings) return true;
    if (where_ != Where::kTensor || key_ != "dtype") return Unexpected("a string");
    tensors_->back().dtype = value;
    return true;
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::kStart) {
      where_ = Where::kRoot;
      return true;
    }
    if (where_ != Where::kRoot) return Unexpected("an object");
    keys_.clear();
    if (key_ == kMetadata) {
      where_ = Where::kStrings;
      return true;
    }
    if (tensors_->size() == Safetensors::kMaxTensors) return Stop("has too many tensors");
    tensors_->push_back({key_, {}, {}, {}});
    where_ = Where::kTensor;
    return true;
  }

  bool key(string_t& name) override {
    key_ = name;
    switch (where_) {
      case Where::kRoot:
        return names_.insert(name).second || Stop("names " + QuotedName(name) + " twice");
      case Where::kStrings:
        return keys_.insert(name).second || Stop("names metadata " + QuotedName(name) + " twice");
      default:
        if (name != "dtype" && name != "shape" && name != "data_offsets") {
          return Stop("has an unknown field " + QuotedName(name) + " in a tensor");
        }
        return keys_.insert(name).second || Stop("gives " + name + " of a tensor twice");
    }
  }

  bool end_object() override {
    if (where_ == Where::kTensor && keys_.size() != 3) {
      return Stop("lacks dtype, shape or data_offsets of " + QuotedName(tensors_->back().name));
    }
    where_ = where_ == Where::kRoot ? Where::kEnd : Where::kRoot;
    return true;
  }

  bool start_array(std::size_t) override {
    if (where_ != Where::kTensor || key_ == "dtype") return Unexpected("a list");
    list_ = key_ == "shape" ? &tensors_->back().shape : &tensors_->back().data_offsets;
    where_ = Where::kList;
    return true;
  }

  bool end_array() override {
    where_ = Where::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    if (problem_.empty()) Stop("is not JSON at byte " + std::to_string(position));
    return false;
  }

 private:
  enum class Where { kStart, kRoot, kStrings, kTensor, kList, kEnd };

  bool Stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool Unexpected(const char* what) { return Stop(std::string("has ") + what + " out of place"); }

  std::vector<TensorHeader>* const tensors_;
  Where where_ = Where::kStart;
  std::string key_;
  std::set<std::string> names_;  // of tensors
  std::set<std::string> keys_;   // of the object being read inside the root
  std::vector<uint64_t>* list_ = nullptr;
  std::string problem_;
};

}  // namespace

Result ParseSafetensorsHeader(std::string_view json, std::vector<TensorHeader>* tensors) {
  tensors->clear();
  // The format wants the object at once; the parser would skip spaces and a byte order mark.
  if (json.empty() || json.front() != '{') return Failure("the header does not begin with '{'");
  // The parser takes a zero byte for the end, and what stands behind it for nothing.
  if (json.find('\0') != json.npos) return Failure("the header has a zero byte");
  HeaderReader reader(tensors);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) {
    return Failure("the header " + reader.problem());
  }
  return {};
}

std::string QuotedName(const std::string& name) {
  std::string quoted = "'";
  for (const char c : name.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<unsigned char>(c);
    quoted += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return quoted + (name.size() > kMaxQuoted ? "...'" : "'");
}

}  // namespace sparsesel_tool
