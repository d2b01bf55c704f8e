//! One slot without a block, and the epoch transition where one ends.

use crate::per_epoch_processing::process_epoch;
use crate::Error;
use types::chain_spec::SLOTS_PER_EPOCH;
use types::{BeaconState, Hash256};

#[inline(never)]
pub fn per_slot_processing(state: &mut BeaconState, state_root: Option<Hash256>) -> Result<(), Error> {
    cache_state(state, state_root)?;
    let ends_epoch = (state.slot + 1).is_multiple_of(SLOTS_PER_EPOCH);
    if ends_epoch {
        process_epoch(state)?;
    }
    state.slot += 1;
    if ends_epoch {
        state.advance_caches()?;
    }
    Ok(())
}

fn cache_state(state: &mut BeaconState, state_root: Option<Hash256>) -> Result<(), Error> {
    let root = match state_root {
        Some(root) => root,
        None => state.update_tree_hash_cache()?,
    };
    let slot = state.slot;
    state.set_state_root(slot, root)?;
    if state.latest_block_root.is_zero() {
        state.latest_block_root = root;
    }
    state.set_block_root(slot, state.latest_block_root)?;
    Ok(())
}
