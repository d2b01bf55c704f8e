#include "shuffling.hpp"

#include "shuffling_bits.hpp"
#include "timing.hpp"

namespace shuffling {

std::size_t hashes_per_round(std::size_t count) { return (count + kPositionsPerHash - 1) / kPositionsPerHash; }

static void compute_hashes_of_round(Message message, std::size_t count, RoundHashes& hashes, sha256::Digest* sources) {
    hashes.pivot = sha256::digest(message.bytes, Message::kPivotBytes).words[0] % count;
    hashes.sources = sources;
    for (std::size_t i = 0; i < hashes_per_round(count); ++i) {
        compute_set_position(message, static_cast<std::uint32_t>(i));
        sources[i] = sha256::digest(message.bytes, Message::kSourceBytes);
    }
}

void compute_round_hashes(const sha256::Digest& seed, std::size_t count, RoundHashes* rounds, sha256::Digest* sources) {
    const timing::Section section(timing::sha256);
    for (unsigned round = 0; round < kRounds; ++round) {
        compute_hashes_of_round(Message(seed, round), count, rounds[round], sources + round * hashes_per_round(count));
    }
}

// Positions up to the pivot mirror each other around its half, the rest around the middle between pivot and end; the bit of the
// greater position of a pair decides whether the two swap.
static void shuffle_list_round(std::uint32_t* list, std::size_t count, const RoundHashes& hashes) {
    compute_swaps(list, 0, hashes.pivot, hashes.sources);
    compute_swaps(list, hashes.pivot + 1, count - 1, hashes.sources);
}

void shuffle_list(std::uint32_t* list, std::size_t count, const sha256::Digest& seed, sha256::Digest* sources) {
    if (count == 0) return;
    RoundHashes rounds[kRounds];
    compute_round_hashes(seed, count, rounds, sources);
    shuffle_list_with_hashes(list, count, rounds);
}

void shuffle_list_with_hashes(std::uint32_t* list, std::size_t count, const RoundHashes* rounds) {
    if (count == 0) return;
    for (unsigned round = kRounds; round-- > 0;) shuffle_list_round(list, count, rounds[round]);
}

std::uint64_t compute_shuffled_index(std::uint64_t index, std::uint64_t count, const sha256::Digest& seed) {
    for (unsigned round = 0; round < kRounds; ++round) {
        Message message(seed, round);
        const std::uint64_t pivot = sha256::digest(message.bytes, Message::kPivotBytes).words[0] % count;
        const std::uint64_t flip = (pivot + count - index) % count;
        const std::uint64_t position = index > flip ? index : flip;
        compute_set_position(message, static_cast<std::uint32_t>(position / kPositionsPerHash));
        const sha256::Digest source = sha256::digest(message.bytes, Message::kSourceBytes);
        index = compute_bit(&source, position % kPositionsPerHash) ? flip : index;
    }
    return index;
}

}  // namespace shuffling
