// sparsesel_system_json: what the library sees of itself and of the machine.
#include <string>
#include <vector>

#include "api/errors.h"
#include "api/text.h"
#include "api/version.h"
#include "contract/json_writer.h"
#include "sparsesel.h"
#include "stages/variant.h"
#include "transport/device_group.h"
#include "transport/nccl_library.h"

namespace sparsesel {
namespace {

#if defined(SPARSESEL_HAS_CUDA)
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;
#endif

void WriteTransport(const char* name, const char* memory, const char* obstacle, JsonWriter* json,
                    const std::string& version = {}) {
  json->BeginObject();
  json->Member("name", name);
  json->Member("memory", memory);
  if (!version.empty()) json->Member("version", version);
  json->Member("available", obstacle == nullptr);
  if (obstacle != nullptr) json->Member("reason", obstacle);
  json->EndObject();
}

// NCCL is told of where it is, even without a device for it to serve.
void WriteNccl(const char* no_devices, JsonWriter* json) {
  NcclLibrary library;
  const Status found = kHasCuda ? LoadNccl(nullptr, &library) : Status();
  const char* const obstacle = found.ok() ? no_devices : found.text();
  WriteTransport("nccl", "device", obstacle, json,
                 library.version == 0 ? "" : NcclVersionText(library.version));
}

void WriteTransports(const char* no_devices, JsonWriter* json) {
  json->BeginArray();
  WriteTransport("threads", "host", nullptr, json);
  WriteTransport("custom", "host", nullptr, json);
  WriteTransport("bootstrap", "host", nullptr, json);
  WriteTransport("mpi", "host", "not offered by this version", json);
  WriteTransport("peer", "device", no_devices, json);
  WriteNccl(no_devices, json);
  json->EndArray();
}

void WriteVariants(JsonWriter* json) {
  json->BeginArray();
  for (const Variant& variant : Variants()) {
    json->BeginObject();
    json->Member("name", variant.name);
    json->Key("stages");
    json->BeginArray();
    for (auto stage = static_cast<int32_t>(variant.first);
         stage <= static_cast<int32_t>(variant.last); ++stage) {
      json->Value(StageName(Stage{stage}));
    }
    json->EndArray();
    json->Key("compositions");
    json->BeginArray();
    if ((variant.compositions & kInReplicated) != 0) json->Value("replicated");
    if ((variant.compositions & kInOwner) != 0) json->Value("owner");
    json->EndArray();
    json->Member("memory", variant.memory == SPARSESEL_MEMORY_HOST ? "host" : "device");
    json->Member("revision", variant.revision);
    // {0} stands for no parameter.
    if (!(variant.configurations.size() == 1 && variant.configurations[0] == 0)) {
      json->ArrayMember("configurations", variant.configurations);
    }
    json->EndObject();
  }
  json->EndArray();
}

void WriteDevices(const std::vector<DeviceDescription>& devices, JsonWriter* json) {
  json->BeginArray();
  for (const DeviceDescription& device : devices) {
    json->BeginObject();
    json->Member("ordinal", device.ordinal);
    json->Member("name", device.name);
    json->Member("compute_capability", device.compute_capability);
    json->Member("processors", device.processors);
    json->Member("memory_bytes", device.memory);
    json->ArrayMember("stores_into", device.stores_into);
    json->EndObject();
  }
  json->EndArray();
}

std::string SystemJson() {
  std::string reason;
  const std::vector<DeviceDescription> devices = DescribeDevices(&reason);
  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  json.Member("version", VersionString());
  json.Member("abi", 0);
  json.Key("backends");
  json.BeginArray();
  json.Value("host");
  if (kHasCuda) json.Value("cuda");
  json.EndArray();
  json.Key("transports");
  WriteTransports(devices.empty() ? reason.c_str() : nullptr, &json);
  json.Key("devices");
  WriteDevices(devices, &json);
  json.Key("variants");
  WriteVariants(&json);
  json.EndObject();
  return text;
}

}  // namespace
}  // namespace sparsesel

sparsesel_status sparsesel_system_json(char* text, size_t size, size_t* needed,
                                       sparsesel_error* error) {
  return sparsesel::Call(error, [&]() -> sparsesel::Status {
    if (needed != nullptr) *needed = 0;
    SPARSESEL_RETURN_IF_ERROR(sparsesel::CheckTextOut(text, size, needed));
    return sparsesel::CopyTextOut(sparsesel::SystemJson(), text, size, needed);
  });
}
