//! Phases of which each does the work of one category, so that the phase's timer is the category's true cost.
//!
//! What belongs to no category by itself (memory, hashing of keys) is either a phase of its own, or is done for the one
//! category that is the phase's.

mod work;

use milhouse::UpdateMap as _;
use phase_timer::{process_cpu_ns, Phase, PhaseTimer};
use ssz::{Decode as _, Encode as _};
use state_processing::per_epoch_processing::single_pass::process_validators;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::hint::black_box;
use types::beacon_state::UpdateMap;
use types::Validator;

pub use work::Work;

type PhaseFunction = fn(&mut Work);

const PHASES: [(Phase, PhaseFunction); 11] = [
    (Phase::TreeIteration, iterate),
    (Phase::TreeUpdate, update),
    (Phase::TreeHashing, hash),
    (Phase::Sha256, sha256),
    (Phase::Shuffling, shuffle),
    (Phase::EpochProcessing, epoch),
    (Phase::Rpds, map),
    (Phase::Ssz, serialize),
    (Phase::Memmove, copy),
    (Phase::Malloc, allocate),
    (Phase::DefaultHasher, hash_keys),
];

/// CPU time of a phase's turn; the last repetition may exceed it.
const TURN_NS: u64 = 30_000_000;

/// Every phase once, outside of `all`, so that all memory has been used before.
#[inline(never)]
pub fn warm_up(work: &mut Work) {
    for (_, function) in PHASES {
        function(work);
    }
}

/// Every phase has a turn.
#[inline(never)]
pub fn all(work: &mut Work) {
    for (phase, function) in PHASES {
        let _timer = PhaseTimer::start(phase);
        let end = process_cpu_ns() + TURN_NS;
        while process_cpu_ns() < end {
            function(work);
        }
    }
}

#[inline(never)]
fn iterate(work: &mut Work) {
    black_box(work.balances.to_vec());
}

#[inline(never)]
fn update(work: &mut Work) {
    let mut updates = UpdateMap::default();
    for (index, value) in &work.updates {
        updates.insert(*index, *value);
    }
    let done = work.changing.bulk_update(updates).and_then(|()| work.changing.apply_updates());
    black_box(done).expect("the changes are within the list");
}

/// Leaves of zeros are hashed anew each time, and without SHA-256: a leaf's hash is its bytes.
#[inline(never)]
fn hash(work: &mut Work) {
    for leaf in &work.leaves {
        black_box(leaf.tree_hash());
    }
}

#[inline(never)]
fn sha256(work: &mut Work) {
    for pair in work.sources.chunks_exact(2) {
        black_box(ethereum_hashing::hash32_concat(&pair[0], &pair[1]));
    }
}

#[inline(never)]
fn shuffle(work: &mut Work) {
    for pivot in &work.pivots {
        swap_or_not_shuffle::shuffle_round(&mut work.indices, *pivot, &work.sources);
    }
}

#[inline(never)]
fn epoch(work: &mut Work) {
    let balances = process_validators(&work.validators, &work.participation, &mut work.context);
    black_box(balances).expect("no balance overflows");
}

#[inline(never)]
fn map(work: &mut Work) {
    let mut cache = work.pubkey_cache.clone();
    for validator in &work.validators {
        black_box(cache.get(&validator.pubkey));
    }
    for pubkey in &work.new_pubkeys {
        cache.insert(*pubkey, cache.len());
    }
}

#[inline(never)]
fn serialize(work: &mut Work) {
    let bytes = work.validators.as_ssz_bytes();
    black_box(Vec::<Validator>::from_ssz_bytes(&bytes)).expect("what was encoded can be decoded");
}

#[inline(never)]
fn copy(work: &mut Work) {
    for _ in 0..16 {
        work.target.copy_from_slice(black_box(&work.bytes));
    }
}

#[inline(never)]
fn allocate(work: &mut Work) {
    for (size, block) in work.sizes.iter().zip(&mut work.blocks) {
        *block = Vec::with_capacity(*size);
    }
    for place in &work.free_order {
        drop(black_box(std::mem::take(&mut work.blocks[*place])));
    }
}

#[inline(never)]
fn hash_keys(work: &mut Work) {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    for validator in &work.validators {
        black_box(hasher.hash_one(&validator.pubkey));
    }
}
