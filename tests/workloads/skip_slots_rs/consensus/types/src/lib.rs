//! The state of a beacon chain (fields and limits of Altair, less what this program has no use for) and its caches.

pub mod beacon_state;
pub mod chain_spec;
pub mod checkpoint;
pub mod deposit;
pub mod public_key_bytes;
pub mod validator;

pub use beacon_state::{BeaconState, List, Vector};
pub use checkpoint::Checkpoint;
pub use deposit::PendingDeposit;
pub use public_key_bytes::PublicKeyBytes;
pub use tree_hash::Hash256;
pub use validator::Validator;

/// What can go wrong with a state.
#[derive(Debug)]
pub enum Error {
    Milhouse(milhouse::Error),
    Ssz(ssz::DecodeError),
    Shuffling,
    UnknownValidator(usize),
}

impl From<milhouse::Error> for Error {
    fn from(error: milhouse::Error) -> Self {
        Self::Milhouse(error)
    }
}

impl From<ssz::DecodeError> for Error {
    fn from(error: ssz::DecodeError) -> Self {
        Self::Ssz(error)
    }
}
