//! Nodes: four values in a leaf, two children in a branch.

use crate::hash_cell::HashCell;
use ethereum_hashing::{hash32_concat, ZERO_HASHES};
use std::sync::Arc;
use tree_hash::Hash256;

pub const VALUES_PER_LEAF: usize = 4;

/// Below this depth one thread hashes alone.
const SEQUENTIAL_DEPTH: usize = 7;

#[derive(Debug)]
pub enum Tree {
    Zero,
    Leaf { hash: HashCell, values: [u64; VALUES_PER_LEAF] },
    Branch { hash: HashCell, left: Arc<Tree>, right: Arc<Tree> },
}

impl Tree {
    pub fn branch(left: Arc<Tree>, right: Arc<Tree>) -> Arc<Tree> {
        Arc::new(Tree::Branch { hash: HashCell::default(), left, right })
    }

    pub fn leaf(values: [u64; VALUES_PER_LEAF]) -> Arc<Tree> {
        Arc::new(Tree::Leaf { hash: HashCell::default(), values })
    }

    /// A tree of 4 * 2^depth values of which the last ones are zero.
    pub fn build(values: &[u64], depth: usize) -> Arc<Tree> {
        if values.is_empty() {
            return Arc::new(Tree::Zero);
        }
        if depth == 0 {
            let mut padded = [0; VALUES_PER_LEAF];
            padded[..values.len()].copy_from_slice(values);
            return Tree::leaf(padded);
        }
        let half = (VALUES_PER_LEAF << (depth - 1)).min(values.len());
        Tree::branch(Tree::build(&values[..half], depth - 1), Tree::build(&values[half..], depth - 1))
    }

    /// A tree with other values at some places, which shares everything else.  `updates`: ascending indices, relative to the
    /// first value of the tree plus `first`.
    pub fn with_updated_leaves(self: &Arc<Tree>, updates: &[(usize, u64)], first: usize, depth: usize) -> Arc<Tree> {
        if updates.is_empty() {
            return self.clone();
        }
        if depth == 0 {
            return self.with_updated_values(updates, first);
        }
        let middle = first + (VALUES_PER_LEAF << (depth - 1));
        let (in_left, in_right) = updates.split_at(updates.partition_point(|(index, _)| *index < middle));
        let zero = Arc::new(Tree::Zero);
        let (left, right) = match &**self {
            Tree::Branch { left, right, .. } => (left, right),
            _ => (&zero, &zero),
        };
        Tree::branch(
            left.with_updated_leaves(in_left, first, depth - 1),
            right.with_updated_leaves(in_right, middle, depth - 1),
        )
    }

    fn with_updated_values(&self, updates: &[(usize, u64)], first: usize) -> Arc<Tree> {
        let mut changed = match self {
            Tree::Leaf { values, .. } => *values,
            _ => [0; VALUES_PER_LEAF],
        };
        for (index, value) in updates {
            changed[index - first] = *value;
        }
        Tree::leaf(changed)
    }

    pub fn tree_hash(&self, depth: usize) -> Hash256 {
        match self {
            Tree::Zero => Hash256::from(ZERO_HASHES[depth]),
            Tree::Leaf { hash, values } => hash.get_or_init(|| pack(values)),
            Tree::Branch { hash, left, right } => hash.get_or_init(|| {
                let (left, right) = if depth > SEQUENTIAL_DEPTH {
                    rayon::join(|| left.tree_hash(depth - 1), || right.tree_hash(depth - 1))
                } else {
                    (left.tree_hash(depth - 1), right.tree_hash(depth - 1))
                };
                Hash256::from(hash32_concat(left.as_slice(), right.as_slice()))
            }),
        }
    }
}

fn pack(values: &[u64; VALUES_PER_LEAF]) -> Hash256 {
    let mut chunk = [0; 32];
    for (bytes, value) in chunk.chunks_exact_mut(8).zip(values) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
    Hash256::from(chunk)
}
