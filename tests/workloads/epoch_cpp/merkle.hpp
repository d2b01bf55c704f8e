// hash_tree_root of a persistent list, as SSZ defines it for List[uint64, 2**40].
#pragma once

#include <cstddef>
#include <cstdint>

#include "persistent_tree.hpp"
#include "sha256.hpp"

namespace merkle {

// Memory for hashing trees of up to `depth` levels of branches: the nodes to hash, level by level.
class Workspace {
public:
    explicit Workspace(unsigned depth);
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    persistent_tree::Node** nodes[persistent_tree::kMaximumDepth];
    std::size_t counts[persistent_tree::kMaximumDepth];
    sha256::Digest* inputs;
    sha256::Digest* outputs;

private:
    unsigned depth_;
};

// Hashes the nodes that have no root yet and keeps the roots in the nodes.
sha256::Digest hash_tree_root(const persistent_tree::Tree& tree, Workspace& workspace);

// The same walk over every node with a cheap mixing function in place of SHA-256: the tree's share of the work alone.
sha256::Digest hash_tree_root_without_sha256(const persistent_tree::Tree& tree, Workspace& workspace);

// Root of a subtree of zeros with 2**depth chunks.
const sha256::Digest& zero_hash(unsigned depth);

}  // namespace merkle
