//! A public key as bytes; nobody computes with it here.

use ssz_derive::{Decode, Encode};
use tree_hash::{Hash256, PackedEncoding, TreeHash, TreeHashType};

pub const PUBLIC_KEY_BYTES_LEN: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[ssz(struct_behaviour = "transparent")]
pub struct PublicKeyBytes(pub [u8; PUBLIC_KEY_BYTES_LEN]);

impl TreeHash for PublicKeyBytes {
    fn tree_hash_type() -> TreeHashType {
        TreeHashType::Vector
    }

    fn tree_hash_packed_encoding(&self) -> PackedEncoding {
        unreachable!("a vector is never packed")
    }

    fn tree_hash_packing_factor() -> usize {
        unreachable!("a vector is never packed")
    }

    fn tree_hash_root(&self) -> Hash256 {
        tree_hash::merkle_root(&self.0, PUBLIC_KEY_BYTES_LEN.div_ceil(tree_hash::BYTES_PER_CHUNK))
    }
}
