"""The attribution policy, clause by clause, on drawn stacks with attributions worked out by hand."""

from __future__ import annotations

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.model.category import RuleSet
from support.attribution import attributed, categories_of_samples, rules
from support.profile_from_text import profile_from_text

RULES = rules(
    """
[[rule]]
category = "hashing"
function = '^sha::|^tree_hash::|Hash::root$'

[[rule]]
category = "locks"
function = '^lock$'
under = '^tree::'

[[rule]]
category = "update"
function = '^tree::'

[[rule]]
category = "malloc"
passthrough = true
function = '^malloc$'

[[rule]]
category = "kernel"
passthrough = true
dso = '^\\[kernel\\]$'

[[rule]]
category = "intrinsics"
file = 'own_intrin\\.h$'

[[rule]]
transparent = true
function = '^(std|core)::|^main$|^rotate$'

[[rule]]
category = "late"
function = '^std::late$'

[[rule]]
fallback = true
category = "lib {dso}"
dso = '\\.so$'

[[rule]]
fallback = true
category = "module {module}"
function = '^(?P<module>\\w+)::'
"""
)


def run_of(text: str, rule_set: RuleSet = RULES) -> AttributedRun:
    return attributed(profile_from_text(text).symbolized(), rule_set)


def leaf(text: str) -> list[str]:
    return categories_of_samples(run_of(text))


def owner(text: str) -> list[str]:
    return categories_of_samples(run_of(text), "owner")


def self_functions(text: str) -> list[str]:
    run = run_of(text)
    rows = run.attribution.self_row[run.stacks.innermost[run.symbolized.capture.samples.stack]]
    return [run.symbolized.functions[number].key for number in run.stacks.function()[rows].tolist()]


def test_the_innermost_frame_that_a_rule_names_wins() -> None:
    text = """
    main        main        main
    tree::push  sha::block  tree::push
    sha::block  tree::push  plain
    """
    assert leaf(text) == ["hashing", "update", "update"]


def test_inline_frames_come_before_callers() -> None:
    text = """
    tree::push                main                             main
    plain > sha::round        tree::push > plain > std::add    sha::f > tree::g
    """
    assert leaf(text) == ["hashing", "update", "update"]


def test_transparent_and_unmatched_frames_are_passed_over() -> None:
    text = """
    sha::block  sha::block  main
    std::copy   unknown     std::copy
    core::add   core::add   core::add
    """
    assert leaf(text) == ["hashing", "hashing", "other"]


def test_of_several_rules_the_first_in_the_file_decides() -> None:
    # std::late is transparent by an earlier rule, so the later rule never names it.
    text = """
    tree::push
    std::late
    """
    assert leaf(text) == ["update"]


def test_every_key_of_a_rule_must_match() -> None:
    both = rules("[[rule]]\ncategory = \"x\"\nfunction = '^f$'\ndso = '^lib'\nfile = '\\.c$'\n")
    text = """
    libx.so!f@a.c:1  libx.so!f@a.h:1  app!f@a.c:1  libx.so!g@a.c:1  libx.so!f
    """
    assert categories_of_samples(run_of(text, both)) == ["x", "other", "other", "other", "other"]


def test_source_files_and_trait_keys() -> None:
    text = """
    main                     main
    shuffle@own_intrin.h:9   Vec::root as Hash::root
    """
    assert leaf(text) == ["intrinsics", "hashing"]


def test_under_looks_at_frames_further_out_only() -> None:
    text = """
    tree::push  main  lock        tree::push > lock  main
    lock        lock  tree::push  .                  lock > plain
    """
    assert leaf(text) == ["locks", "other", "update", "locks", "other"]


def test_a_frame_is_not_under_itself() -> None:
    recursive = rules("[[rule]]\ncategory = \"again\"\nfunction = '^f$'\nunder = '^f$'\n")
    text = """
    main  main  main   main
    f     f     f > f  g
    .     f     .      f
    """
    assert categories_of_samples(run_of(text, recursive)) == ["other", "again", "again", "other"]


def test_under_reaches_over_any_distance_and_sees_transparent_frames() -> None:
    marked = rules(
        "[[rule]]\ncategory = \"x\"\nfunction = '^f$'\nunder = '^std::'\n[[rule]]\ntransparent = true\nfunction = '^std::'"
    )
    text = """
    std::sort  std::sort > a  a
    a          b              std::sort
    f          f              b
    """
    assert categories_of_samples(run_of(text, marked)) == ["x", "x", "other"]


def test_more_under_patterns_than_bits_in_a_word() -> None:
    many = "\n".join(f"[[rule]]\ncategory = \"c{n}\"\nfunction = '^f$'\nunder = '^outer{n}$'" for n in range(130))
    names = [0, 63, 64, 127, 129]
    text = "  ".join(f"outer{n}" for n in names) + "\n" + "  ".join("f" for _ in names)
    assert categories_of_samples(run_of(text, rules(many))) == [f"c{n}" for n in names]


def test_the_owner_of_passthrough_time_is_the_first_further_out_that_is_not_passthrough() -> None:
    text = """
    main        sha::f               main                 tree::push
    tree::push  tree::push           malloc               malloc
    malloc      malloc               [kernel]!page_fault  sha::f
    .           [kernel]!page_fault  .                    .
    """
    assert leaf(text) == ["malloc", "kernel", "kernel", "hashing"]
    assert owner(text) == ["update", "update", "kernel", "hashing"]


def test_passed_over_frames_lie_between_a_passthrough_leaf_and_its_owner() -> None:
    text = """
    sha::f
    std::vector
    plain
    malloc
    core::x
    """
    assert leaf(text) == ["malloc"]
    assert owner(text) == ["hashing"]


def test_fallback_rules_are_for_stacks_that_nothing_else_names() -> None:
    text = """
    main        main       main        main         sha::f
    my::f       libx.so!g  std::f      plain        my::f
    libx.so!g   std::f     .           .            libx.so!g
    """
    assert leaf(text) == ["lib libx.so", "lib libx.so", "other", "other", "hashing"]


def test_transparent_frames_are_transparent_for_fallback_rules_too() -> None:
    # std::f would be "module std" by the last rule.
    text = """
    my::f
    std::f
    """
    assert leaf(text) == ["module my"]


def test_fallback_owners_where_only_passthrough_rules_name_a_frame() -> None:
    text = """
    main    my::f   malloc  main
    my::f   malloc  my::f   malloc
    malloc  std::x  .       .
    """
    assert leaf(text) == ["malloc", "malloc", "malloc", "malloc"]
    assert owner(text) == ["module my", "module my", "malloc", "malloc"]


def test_self_belongs_to_the_innermost_frame_that_is_not_transparent() -> None:
    text = """
    main               main              main    main        main
    sha::f > rotate    plain             std::f  tree::push  sha::f
    .                  std::sort > rotate  .     malloc      plain
    """
    assert self_functions(text) == ["sha::f", "plain", "std::f", "malloc", "plain"]


def test_interrupts_fall_to_the_frame_below() -> None:
    quiet = rules(
        """
[[rule]]
transparent = true
dso = '^\\[kernel\\]$'
function = '^asm_sysvec_|^irqentry_exit$'
[[rule]]
transparent = true
dso = '^\\[kernel\\]$'
under = '^asm_sysvec_'
[[rule]]
category = "faults"
dso = '^\\[kernel\\]$'
function = '^exc_page_fault$'
[[rule]]
category = "kernel"
dso = '^\\[kernel\\]$'
[[rule]]
category = "work"
function = '^work$'
"""
    )
    text = """
    work                         work                     work
    [kernel]!asm_sysvec_timer    [kernel]!exc_page_fault  [kernel]!exc_page_fault
    [kernel]!irqentry_exit       [kernel]!clear_page      [kernel]!asm_sysvec_timer
    [kernel]!update_load         .                        [kernel]!schedule
    """
    assert categories_of_samples(run_of(text, quiet)) == ["work", "kernel", "faults"]


def test_a_capture_without_samples() -> None:
    from support.profile_from_text import draw

    run = attributed(draw([]).symbolized(), RULES)
    assert categories_of_samples(run) == []
    assert run.total == 0
