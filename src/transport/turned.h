#pragma once

#include <cstdint>

#include "transport/collective.h"

// Collectives whose members all do the same, for callers that follow one of them for all.

namespace hone {

// True if all members do the same. The program of member i is that of member 0, with peers that are
// i members further on, around the end. Its parts are others, of the same sizes.
bool turns(const Collective& collective, const CollectiveSchedule& schedule);
// The program of the first member, without those of the others.
Result<DeviceProgram> first_program(const Collective& collective,
                                    const CollectiveSchedule& schedule);
// A bound of the messages of all members.
int64_t most_messages(const Collective& collective, const CollectiveSchedule& schedule);

}  // namespace hone
