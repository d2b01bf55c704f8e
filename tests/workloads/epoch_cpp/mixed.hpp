// Mixed mode: whole epochs, with SHA-256 below tree hashing and shuffling, and memmove and malloc below their owners.
#pragma once

#include "options.hpp"

namespace mixed {

void run(const options::Options& options);

}  // namespace mixed
