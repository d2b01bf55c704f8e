// The functions that mark phases: they exist as frames in every build and do as little as possible themselves.
#pragma once

#define NOINLINE __attribute__((noinline))

// At the end of a phase: keeps the compiler from replacing the last call by a jump, which would take the phase off the stack.
#define STAY_ON_STACK() asm volatile("" : : : "memory")

namespace pure {
struct Work;
}

namespace mixed {
struct State;
}

namespace phase {

void iterate(pure::Work& work, unsigned repeat);
void update(pure::Work& work, unsigned repeat);
void hash(pure::Work& work, unsigned repeat);
void sha256(pure::Work& work, unsigned repeat);
void shuffle(pure::Work& work, unsigned repeat);
void copy(pure::Work& work, unsigned repeat);
void allocate(pure::Work& work, unsigned repeat);
void epoch(pure::Work& work, unsigned repeat);

void iterate(mixed::State& state);
void epoch(mixed::State& state);
void update(mixed::State& state);
void hash(mixed::State& state);
void shuffle(mixed::State& state);

}  // namespace phase
