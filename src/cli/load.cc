#include "cli/load.h"

#include <cstdlib>

namespace hone::cli {

double machine_load() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

}  // namespace hone::cli
