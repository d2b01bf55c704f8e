//! The list: a tree, and changes that are not in it yet.

use crate::iter::Iter;
use crate::tree::{Tree, VALUES_PER_LEAF};
use ssz::{Decode, DecodeError, Encode};
use std::sync::Arc;
use tree_hash::{Hash256, PackedEncoding, TreeHash, TreeHashType};

/// Depth of a list with room for 2^40 values, four in each leaf.
const DEPTH: usize = 38;

#[derive(Clone, Debug)]
pub struct List {
    tree: Arc<Tree>,
    length: usize,
    /// Ascending by index.
    updates: Vec<(usize, u64)>,
}

impl List {
    pub fn new(values: &[u64]) -> Self {
        Self { tree: Tree::build(values, DEPTH), length: values.len(), updates: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The values without pending changes.
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.tree, self.length)
    }

    /// Notes a change.  Changes come in the order of their indices; `index` may be one behind the last value.
    pub fn set(&mut self, index: usize, value: u64) {
        debug_assert!(self.updates.last().is_none_or(|(last, _)| *last < index));
        self.updates.push((index, value));
        self.length = self.length.max(index + 1);
    }

    pub fn apply_updates(&mut self) {
        let updates = std::mem::take(&mut self.updates);
        self.tree = self.tree.with_updated_leaves(&updates, 0, DEPTH);
    }
}

impl TreeHash for List {
    fn tree_hash_type() -> TreeHashType {
        TreeHashType::List
    }

    fn tree_hash_packed_encoding(&self) -> PackedEncoding {
        unreachable!("a list is never packed")
    }

    fn tree_hash_packing_factor() -> usize {
        unreachable!("a list is never packed")
    }

    fn tree_hash_root(&self) -> Hash256 {
        assert!(self.updates.is_empty());
        tree_hash::mix_in_length(&self.tree.tree_hash(DEPTH), self.length)
    }
}

impl Encode for List {
    fn is_ssz_fixed_len() -> bool {
        false
    }

    fn ssz_bytes_len(&self) -> usize {
        self.length * 8
    }

    fn ssz_append(&self, buf: &mut Vec<u8>) {
        for value in self.iter() {
            value.ssz_append(buf);
        }
    }
}

impl Decode for List {
    fn is_ssz_fixed_len() -> bool {
        false
    }

    fn from_ssz_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let chunks = bytes.chunks_exact(8);
        if !chunks.remainder().is_empty() {
            return Err(DecodeError::BytesInvalid("a list of u64 has a length that is no multiple of 8".into()));
        }
        let values = chunks.map(u64::from_ssz_bytes).collect::<Result<Vec<u64>, _>>()?;
        Ok(Self::new(&values))
    }
}

const _: () = assert!(VALUES_PER_LEAF * 8 == tree_hash::BYTES_PER_CHUNK);
