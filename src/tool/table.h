// A table of text in aligned columns.
#ifndef SPARSESEL_TOOL_TABLE_H_
#define SPARSESEL_TOOL_TABLE_H_

#include <cstdio>
#include <string>
#include <vector>

namespace sparsesel_tool {

class Table {
 public:
  enum class Align { kLeft, kRight };

  void AddColumn(std::string title, Align align);
  void AddRow(std::vector<std::string> cells);  // missing ones are empty
  std::string ToString() const;

 private:
  struct Column {
    std::string title;
    Align align;
    size_t width;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "12.3" for 12345 ns.
std::string Microseconds(double nanoseconds);
std::string Ratio(double value);  // two decimals

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_TABLE_H_
