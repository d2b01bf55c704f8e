// Pure mode: every timed phase does the work of one category, so that the phase's timer is the category's true cost.
#pragma once

#include "options.hpp"

namespace pure {

void run(const options::Options& options);

}  // namespace pure
