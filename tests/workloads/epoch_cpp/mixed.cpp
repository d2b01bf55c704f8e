#include "mixed.hpp"

#include <array>
#include <vector>

#include "merkle.hpp"
#include "output.hpp"
#include "persistent_tree.hpp"
#include "phase.hpp"
#include "setup.hpp"
#include "shuffling.hpp"
#include "timing.hpp"

namespace mixed {
namespace {

using persistent_tree::Tree;

constexpr unsigned kActivePercent = 30;

}  // namespace

// What lives from epoch to epoch, and the epoch's scratch memory.
struct State {
    explicit State(const options::Options& options);

    options::Options options;
    setup::RegistryData registry;
    setup::RegistryData before;
    Tree balances;
    Tree inactivity_scores;
    merkle::Workspace workspace;
    std::vector<std::uint32_t> committee;
    std::vector<sha256::Digest> sources;
    sha256::Digest root{};
};

State::State(const options::Options& the_options)
    : options(the_options),
      registry(the_options.validators),
      before(the_options.validators),
      workspace([&] {
          unsigned depth = 0;
          while ((persistent_tree::kLeafValues << depth) < the_options.validators) ++depth;
          return depth;
      }()),
      sources(shuffling::kRounds * shuffling::hashes_per_round(the_options.validators)) {
    random_numbers::Generator generator(options.seed);
    setup::fill_registry(registry.view(), generator);
    persistent_tree::set_allocation(persistent_tree::Allocation::heap);
    balances = persistent_tree::build(registry.view().balances, options.validators);
    inactivity_scores = persistent_tree::build(registry.view().inactivity_scores, options.validators);
}

}  // namespace mixed

namespace phase {

NOINLINE void iterate(mixed::State& state) {
    for (unsigned i = 0; i < state.options.repeat[options::kIterate]; ++i) {
        persistent_tree::iterate(state.balances, state.registry.view().balances);
        persistent_tree::iterate(state.inactivity_scores, state.registry.view().inactivity_scores);
    }
    STAY_ON_STACK();
}

NOINLINE void epoch(mixed::State& state) {
    const epoch_processing::Registry& registry = state.registry.view();
    for (unsigned i = 0; i < state.options.repeat[options::kCopy]; ++i) {
        epoch_processing::process_state_copy(state.before.view(), registry);
    }
    for (unsigned i = 0; i < state.options.repeat[options::kEpoch]; ++i) {
        const epoch_processing::Totals totals = epoch_processing::process_totals(registry);
        epoch_processing::process_inactivity(registry, totals);
        epoch_processing::process_rewards(registry, totals);
        epoch_processing::process_effective_balances(registry);
    }
    STAY_ON_STACK();
}

NOINLINE void update(mixed::State& state) {
    const epoch_processing::Registry& before = state.before.view();
    const epoch_processing::Registry& after = state.registry.view();
    state.balances = persistent_tree::with_changes(state.balances, before.balances, after.balances);
    state.inactivity_scores =
        persistent_tree::with_changes(state.inactivity_scores, before.inactivity_scores, after.inactivity_scores);
    STAY_ON_STACK();
}

NOINLINE void hash(mixed::State& state) {
    const sha256::Digest balances = merkle::hash_tree_root(state.balances, state.workspace);
    const sha256::Digest scores = merkle::hash_tree_root(state.inactivity_scores, state.workspace);
    state.root = ::sha256::hash_pair(balances, scores);
    STAY_ON_STACK();
}

NOINLINE void shuffle(mixed::State& state) {
    shuffling::shuffle_list(state.committee.data(), state.committee.size(), state.root, state.sources.data());
    STAY_ON_STACK();
}

}  // namespace phase

namespace mixed {
namespace {

using PhaseFunction = void (*)(State&);

struct TimedPhase {
    options::Phase phase;
    PhaseFunction function;
};

constexpr TimedPhase kTimedPhases[] = {
    {options::kIterate, phase::iterate}, {options::kEpoch, phase::epoch},     {options::kUpdate, phase::update},
    {options::kHash, phase::hash},       {options::kShuffle, phase::shuffle},
};

// Time of each phase without the SHA-256 below it, and that of SHA-256 in its own place.
using PhaseTimes = std::array<std::uint64_t, options::kPhases>;

void run_epoch(State& state, PhaseTimes& cpu_ns) {
    for (const TimedPhase& timed : kTimedPhases) {
        const std::uint64_t hashing_before = timing::sha256.cpu_ns;
        const std::uint64_t before = timing::thread_cpu_ns();
        timed.function(state);
        const std::uint64_t spent = timing::thread_cpu_ns() - before;
        const std::uint64_t hashing = timing::sha256.cpu_ns - hashing_before;
        cpu_ns[timed.phase] += spent - hashing;
        cpu_ns[options::kSha256] += hashing;
    }
}

}  // namespace

void run(const options::Options& options) {
    State state(options);
    random_numbers::Generator generator(options.seed + 1);
    PhaseTimes cpu_ns{};
    for (unsigned epoch = 0; epoch < options.epochs; ++epoch) {
        setup::draw_flags(state.registry.view(), kActivePercent, generator);
        state.committee = setup::active_indices(state.registry.view());
        const std::uint64_t started = timing::wall_ns();
        run_epoch(state, cpu_ns);
        output::epoch(timing::wall_ns() - started);
    }

    std::uint64_t total = 0;
    for (std::size_t i = 0; i < options::kPhases; ++i) {
        if (cpu_ns[i] == 0) continue;
        output::phase(static_cast<options::Phase>(i), cpu_ns[i]);
        total += cpu_ns[i];
    }
    output::total(total, state.root);
}

}  // namespace mixed
