#pragma once

#include "front/hlo/reader.h"
#include "tensor/type.h"

namespace hone::hlo {

// Devices in a grid, as HLO writes them:
//   [2,2]0,1,2,3          one after the other, row-major
//   [8]<=[8]              0 to 7
//   [4,2]<=[2,4]T(1,0)    0 to 7 in a grid of 2 x 4, whose dims change places
struct DeviceList {
  Ints dims = {};     // of the grid
  Ints source = {};   // behind <=; empty: they are listed
  Ints order = {};    // of the dims of `source`
  Ints devices = {};  // row-major in the grid
};

DeviceList read_device_list(Cursor& cursor);

}  // namespace hone::hlo
