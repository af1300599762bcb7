// What the command shares with the Python package (callers/) needs no prefix inside the command.
#pragma once

namespace levelhead::callers {}

namespace levelhead::cli {
using namespace callers;
}
