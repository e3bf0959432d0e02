#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tool/commands.h"
#include "tool/table.h"

namespace sparsesel_tool {
namespace {

using Json = nlohmann::json;

Result SystemText(std::string* json) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  size_t needed = 0;
  sparsesel_status status = sparsesel_system_json(nullptr, 0, &needed, &error);
  if (status != SPARSESEL_OK) return LibraryResult("system_json", status, error);
  json->resize(needed);
  status = sparsesel_system_json(json->data(), json->size(), &needed, &error);
  if (needed > 0) json->resize(needed - 1);  // the terminator
  return LibraryResult("system_json", status, error);
}

std::string Joined(const Json& list) {
  std::string text;
  for (const Json& item : list) {
    if (!text.empty()) text += ", ";
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

void PrintDevices(const Json& devices) {
  if (devices.empty()) {
    std::printf("devices: none\n");
    return;
  }
  Table table;
  table.AddColumn("device", Table::Align::kRight);
  table.AddColumn("name", Table::Align::kLeft);
  table.AddColumn("capability", Table::Align::kRight);
  table.AddColumn("processors", Table::Align::kRight);
  table.AddColumn("MiB", Table::Align::kRight);
  table.AddColumn("stores into", Table::Align::kLeft);
  for (const Json& entry : devices) {
    const int capability = entry.value("compute_capability", 0);
    table.AddRow({std::to_string(entry.value("ordinal", 0)), entry.value("name", ""),
                  std::to_string(capability / 10) + "." + std::to_string(capability % 10),
                  std::to_string(entry.value("processors", 0)),
                  std::to_string(entry.value("memory_bytes", uint64_t{0}) >> 20),
                  Joined(entry.value("stores_into", Json::array()))});
  }
  std::printf("\n%s", table.ToString().c_str());
}

void PrintTransports(const Json& transports) {
  Table table;
  for (const char* title : {"transport", "memory", "available"}) {
    table.AddColumn(title, Table::Align::kLeft);
  }
  for (const Json& entry : transports) {
    const std::string version = entry.value("version", "");
    table.AddRow({entry.value("name", "") + (version.empty() ? "" : " " + version),
                  entry.value("memory", ""),
                  entry.value("available", false) ? "yes" : "no: " + entry.value("reason", "")});
  }
  std::printf("\n%s", table.ToString().c_str());
}

void PrintVariants(const Json& variants) {
  Table table;
  for (const char* title : {"variant", "stages", "compositions", "memory", "configurations"}) {
    table.AddColumn(title, Table::Align::kLeft);
  }
  for (const Json& entry : variants) {
    table.AddRow({entry.value("name", ""), Joined(entry.value("stages", Json::array())),
                  Joined(entry.value("compositions", Json::array())), entry.value("memory", ""),
                  Joined(entry.value("configurations", Json::array()))});
  }
  std::printf("\n%s", table.ToString().c_str());
}

}  // namespace

Result InfoCommand(bool raw) {
  std::string text;
  if (Result r = SystemText(&text); !r.ok()) return r;
  const Json system = Json::parse(text, nullptr, false);
  if (system.is_discarded()) return Failure("the library's description is not JSON");
  if (raw) {
    std::printf("%s\n", system.dump(2).c_str());
    return {};
  }
  std::printf("sparsesel %s\nbackends: %s\n", system.value("version", "").c_str(),
              Joined(system.value("backends", Json::array())).c_str());
  PrintDevices(system.value("devices", Json::array()));
  PrintTransports(system.value("transports", Json::array()));
  PrintVariants(system.value("variants", Json::array()));
  return {};
}

}  // namespace sparsesel_tool
