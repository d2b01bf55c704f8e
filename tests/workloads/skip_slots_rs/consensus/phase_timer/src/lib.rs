//! The program's own timers: CPU time of the whole process, each moment charged to exactly one phase.
//!
//! Phases follow each other on one thread; what workers do meanwhile is part of the phase that waits for them.

use std::cell::{Cell, RefCell};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Slot processing itself: everything in the timed part that no other phase surrounds.
    Slots,
    /// Hashing of the state; in mixed mode with the SHA-256 in it.
    TreeHashing,
    /// Pending changes of the lists become new trees.
    TreeUpdate,
    /// Walking through lists, where nothing else is woven into it.
    TreeIteration,
    /// The epoch transition's arithmetic; in mixed mode with the iteration and the change maps that are woven into it.
    EpochProcessing,
    /// The swap-or-not shuffle without its SHA-256.
    Shuffling,
    ActiveIndices,
    /// Persistent hash maps: hashing of keys, look-ups and insertions.
    Rpds,
    Ssz,
    /// In mixed mode that of the shuffle.
    Sha256,
    Memmove,
    Malloc,
    DefaultHasher,
}

pub const PHASES: [(Phase, &str); 13] = [
    (Phase::Slots, "state and blocks"),
    (Phase::TreeHashing, "tree hashing"),
    (Phase::TreeUpdate, "tree update"),
    (Phase::TreeIteration, "tree iteration"),
    (Phase::EpochProcessing, "epoch processing"),
    (Phase::Shuffling, "shuffling"),
    (Phase::ActiveIndices, "active indices"),
    (Phase::Rpds, "RPDS"),
    (Phase::Ssz, "SSZ"),
    (Phase::Sha256, "SHA-256"),
    (Phase::Memmove, "memmove"),
    (Phase::Malloc, "malloc"),
    (Phase::DefaultHasher, "DefaultHasher"),
];

thread_local! {
    static CPU_NS: RefCell<[u64; PHASES.len()]> = const { RefCell::new([0; PHASES.len()]) };
    static CURRENT: Cell<Option<Phase>> = const { Cell::new(None) };
    static SINCE: Cell<u64> = const { Cell::new(0) };
}

/// Charges the CPU time of its life to a phase, except the lives of timers that are started meanwhile.
pub struct PhaseTimer {
    outer: Option<Phase>,
}

impl PhaseTimer {
    pub fn start(phase: Phase) -> Self {
        Self { outer: switch_to(Some(phase)) }
    }
}

impl Drop for PhaseTimer {
    fn drop(&mut self) {
        switch_to(self.outer);
    }
}

fn switch_to(next: Option<Phase>) -> Option<Phase> {
    let now = process_cpu_ns();
    let previous = CURRENT.replace(next);
    if let Some(phase) = previous {
        CPU_NS.with_borrow_mut(|sums| sums[phase as usize] += now - SINCE.get());
    }
    SINCE.set(now);
    previous
}

/// Forgets what was charged so far.  To be called while no timer runs.
pub fn restart() {
    CPU_NS.set([0; PHASES.len()]);
}

/// CPU time of each phase since the restart, in the order of `PHASES`.
pub fn cpu_ns() -> [u64; PHASES.len()] {
    CPU_NS.with_borrow(|sums| *sums)
}

pub fn process_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

pub fn wall_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` outlives the call, and both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
