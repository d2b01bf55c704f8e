#include "merkle.hpp"

#include <cstdlib>

#include "timing.hpp"

namespace merkle {

using persistent_tree::Branch;
using persistent_tree::Leaf;
using persistent_tree::Node;
using sha256::Digest;

// Pairs per call of the hash function: large enough that timing each call costs nothing, small enough for the L2 cache.
constexpr std::size_t kBatchPairs = 1024;
constexpr unsigned kLeafChunkDepth = 2;   // a leaf holds 2**2 chunks
constexpr unsigned kListChunkDepth = 38;  // 2**40 values of 8 bytes in chunks of 32

struct WithSha256 {
    static constexpr bool keeps_roots = true;

    static void hash_pairs(Digest* out, const Digest* in, std::size_t pairs) {
        const timing::Section section(timing::sha256);
        sha256::hash_pairs(out, in, pairs);
    }
};

struct WithMixing {
    static constexpr bool keeps_roots = false;

    static void hash_pairs(Digest* out, const Digest* in, std::size_t pairs) {
        for (std::size_t i = 0; i < pairs; ++i) {
            const std::uint64_t* words = in[2 * i].words;
            std::uint64_t mixed = words[0];
            for (unsigned k = 0; k < 8; ++k) {
                mixed = (mixed ^ words[k]) * 0x9e3779b97f4a7c15u;
                out[i].words[k / 2] = mixed ^ (mixed >> 29);
            }
        }
    }
};

template <class Hasher>
static void hash_node_collect(Node* node, unsigned depth, Workspace& workspace) {
    if (node == nullptr || (Hasher::keeps_roots && node->has_root)) return;
    if (!node->is_leaf) {
        Branch* branch = static_cast<Branch*>(node);
        hash_node_collect<Hasher>(branch->left, depth - 1, workspace);
        hash_node_collect<Hasher>(branch->right, depth - 1, workspace);
    }
    workspace.nodes[depth][workspace.counts[depth]++] = node;
}

template <class Hasher>
static void hash_node_leaves(Node** nodes, std::size_t count, Workspace& workspace) {
    constexpr std::size_t chunks = std::size_t{1} << kLeafChunkDepth;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t* values = static_cast<const Leaf*>(nodes[i])->values.at;
        for (std::size_t k = 0; k < chunks; ++k) {
            workspace.inputs[chunks * i + k] = Digest{{values[4 * k], values[4 * k + 1], values[4 * k + 2], values[4 * k + 3]}};
        }
    }
    Hasher::hash_pairs(workspace.outputs, workspace.inputs, count * chunks / 2);
    Hasher::hash_pairs(workspace.inputs, workspace.outputs, count * chunks / 4);
    for (std::size_t i = 0; i < count; ++i) nodes[i]->root = workspace.inputs[i];
}

template <class Hasher>
static void hash_node_branches(Node** nodes, std::size_t count, unsigned depth, Workspace& workspace) {
    for (std::size_t i = 0; i < count; ++i) {
        const Branch* branch = static_cast<const Branch*>(nodes[i]);
        workspace.inputs[2 * i] = branch->left->root;
        workspace.inputs[2 * i + 1] = branch->right != nullptr ? branch->right->root : zero_hash(depth - 1 + kLeafChunkDepth);
    }
    Hasher::hash_pairs(workspace.outputs, workspace.inputs, count);
    for (std::size_t i = 0; i < count; ++i) nodes[i]->root = workspace.outputs[i];
}

template <class Hasher>
static void hash_node_level(unsigned depth, Workspace& workspace) {
    constexpr std::size_t batch = kBatchPairs / 2;  // a leaf takes two pairs at once
    Node** nodes = workspace.nodes[depth];
    for (std::size_t first = 0; first < workspace.counts[depth]; first += batch) {
        const std::size_t left = workspace.counts[depth] - first;
        const std::size_t count = left < batch ? left : batch;
        if (depth == 0) {
            hash_node_leaves<Hasher>(nodes + first, count, workspace);
        } else {
            hash_node_branches<Hasher>(nodes + first, count, depth, workspace);
        }
        for (std::size_t i = first; i < first + count; ++i) nodes[i]->has_root = Hasher::keeps_roots;
    }
}

// Mixes the root of the part that exists with zeros up to the list's limit, then with the list's length.
template <class Hasher>
static Digest hash_node_list(const Digest& root, unsigned chunk_depth, std::size_t size) {
    Digest pair[2] = {root, {}};
    for (unsigned depth = chunk_depth; depth < kListChunkDepth; ++depth) {
        pair[1] = zero_hash(depth);
        Digest above;
        Hasher::hash_pairs(&above, pair, 1);
        pair[0] = above;
    }
    pair[1] = Digest{{size, 0, 0, 0}};
    Digest result;
    Hasher::hash_pairs(&result, pair, 1);
    return result;
}

template <class Hasher>
static Digest hash_node_root(const persistent_tree::Tree& tree, Workspace& workspace) {
    for (unsigned depth = 0; depth <= tree.depth(); ++depth) workspace.counts[depth] = 0;
    hash_node_collect<Hasher>(tree.root(), tree.depth(), workspace);
    for (unsigned depth = 0; depth <= tree.depth(); ++depth) hash_node_level<Hasher>(depth, workspace);
    const unsigned chunk_depth = tree.depth() + kLeafChunkDepth;
    const Digest& root = tree.root() != nullptr ? tree.root()->root : zero_hash(chunk_depth);
    return hash_node_list<Hasher>(root, chunk_depth, tree.size());
}

static void* checked_allocation(std::size_t bytes) {
    void* memory = std::calloc(bytes, 1);
    if (memory == nullptr) std::abort();
    return memory;
}

Workspace::Workspace(unsigned depth) : depth_(depth) {
    for (unsigned level = 0; level <= depth; ++level) {
        nodes[level] = static_cast<Node**>(checked_allocation((std::size_t{1} << (depth - level)) * sizeof(Node*)));
        counts[level] = 0;
    }
    inputs = static_cast<Digest*>(checked_allocation(2 * kBatchPairs * sizeof(Digest)));
    outputs = static_cast<Digest*>(checked_allocation(kBatchPairs * sizeof(Digest)));
}

Workspace::~Workspace() {
    for (unsigned level = 0; level <= depth_; ++level) std::free(nodes[level]);
    std::free(inputs);
    std::free(outputs);
}

Digest hash_tree_root(const persistent_tree::Tree& tree, Workspace& workspace) {
    return hash_node_root<WithSha256>(tree, workspace);
}

Digest hash_tree_root_without_sha256(const persistent_tree::Tree& tree, Workspace& workspace) {
    return hash_node_root<WithMixing>(tree, workspace);
}

}  // namespace merkle
