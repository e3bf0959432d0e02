// What a call inside the library returns: the public status with its sentence, in fixed memory, so
// that failing never allocates.
#ifndef SPARSESEL_CONTRACT_STATUS_H_
#define SPARSESEL_CONTRACT_STATUS_H_

#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"
#include "sparsesel.h"

namespace sparsesel {

class [[nodiscard]] Status {
 public:
  static constexpr int kTextBytes = 240;

  Status() { text_[0] = '\0'; }  // OK

  // A failure with a formatted sentence (cut to kTextBytes); says the offending value.
  template <typename... Args>
  static Status Error(sparsesel_status code, const absl::FormatSpec<Args...>& format,
                      const Args&... args) {
    Status status;
    status.code_ = code;
    absl::SNPrintF(status.text_, kTextBytes, format, args...);
    return status;
  }

  Status&& WithRank(int32_t rank) && {
    rank_ = rank;
    return std::move(*this);
  }
  Status&& WithBackendCode(int32_t code) && {
    backend_code_ = code;
    return std::move(*this);
  }

  bool ok() const { return code_ == SPARSESEL_OK; }
  sparsesel_status code() const { return code_; }
  int32_t rank() const { return rank_; }  // at fault, or -1
  int32_t backend_code() const { return backend_code_; }
  const char* text() const { return text_; }

 private:
  sparsesel_status code_ = SPARSESEL_OK;
  int32_t rank_ = -1;
  int32_t backend_code_ = 0;
  char text_[kTextBytes];
};

}  // namespace sparsesel

#define SPARSESEL_RETURN_IF_ERROR(expression)                                      \
  do {                                                                             \
    if (::sparsesel::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#endif  // SPARSESEL_CONTRACT_STATUS_H_
