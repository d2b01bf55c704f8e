// A persistent list of 64-bit values: a binary tree whose nodes are shared between versions and counted.
//
// Changing part of a list copies the paths to the changed leaves and shares everything else with the old version. A leaf packs
// sixteen values, which is four 32-byte chunks of the SSZ serialization.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sha256.hpp"

namespace persistent_tree {

inline constexpr unsigned kLeafDepth = 4;
inline constexpr std::size_t kLeafValues = std::size_t{1} << kLeafDepth;
inline constexpr unsigned kMaximumDepth = 40;

struct Node {
    std::uint32_t references;
    bool is_leaf;
    bool has_root;  // `root` holds the node's hash tree root
    sha256::Digest root;
};

struct Branch : Node {
    Node* left;
    Node* right;  // null: nothing but zeros
};

struct Values {
    std::uint64_t at[kLeafValues];
};

struct Leaf : Node {
    Values values;
};

struct Update {
    std::uint64_t index;
    std::uint64_t value;
};

// Where nodes come from. `pool` never calls the library; `heap` takes each node from malloc and copies with memmove, as programs
// do.
enum class Allocation { pool, heap };
void set_allocation(Allocation allocation);

// Makes room for this many nodes of each kind in the pool and touches it, so that later use takes no page faults.
void reserve_pool(std::size_t nodes);

// One version of a list. Copies are cheap: they share all nodes.
class Tree {
public:
    Tree() = default;
    Tree(Node* root, unsigned depth, std::size_t size) : root_(root), depth_(depth), size_(size) {}
    Tree(const Tree& other);
    Tree(Tree&& other) noexcept;
    Tree& operator=(Tree other) noexcept;
    ~Tree();

    Node* root() const { return root_; }
    unsigned depth() const { return depth_; }  // levels of branches above the leaves
    std::size_t size() const { return size_; }

private:
    Node* root_ = nullptr;
    unsigned depth_ = 0;
    std::size_t size_ = 0;
};

Tree build(const std::uint64_t* values, std::size_t count);

// `updates` sorted by index, at least one, all below the list's size.
Tree with_updated(const Tree& tree, const Update* updates, std::size_t count);

// The places where two arrays of `count` values differ, as updates from the first to the second.
struct UpdateList {
    Update* updates;  // malloc
    std::size_t count;
};
UpdateList update_list(const std::uint64_t* before, const std::uint64_t* after, std::size_t count);

// The list that held `before`, with the values of `after`.
Tree with_changes(const Tree& tree, const std::uint64_t* before, const std::uint64_t* after);

std::uint64_t get(const Tree& tree, std::uint64_t index);

// Visits the values in order.
class Iterator {
public:
    explicit Iterator(const Tree& tree);
    // The next leaf and how many of its values belong to the list; null at the end.
    const std::uint64_t* next(std::size_t* count);

private:
    const Node* pending_[kMaximumDepth];
    std::size_t pending_count_ = 0;
    std::size_t remaining_ = 0;
};

// Writes all values to `out`.
void iterate(const Tree& tree, std::uint64_t* out);

}  // namespace persistent_tree
