//! Slots without blocks, again and again from the same state.

use crate::options::Options;
use crate::output;
use crate::pre_state::prepare;
use state_processing::state_advance::{complete_state_advance, partial_state_advance};
use state_processing::Error;
use types::{BeaconState, Hash256};

pub fn run(options: &Options) -> Result<(), Error> {
    let (pre_state, state_root) = prepare(options.validators)?;
    let mut timed_wall_ns = 0;
    let mut last_state = None;
    phase_timer::restart();
    for number in 0..options.runs {
        let mut state = pre_state.clone();
        let started = phase_timer::wall_ns();
        advance(&mut state, state_root, options)?;
        let wall_ns = phase_timer::wall_ns() - started;
        timed_wall_ns += wall_ns;
        output::run(number, wall_ns);
        last_state = Some(state);
    }
    let cpu_ns = phase_timer::cpu_ns();
    output::phases(&cpu_ns);
    let checksum = match last_state {
        Some(mut state) => state.update_tree_hash_cache()?,
        None => state_root,
    };
    output::total(&cpu_ns, timed_wall_ns, &format!("{checksum:#x}"));
    Ok(())
}

fn advance(state: &mut BeaconState, state_root: Hash256, options: &Options) -> Result<(), Error> {
    let target_slot = state.slot + options.slots;
    if options.partial_state_advance {
        partial_state_advance(state, target_slot)
    } else {
        complete_state_advance(state, Some(state_root), target_slot)
    }
}
