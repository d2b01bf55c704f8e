#include "merkle.hpp"

namespace merkle {
namespace {

constexpr unsigned kDepths = 64;

struct ZeroHashes {
    sha256::Digest at[kDepths] = {};

    ZeroHashes() {
        for (unsigned depth = 1; depth < kDepths; ++depth) at[depth] = sha256::hash_pair(at[depth - 1], at[depth - 1]);
    }
};

}  // namespace

const sha256::Digest& zero_hash(unsigned depth) {
    static const ZeroHashes hashes;
    return hashes.at[depth];
}

}  // namespace merkle
