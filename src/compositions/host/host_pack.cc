#include <algorithm>

#include "compositions/host/host_run.h"
#include "stages/host/pack.h"

namespace sparsesel {

Status PackTile(HostRun& run) {
  const sparsesel_io& io = run.call.io;
  const PackInput input{io.scores, io.ids, io.counts, io.row_starts, io.score_stride, io.id_stride};
  const Problem& problem = run.job.problem;
  const HostChoices& choices = run.choices;
  const auto length = static_cast<size_t>(problem.candidates);
  int64_t slot = 0;
  for (int32_t owner = 0; owner < run.job.world; ++owner) {
    const RowRange rows = run.rows[static_cast<size_t>(owner)];
    for (int32_t row = rows.begin; row < rows.end; ++row, ++slot) {
      Record* const first = run.At<Record>(run.layout.send) + slot * choices.prefix;
      Record* const packed = choices.rest > 0 ? run.At<Record>(run.layout.row) : first;
      SPARSESEL_RETURN_IF_ERROR(PackRow(problem, input, row, packed));
      if (choices.sorts) {
        SortList({packed, length}, choices.pack_top, run.Bytes(run.layout.sort_scratch));
      }
      if (choices.rest > 0) {
        const size_t sent = std::min(length, static_cast<size_t>(choices.prefix));
        std::copy(packed, packed + sent, first);
        std::copy(packed + sent, packed + length,
                  run.At<Record>(run.layout.send_rest) + slot * choices.rest);
      }
    }
  }
  return {};
}

}  // namespace sparsesel
