// What is executed: for each capacity one composition, ready to run.
#ifndef SPARSESEL_PLAN_BINDING_H_
#define SPARSESEL_PLAN_BINDING_H_

#include <memory>
#include <string>

#include "contract/status.h"
#include "sparsesel.h"

namespace sparsesel {

class Workspace;

class Binding {
 public:
  ~Binding();

  // `invalid`: what was found wrong with the arguments before the call (then `io` is zero); the
  // call takes part all the same, so that the peers hear of it instead of waiting.
  Status Execute(const sparsesel_io& io, void* stream, const Status& invalid);
  Status Stats(sparsesel_stats* stats) const;
  Status ToJson(std::string* json) const;

  Workspace& workspace();

  struct State;
  explicit Binding(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_BINDING_H_
