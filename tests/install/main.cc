// A user of the installed library.
#include <base/error.h>

#include <cstdio>

hone::Result<int> parse_batch(int n) {
  if (n < 1) return hone::bad_input("batch {} is below 1", n).within("the command line");
  return n;
}

hone::Status check(int n) {
  int batch = HONE_TRY(parse_batch(n));
  std::printf("batch %d\n", batch);
  return {};
}

int main() {
  hone::Status bad = check(0);
  std::printf("%s\n", bad.ok() ? "no error" : bad.error().to_string().c_str());
  return check(8).ok() && !bad.ok() ? 0 : 1;
}
