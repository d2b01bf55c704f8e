//! What is printed: runs as `lcli skip-slots` prints them, and timers as JSON, one object a line.

use phase_timer::PHASES;

pub fn run(number: u32, wall_ns: u64) {
    println!("Run {number}: {:?}", std::time::Duration::from_nanos(wall_ns));
}

/// CPU time by phase: of the whole process, each moment charged to one phase.
pub fn phases(cpu_ns: &[u64; PHASES.len()]) {
    for (phase, category) in PHASES {
        let spent = cpu_ns[phase as usize];
        if spent > 0 {
            println!("{{\"category\": \"{category}\", \"cpu_ns\": {spent}}}");
        }
    }
}

/// `timed_wall_ns`: sum of the runs.  `checksum` depends on the work that was done, not on the build.
pub fn total(cpu_ns: &[u64; PHASES.len()], timed_wall_ns: u64, checksum: &str) {
    let sum: u64 = cpu_ns.iter().sum();
    let process = phase_timer::process_cpu_ns();
    println!(
        "{{\"total\": {{\"cpu_ns\": {sum}, \"wall_ns\": {timed_wall_ns}, \"process_cpu_ns\": {process}, \"checksum\": \"{checksum}\"}}}}"
    );
}
