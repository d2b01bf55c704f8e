//! The place of a node's hash.

use tree_hash::Hash256;

#[cfg(not(feature = "lock-free"))]
pub use locked::HashCell;

#[cfg(feature = "lock-free")]
pub use lock_free::HashCell;

#[cfg(not(feature = "lock-free"))]
mod locked {
    use super::Hash256;
    use parking_lot::RwLock;

    /// Zero stands for "not computed yet".
    #[derive(Debug, Default)]
    pub struct HashCell(RwLock<Hash256>);

    impl HashCell {
        pub fn get_or_init(&self, compute: impl FnOnce() -> Hash256) -> Hash256 {
            let existing = *self.0.read();
            if !existing.is_zero() {
                return existing;
            }
            let hash = compute();
            *self.0.write() = hash;
            hash
        }
    }
}

#[cfg(feature = "lock-free")]
mod lock_free {
    use super::Hash256;
    use std::sync::OnceLock;

    #[derive(Debug, Default)]
    pub struct HashCell(OnceLock<Hash256>);

    impl HashCell {
        /// Two threads may both compute; what the second one finds is the same.
        pub fn get_or_init(&self, compute: impl FnOnce() -> Hash256) -> Hash256 {
            if let Some(existing) = self.0.get() {
                return *existing;
            }
            let hash = compute();
            let _ = self.0.set(hash);
            hash
        }
    }
}
