/* Says which library it found, and fails unless that is the one whose header it was compiled with.
 */
#include <sparsesel.h>
#include <stdio.h>

int main(void) {
  const uint32_t expected = ((uint32_t)SPARSESEL_VERSION_MAJOR << 16) |
                            ((uint32_t)SPARSESEL_VERSION_MINOR << 8) | SPARSESEL_VERSION_PATCH;
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  int32_t begin = -1;
  int32_t end = -1;
  printf("sparsesel %s\n", sparsesel_version_string());
  if (sparsesel_version() != expected) {
    return 1;
  }
  if (sparsesel_owned_rows(5, 2, 1, &begin, &end, &error) != SPARSESEL_OK) {
    puts(error.text);
    return 1;
  }
  return begin == 3 && end == 5 ? 0 : 1;
}
