// What `sparsesel` can be asked to do. Each prints its outcome on stdout.
#ifndef SPARSESEL_TOOL_COMMANDS_H_
#define SPARSESEL_TOOL_COMMANDS_H_

#include "tool/job.h"
#include "tool/result.h"

namespace sparsesel_tool {

// Races both compositions, shows how each capacity was decided, binds, replays and compares.
Result RaceCommand(Job job);

// Every composition under every re-sharding, many times, compared.
Result VerifyCommand(Job job);

// What the library sees of itself and the machine; `raw`: as JSON.
Result InfoCommand(bool raw);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_COMMANDS_H_
