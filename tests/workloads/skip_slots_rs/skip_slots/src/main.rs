//! skip_slots: advances a beacon state over slots without blocks, as `lcli skip-slots` does, and times itself.

mod options;
mod output;
mod pre_state;
mod pure;
mod random_numbers;
mod skip_slots;
mod vectors;

use options::{Mode, Options};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let options = Options::parse(std::env::args().skip(1));
    let mut workers = rayon::ThreadPoolBuilder::new().num_threads(options.threads);
    if options.threads == 1 {
        workers = workers.use_current_thread();
    }
    if let Err(error) = workers.build_global() {
        eprintln!("{error}");
        std::process::exit(1);
    }
    let done = match options.mode {
        Mode::Mixed => skip_slots::run(&options),
        Mode::Pure => pure::run(&options),
        Mode::Vectors => vectors::print(),
    };
    if let Err(error) = done {
        eprintln!("{error:?}");
        std::process::exit(1);
    }
}
