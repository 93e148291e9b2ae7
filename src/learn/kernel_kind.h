#pragma once

#include "kernel/kernel_kind.h"
