//! The command line.

use std::process::exit;

const USAGE: &str = "usage: skip_slots [--mode mixed|pure|vectors] [--slots N] [--runs N] [--validators N] [--threads N]
                  [--partial-state-advance]
  --mode mixed              slots with epoch transitions (the default)
  --mode pure               phases that do one thing each, in turn
  --mode vectors            prints values that can be checked elsewhere
  --slots N                 slots of a run; every 32nd one ends an epoch (default 32)
  --runs N                  runs, each from the same state (default 3); in pure mode: how often each phase has its turn
  --validators N            size of the registry (default 65536)
  --threads N               rayon's workers (default: one for each CPU); 1: the main thread does everything itself
  --partial-state-advance   no hashing of the state";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Mixed,
    Pure,
    Vectors,
}

#[derive(Debug)]
pub struct Options {
    pub mode: Mode,
    pub slots: u64,
    pub runs: u32,
    pub validators: usize,
    /// 0 = rayon's own choice.
    pub threads: usize,
    pub partial_state_advance: bool,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut options =
            Self { mode: Mode::Mixed, slots: 32, runs: 3, validators: 65_536, threads: 0, partial_state_advance: false };
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--mode" => options.mode = mode(&value(&name, arguments.next())),
                "--slots" => options.slots = number(&name, arguments.next()),
                "--runs" => options.runs = number(&name, arguments.next()),
                "--validators" => options.validators = number(&name, arguments.next()),
                "--threads" => options.threads = number(&name, arguments.next()),
                "--partial-state-advance" => options.partial_state_advance = true,
                "--help" => {
                    println!("{USAGE}");
                    exit(0);
                }
                _ => fail(&format!("unknown option {name}")),
            }
        }
        if options.validators < 64 {
            fail("--validators: at least 64");
        }
        options
    }
}

fn mode(text: &str) -> Mode {
    match text {
        "mixed" => Mode::Mixed,
        "pure" => Mode::Pure,
        "vectors" => Mode::Vectors,
        _ => fail(&format!("--mode: {text} is none of mixed, pure, vectors")),
    }
}

fn number<T: std::str::FromStr>(name: &str, text: Option<String>) -> T {
    let text = value(name, text);
    text.parse().unwrap_or_else(|_| fail(&format!("{name}: {text} is no number")))
}

fn value(name: &str, text: Option<String>) -> String {
    text.unwrap_or_else(|| fail(&format!("{name} needs a value")))
}

fn fail(message: &str) -> ! {
    eprintln!("{message}\n{USAGE}");
    exit(2);
}
