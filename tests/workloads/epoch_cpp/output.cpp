#include "output.hpp"

#include <cstdio>
#include <ctime>

namespace output {

void header(const options::Options& options) {
    std::printf("{\"program\": \"epoch\", \"mode\": \"%s\", \"validators\": %zu, \"epochs\": %u, \"seed\": %llu, \"sha256\": \"%s\"}\n",
                options.mode == options::Mode::pure ? "pure" : "mixed", options.validators, options.epochs,
                static_cast<unsigned long long>(options.seed), sha256::backend_name());
}

void phase(options::Phase phase, std::uint64_t cpu_ns) {
    const options::PhaseName& name = options::kPhaseNames[phase];
    std::printf("{\"phase\": \"%s\", \"category\": \"%s\", \"cpu_ns\": %llu}\n", name.phase, name.category,
                static_cast<unsigned long long>(cpu_ns));
}

void epoch(std::uint64_t wall_ns) { std::printf("epoch: %.4fms\n", static_cast<double>(wall_ns) / 1e6); }

void total(std::uint64_t cpu_ns, const sha256::Digest& checksum) {
    timespec process{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &process);
    const auto process_ns = static_cast<long long>(process.tv_sec) * 1'000'000'000 + process.tv_nsec;
    std::printf("{\"phase\": \"total\", \"cpu_ns\": %llu, \"process_cpu_ns\": %lld, \"checksum\": \"",
                static_cast<unsigned long long>(cpu_ns), process_ns);
    for (unsigned i = 0; i < 32; ++i) std::printf("%02x", static_cast<unsigned>(checksum.words[i / 8] >> (8 * (i % 8))) & 0xff);
    std::printf("\"}\n");
}

}  // namespace output
