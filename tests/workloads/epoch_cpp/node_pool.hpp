// Allocation and counting of tree nodes.
#pragma once

#include "persistent_tree.hpp"

namespace persistent_tree {

Leaf* update_allocate_leaf();
Branch* update_allocate_branch();
void update_retain(Node* node);
void update_release(Node* node);
bool update_uses_heap();

}  // namespace persistent_tree
