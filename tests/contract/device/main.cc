// Catch2's main function for the tests on device groups: whatever is asked for, those that are
// about groups on host memory only are left out.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

int main(int argc, char** argv) {
  Catch::Session session;
  if (const int failed = session.applyCommandLine(argc, argv); failed != 0) return failed;
  std::vector<std::string>& wanted = session.configData().testsOrTags;
  if (wanted.empty()) wanted.emplace_back("~[.]");
  // What follows each other must all match, up to a comma, behind which an alternative begins.
  constexpr const char* kOnlyDevice = "~[host] ";
  for (std::string& specification : wanted) {
    for (size_t comma = specification.find(','); comma != std::string::npos;
         comma = specification.find(',', comma + 1)) {
      const bool escaped = comma > 0 && specification[comma - 1] == '\\';
      if (!escaped) specification.insert(comma + 1, kOnlyDevice);
    }
  }
  wanted.insert(wanted.begin(), kOnlyDevice);
  return session.run();
}
