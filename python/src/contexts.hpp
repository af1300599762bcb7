// Contexts of the calling threads.
#pragma once

#include "levelhead/attention.hpp"

namespace levelhead::python {

/// The calling thread's own context of so many threads (0: one per core), kept from call to call.
/// Throws Error if negative.
Context& context_of(int threads);

}  // namespace levelhead::python
