// A user of the library that only loads and runs what was compiled.
#include <runtime/object_code.h>

int main() { return hone::ObjectCode::load({}).ok() ? 1 : 0; }
