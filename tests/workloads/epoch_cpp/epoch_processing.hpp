// Rewards, penalties and inactivity scores of one epoch over plain arrays, with the arithmetic of the Altair fork.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epoch_processing {

inline constexpr std::uint64_t kIncrement = 1'000'000'000;
inline constexpr std::uint64_t kMaximumEffectiveBalance = 32 * kIncrement;

enum Flag : std::uint8_t { kSource = 1, kTarget = 2, kHead = 4, kActive = 8 };

// The registry as arrays of `count` values each.
struct Registry {
    std::size_t count;
    std::uint64_t* balances;
    std::uint64_t* effective_balances;
    std::uint64_t* inactivity_scores;
    std::uint8_t* flags;
};

// Sums over the registry that every validator's reward depends on, in increments of kIncrement.
struct Totals {
    std::uint64_t active;
    std::uint64_t participating[3];
    std::uint64_t base_reward_per_increment;
    bool is_leak;
};

Totals process_totals(const Registry& registry);
void process_inactivity(const Registry& registry, const Totals& totals);
void process_rewards(const Registry& registry, const Totals& totals);
void process_effective_balances(const Registry& registry);

// Copies all arrays; memmove of the whole registry.
void process_state_copy(const Registry& to, const Registry& from);

}  // namespace epoch_processing
