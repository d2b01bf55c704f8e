#include "pure.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "merkle.hpp"
#include "output.hpp"
#include "persistent_tree.hpp"
#include "phase.hpp"
#include "setup.hpp"
#include "shuffling.hpp"
#include "timing.hpp"

namespace pure {
namespace {

using persistent_tree::Tree;
using persistent_tree::Update;

constexpr std::size_t kUpdateLists = 8;
constexpr std::size_t kValidatorsPerUpdate = 16;
constexpr std::size_t kPairs = 1024;
constexpr std::size_t kAllocations = 8192;

}  // namespace

// Everything that the phases work on.
struct Work {
    explicit Work(const options::Options& options);

    setup::RegistryData registry;
    setup::RegistryData copy;
    Tree tree;
    merkle::Workspace workspace;
    std::vector<std::uint64_t> values;
    std::array<std::vector<Update>, kUpdateLists> updates;
    std::vector<sha256::Digest> hash_inputs;
    std::vector<sha256::Digest> hash_outputs;
    std::vector<std::uint32_t> list;
    std::vector<sha256::Digest> round_sources;
    std::vector<shuffling::RoundHashes> rounds;
    std::vector<std::size_t> sizes;
    std::vector<std::uint32_t> free_order;
    std::vector<void*> blocks;
    sha256::Digest tree_root{};
};

namespace {

std::vector<Update> make_updates(std::size_t validators, random_numbers::Generator& generator) {
    std::vector<Update> updates(validators / kValidatorsPerUpdate);
    for (Update& update : updates) update = {generator.below(validators), generator.next()};
    std::sort(updates.begin(), updates.end(), [](const Update& a, const Update& b) { return a.index < b.index; });
    return updates;
}

void make_shuffling(Work& work, std::size_t validators, random_numbers::Generator& generator) {
    const std::size_t hashes = shuffling::hashes_per_round(validators);
    const sha256::Digest seed{{generator.next(), generator.next(), generator.next(), generator.next()}};
    work.round_sources.resize(hashes * shuffling::kRounds);
    work.rounds.resize(shuffling::kRounds);
    shuffling::compute_round_hashes(seed, validators, work.rounds.data(), work.round_sources.data());
    work.list.resize(validators);
    for (std::size_t i = 0; i < validators; ++i) work.list[i] = static_cast<std::uint32_t>(i);
}

void make_allocations(Work& work, random_numbers::Generator& generator) {
    for (std::size_t i = 0; i < kAllocations; ++i) {
        work.sizes.push_back(16 + generator.below(4096));
        work.free_order.push_back(static_cast<std::uint32_t>(i));
    }
    for (std::size_t i = kAllocations - 1; i > 0; --i) std::swap(work.free_order[i], work.free_order[generator.below(i + 1)]);
    work.blocks.resize(kAllocations);
}

unsigned tree_depth(std::size_t validators) {
    unsigned depth = 0;
    while ((persistent_tree::kLeafValues << depth) < validators) ++depth;
    return depth;
}

}  // namespace

Work::Work(const options::Options& options)
    : registry(options.validators),
      copy(options.validators),
      workspace(tree_depth(options.validators)),
      values(options.validators),
      hash_inputs(2 * kPairs),
      hash_outputs(kPairs) {
    random_numbers::Generator generator(options.seed);
    setup::fill_registry(registry.view(), generator);
    persistent_tree::set_allocation(persistent_tree::Allocation::pool);
    persistent_tree::reserve_pool(options.validators / 4);
    tree = persistent_tree::build(registry.view().balances, options.validators);
    for (std::vector<Update>& update_list : updates) update_list = make_updates(options.validators, generator);
    for (sha256::Digest& input : hash_inputs) input = {{generator.next(), generator.next(), generator.next(), 0}};
    make_shuffling(*this, options.validators, generator);
    make_allocations(*this, generator);
}

}  // namespace pure

namespace phase {

NOINLINE void iterate(pure::Work& work, unsigned repeat) {
    for (unsigned i = 0; i < repeat; ++i) persistent_tree::iterate(work.tree, work.values.data());
    STAY_ON_STACK();
}

NOINLINE void update(pure::Work& work, unsigned repeat) {
    for (unsigned i = 0; i < repeat; ++i) {
        const std::vector<persistent_tree::Update>& updates = work.updates[i % pure::kUpdateLists];
        work.tree = persistent_tree::with_updated(work.tree, updates.data(), updates.size());
    }
    STAY_ON_STACK();
}

NOINLINE void hash(pure::Work& work, unsigned repeat) {
    for (unsigned i = 0; i < repeat; ++i) work.tree_root = merkle::hash_tree_root_without_sha256(work.tree, work.workspace);
    STAY_ON_STACK();
}

NOINLINE void sha256(pure::Work& work, unsigned repeat) {
    for (unsigned i = 0; i < repeat; ++i) {
        ::sha256::hash_pairs(work.hash_outputs.data(), work.hash_inputs.data(), pure::kPairs);
        work.hash_inputs[i % (2 * pure::kPairs)] = work.hash_outputs[i % pure::kPairs];
    }
    STAY_ON_STACK();
}

NOINLINE void shuffle(pure::Work& work, unsigned repeat) {
    for (unsigned i = 0; i < repeat; ++i) {
        shuffling::shuffle_list_with_hashes(work.list.data(), work.list.size(), work.rounds.data());
    }
    STAY_ON_STACK();
}

NOINLINE void copy(pure::Work& work, unsigned repeat) {
    for (unsigned i = 0; i < repeat; ++i) epoch_processing::process_state_copy(work.copy.view(), work.registry.view());
    STAY_ON_STACK();
}

NOINLINE void allocate(pure::Work& work, unsigned repeat) {
    void** const blocks = work.blocks.data();
    const std::size_t* const sizes = work.sizes.data();
    const std::uint32_t* const order = work.free_order.data();
    for (unsigned i = 0; i < repeat; ++i) {
        for (std::size_t k = 0; k < pure::kAllocations; ++k) blocks[k] = std::malloc(sizes[k]);
        for (std::size_t k = 0; k < pure::kAllocations; ++k) std::free(blocks[order[k]]);
    }
    STAY_ON_STACK();
}

NOINLINE void epoch(pure::Work& work, unsigned repeat) {
    const epoch_processing::Registry& registry = work.registry.view();
    for (unsigned i = 0; i < repeat; ++i) {
        const epoch_processing::Totals totals = epoch_processing::process_totals(registry);
        epoch_processing::process_inactivity(registry, totals);
        epoch_processing::process_rewards(registry, totals);
        epoch_processing::process_effective_balances(registry);
    }
    STAY_ON_STACK();
}

using PhaseFunction = void (*)(pure::Work&, unsigned);

// In the order of options::Phase.
static constexpr std::array<PhaseFunction, options::kPhases> kFunctions = {iterate, update, hash,     sha256,
                                                                           shuffle, copy,   allocate, epoch};

// One epoch: all phases in turn. Frame-pointer stacks of malloc do not show who called it; with this function around all phases
// there is no time between them that could be taken for the end of the one before and hide the start of the next.
NOINLINE static void all(pure::Work& work, const std::array<unsigned, options::kPhases>& repeat,
                         std::array<std::uint64_t, options::kPhases>& cpu_ns) {
    for (std::size_t i = 0; i < options::kPhases; ++i) {
        const std::uint64_t before = timing::thread_cpu_ns();
        kFunctions[i](work, repeat[i]);
        cpu_ns[i] += timing::thread_cpu_ns() - before;
    }
    STAY_ON_STACK();
}

}  // namespace phase

namespace pure {

// Touches the memory that the phases use, outside of them.
static void warm_up(Work& work) {
    work.tree_root = merkle::hash_tree_root_without_sha256(work.tree, work.workspace);
    epoch_processing::process_state_copy(work.copy.view(), work.registry.view());
    for (std::size_t k = 0; k < kAllocations; ++k) {
        work.blocks[k] = std::calloc(work.sizes[k], 1);
        if (work.blocks[k] == nullptr) std::abort();
    }
    for (void* block : work.blocks) std::free(block);
}

void run(const options::Options& options) {
    setup::keep_freed_memory();
    Work work(options);
    warm_up(work);

    std::array<std::uint64_t, options::kPhases> cpu_ns{};
    for (unsigned epoch = 0; epoch < options.epochs; ++epoch) {
        const std::uint64_t started = timing::wall_ns();
        phase::all(work, options.repeat, cpu_ns);
        output::epoch(timing::wall_ns() - started);
    }

    std::uint64_t total = 0;
    for (std::size_t i = 0; i < options::kPhases; ++i) {
        output::phase(static_cast<options::Phase>(i), cpu_ns[i]);
        total += cpu_ns[i];
    }
    output::total(total, sha256::hash_pair(work.tree_root, work.hash_outputs[0]));
}

}  // namespace pure
