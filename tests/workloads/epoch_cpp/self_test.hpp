// Checks of the workload itself against published vectors and plain definitions.
#pragma once

namespace self_test {

// Prints one line per check; returns the process's exit status, 0 when all hold.
int run();

// Prints one JSON object with results that other programs can check: the root of the list 0, 3, 6, ... of 100 values, and the
// shuffling of 0..99 with a seed of 32 bytes of 7.
void print_vectors();

}  // namespace self_test
