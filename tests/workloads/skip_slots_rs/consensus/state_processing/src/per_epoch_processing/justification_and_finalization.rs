//! Checkpoints that enough balance attested for.

use super::progressive_balances::Totals;
use crate::Error;
use safe_arith::SafeArith;
use types::{BeaconState, Checkpoint};

pub fn process_justification_and_finalization(state: &mut BeaconState, totals: &Totals) -> Result<(), Error> {
    let (previous, current) = (state.previous_epoch(), state.current_epoch());
    let old_justified = state.current_justified_checkpoint;
    let root = state.latest_block_root;
    state.previous_justified_checkpoint = old_justified;
    state.justification_bits = (state.justification_bits << 1) & 0xf;
    let threshold = totals.active.safe_mul(2)?;
    if totals.previous_flags[1].safe_mul(3)? >= threshold {
        state.current_justified_checkpoint = Checkpoint { epoch: previous, root };
        state.justification_bits |= 2;
    }
    if totals.current_target.safe_mul(3)? >= threshold {
        state.current_justified_checkpoint = Checkpoint { epoch: current, root };
        state.justification_bits |= 1;
    }
    if state.justification_bits & 3 == 3 && old_justified.epoch.safe_add(1)? == current {
        state.finalized_checkpoint = old_justified;
    }
    Ok(())
}
