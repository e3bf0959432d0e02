// sparsesel_system_json: what the library sees of itself and of the machine.
#include <string>
#include <vector>

#include "api/errors.h"
#include "api/text.h"
#include "api/version.h"
#include "nlohmann/json.hpp"
#include "sparsesel.h"
#include "stages/variant.h"
#include "transport/device_group.h"

namespace sparsesel {
namespace {

using Json = nlohmann::ordered_json;

#if defined(SPARSESEL_HAS_CUDA)
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;
#endif

Json Transport(const char* name, const char* memory, const char* obstacle) {
  Json entry{{"name", name}, {"memory", memory}, {"available", obstacle == nullptr}};
  if (obstacle != nullptr) entry["reason"] = obstacle;
  return entry;
}

Json TransportsJson(const char* no_devices) {
  return Json::array({
      Transport("threads", "host", nullptr),
      Transport("custom", "host", nullptr),
      Transport("bootstrap", "host", nullptr),
      Transport("mpi", "host", "not offered by this version"),
      Transport("peer", "device", no_devices),
      Transport("nccl", "device", "not offered by this version"),
  });
}

Json VariantsJson() {
  Json list = Json::array();
  for (const Variant& variant : Variants()) {
    Json stages = Json::array();
    for (auto stage = static_cast<int32_t>(variant.first);
         stage <= static_cast<int32_t>(variant.last); ++stage) {
      stages.push_back(StageName(Stage{stage}));
    }
    Json compositions = Json::array();
    if ((variant.compositions & kInReplicated) != 0) compositions.push_back("replicated");
    if ((variant.compositions & kInOwner) != 0) compositions.push_back("owner");
    Json entry{{"name", variant.name},
               {"stages", stages},
               {"compositions", compositions},
               {"memory", variant.memory == SPARSESEL_MEMORY_HOST ? "host" : "device"},
               {"revision", variant.revision}};
    // {0} stands for no parameter.
    if (!(variant.configurations.size() == 1 && variant.configurations[0] == 0)) {
      Json configurations = Json::array();
      for (const int32_t value : variant.configurations) configurations.push_back(value);
      entry["configurations"] = configurations;
    }
    list.push_back(entry);
  }
  return list;
}

Json DevicesJson(const std::vector<DeviceDescription>& devices) {
  Json list = Json::array();
  for (const DeviceDescription& device : devices) {
    list.push_back({{"ordinal", device.ordinal},
                    {"name", device.name},
                    {"compute_capability", device.compute_capability},
                    {"processors", device.processors},
                    {"memory_bytes", device.memory},
                    {"stores_into", device.stores_into}});
  }
  return list;
}

Json SystemJson() {
  std::string reason;
  const std::vector<DeviceDescription> devices = DescribeDevices(&reason);
  return Json{
      {"version", VersionString()},
      {"abi", 0},
      {"backends", kHasCuda ? Json::array({"host", "cuda"}) : Json::array({"host"})},
      {"transports", TransportsJson(devices.empty() ? reason.c_str() : nullptr)},
      {"devices", DevicesJson(devices)},
      {"variants", VariantsJson()},
  };
}

}  // namespace
}  // namespace sparsesel

sparsesel_status sparsesel_system_json(char* text, size_t size, size_t* needed,
                                       sparsesel_error* error) {
  return sparsesel::Call(error, [&]() -> sparsesel::Status {
    if (needed != nullptr) *needed = 0;
    SPARSESEL_RETURN_IF_ERROR(sparsesel::CheckTextOut(text, size, needed));
    return sparsesel::CopyTextOut(sparsesel::SystemJson().dump(), text, size, needed);
  });
}
