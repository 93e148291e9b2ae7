#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/guard.h"
#include "cli/interruption.h"
