// epoch: a program with the cost profile of epoch processing in an Ethereum consensus client, and with timers of its own.

#include "mixed.hpp"
#include "options.hpp"
#include "output.hpp"
#include "pure.hpp"
#include "self_test.hpp"
#include "sha256.hpp"

int main(int argc, char** argv) {
    const options::Options options = options::parse(argc, argv);
    if (options.self_test) return self_test::run();
    if (options.force_portable) sha256::force_portable(true);
    if (options.vectors) {
        self_test::print_vectors();
        return 0;
    }
    output::header(options);
    if (options.mode == options::Mode::pure) {
        pure::run(options);
    } else {
        mixed::run(options);
    }
    return 0;
}
