#pragma once

// Planted faults test the tests: the program `planted` (tests/planted) is built with all of them
// and turns one on. The library has the normal expressions alone.

#ifdef HONE_PLANTED

namespace hone {

enum class Fault {
  none,
#define HONE_FAULT(name, doc) name,
#include "base/planted.def"
};
extern Fault planted;  // set before anything is compiled

}  // namespace hone

#define HONE_PLANT(fault, normal, faulty) \
  (::hone::planted == ::hone::Fault::fault ? (faulty) : (normal))

#else
#define HONE_PLANT(fault, normal, faulty) (normal)
#endif
