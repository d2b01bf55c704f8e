//! Everything that the phases work on.

use milhouse::PackedLeaf;
use state_processing::per_epoch_processing::progressive_balances::compute_totals;
use state_processing::per_epoch_processing::single_pass::EpochContext;
use state_processing::Error;
use swap_or_not_shuffle::{sources_per_round, Source};
use types::beacon_state::pubkey_cache::PubkeyCache;
use types::{BeaconState, List, PublicKeyBytes, Validator};

const UPDATES: usize = 8192;
const LEAVES: usize = 4096;
const PIVOTS: usize = 2;
const SHUFFLED: usize = 1 << 18;
const COPIED_BYTES: usize = 1 << 18;
const BLOCKS: usize = 8192;
const NEW_KEYS: usize = 1024;
/// A prime: multiples of it modulo a power of two reach every place, in no simple order.
const STRIDE: usize = 7919;

pub struct Work {
    pub(crate) balances: List<u64>,
    pub(crate) changing: List<u64>,
    pub(crate) updates: Vec<(usize, u64)>,
    pub(crate) leaves: Vec<PackedLeaf<u64>>,
    pub(crate) indices: Vec<usize>,
    pub(crate) pivots: Vec<usize>,
    pub(crate) sources: Vec<Source>,
    pub(crate) validators: Vec<Validator>,
    pub(crate) participation: Vec<u8>,
    pub(crate) context: EpochContext,
    pub(crate) pubkey_cache: PubkeyCache,
    pub(crate) new_pubkeys: Vec<PublicKeyBytes>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) sizes: Vec<usize>,
    pub(crate) free_order: Vec<usize>,
    pub(crate) blocks: Vec<Vec<u8>>,
}

impl Work {
    /// From a state with its caches.
    pub fn new(state: &BeaconState) -> Result<Self, Error> {
        let mut seed = state.get_seed(state.current_epoch());
        let validators = state.balances.len();
        let mut sources = vec![[0; 32]; sources_per_round(SHUFFLED)];
        for source in &mut sources {
            seed = ethereum_hashing::hash_fixed(&seed);
            *source = seed;
        }
        Ok(Self {
            balances: state.balances.clone(),
            changing: state.balances.clone(),
            updates: (0..UPDATES).map(|place| (place * (validators / UPDATES).max(1) % validators, place as u64)).collect(),
            leaves: (0..LEAVES).map(|_| PackedLeaf::repeat(0, 4)).collect(),
            indices: (0..SHUFFLED).collect(),
            pivots: (1..=PIVOTS).map(|place| place * STRIDE % SHUFFLED).collect(),
            sources,
            validators: state.validators.to_vec(),
            participation: state.previous_epoch_participation.to_vec(),
            context: EpochContext::new(state, &compute_totals(state)?)?,
            pubkey_cache: state.pubkey_cache.clone(),
            new_pubkeys: (0..NEW_KEYS).map(|place| new_key(&seed, place)).collect(),
            bytes: vec![1; COPIED_BYTES],
            target: vec![2; COPIED_BYTES],
            sizes: (0..BLOCKS).map(|place| 16 + place * STRIDE % 4096).collect(),
            free_order: (0..BLOCKS).map(|place| place * STRIDE % BLOCKS).collect(),
            blocks: (0..BLOCKS).map(|_| Vec::new()).collect(),
        })
    }
}

fn new_key(seed: &[u8; 32], place: usize) -> PublicKeyBytes {
    let mut bytes = [0; 48];
    bytes[..32].copy_from_slice(seed);
    bytes[32..40].copy_from_slice(&place.to_le_bytes());
    PublicKeyBytes(bytes)
}
