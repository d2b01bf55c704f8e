//! Slots without blocks, again and again from the same state.

use crate::options::Options;
use crate::{output, pre_state};
use state_processing::state_advance::{complete_state_advance, partial_state_advance};
use state_processing::Error;
use types::{BeaconState, Hash256};

pub fn run(options: &Options) -> Result<(), Error> {
    let (pre_state, state_root) = prepare(options)?;
    let mut timed_wall_ns = 0;
    let mut last = None;
    let before = phase_timer::cpu_ns();
    for number in 0..options.runs {
        let mut state = pre_state.clone();
        let started = phase_timer::wall_ns();
        let target_slot = state.slot + options.slots;
        if options.partial_state_advance {
            partial_state_advance(&mut state, target_slot)?;
        } else {
            complete_state_advance(&mut state, Some(state_root), target_slot)?;
        }
        let wall_ns = phase_timer::wall_ns() - started;
        timed_wall_ns += wall_ns;
        output::run(number, wall_ns);
        last = Some(state);
    }
    let mut cpu_ns = phase_timer::cpu_ns();
    for (sum, untimed) in cpu_ns.iter_mut().zip(before) {
        *sum -= untimed;
    }
    output::phases(&cpu_ns);
    let checksum = match last {
        Some(mut state) => state.update_tree_hash_cache()?,
        None => state_root,
    };
    output::total(&cpu_ns, timed_wall_ns, &format!("{checksum:#x}"));
    Ok(())
}

/// What comes before the timed part: decoding, caches, the state's root.
#[inline(never)]
fn prepare(options: &Options) -> Result<(BeaconState, Hash256), Error> {
    let bytes = pre_state::ssz_bytes(options.validators)?;
    let mut state = BeaconState::decode(&bytes)?;
    state.build_all_caches()?;
    let root = state.update_tree_hash_cache()?;
    Ok((state, root))
}
