//! From public key to index in the registry; clones share their nodes.

use crate::PublicKeyBytes;
use rpds::HashTrieMapSync;

#[derive(Clone, Debug, Default)]
pub struct PubkeyCache {
    len: usize,
    map: HashTrieMapSync<PublicKeyBytes, usize>,
}

impl PubkeyCache {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Enters the next validator, whose index is the number of those entered before.
    pub fn insert(&mut self, pubkey: PublicKeyBytes, index: usize) {
        debug_assert_eq!(index, self.len);
        self.map.insert_mut(pubkey, index);
        self.len += 1;
    }

    pub fn get(&self, pubkey: &PublicKeyBytes) -> Option<usize> {
        self.map.get(pubkey).copied()
    }
}
