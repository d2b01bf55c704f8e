//! Pure mode: the phases that do one thing each.

use crate::options::Options;
use crate::output;
use crate::pre_state::prepare;
use phase::Work;
use state_processing::Error;

pub fn run(options: &Options) -> Result<(), Error> {
    let (state, root) = prepare(options.validators)?;
    let mut work = Work::new(&state)?;
    phase::warm_up(&mut work);
    phase_timer::restart();
    let started = phase_timer::wall_ns();
    for number in 0..options.runs {
        let run_started = phase_timer::wall_ns();
        phase::all(&mut work);
        output::run(number, phase_timer::wall_ns() - run_started);
    }
    let cpu_ns = phase_timer::cpu_ns();
    output::phases(&cpu_ns);
    output::total(&cpu_ns, phase_timer::wall_ns() - started, &format!("{root:#x}"));
    Ok(())
}
