// Checks of the workload itself against published vectors and plain definitions.
#pragma once

namespace self_test {

// Prints one line per check; returns the process's exit status, 0 when all hold.
int run();

}  // namespace self_test
