#include "tool/table.h"

#include <algorithm>
#include <utility>

namespace sparsesel_tool {
namespace {

std::string Fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

}  // namespace

void Table::AddColumn(std::string title, Align align) {
  const size_t width = title.size();
  columns_.push_back({std::move(title), align, width});
}

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    columns_[i].width = std::max(columns_[i].width, cells[i].size());
  }
  rows_.push_back(std::move(cells));
}

std::string Table::ToString() const {
  std::string text;
  const auto line = [&](auto cell_of) {
    std::string out;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string padding(columns_[i].width - cell.size(), ' ');
      if (i > 0) out += "  ";
      out += columns_[i].align == Align::kLeft ? cell + padding : padding + cell;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  line([&](size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) line([&](size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string Microseconds(double nanoseconds) { return Fixed(nanoseconds / 1000.0, 1); }

std::string Ratio(double value) { return Fixed(value, 2); }

}  // namespace sparsesel_tool
