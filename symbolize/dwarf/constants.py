"""Numbers of the DWARF 5 standard (and the GNU and LLVM extensions seen in Linux binaries) that the decoder uses.

Source: DWARF Debugging Information Format, versions 4 and 5, sections 7.5 (tags, attributes, forms), 7.22 (line programs) and
7.25 (range lists).
"""

from __future__ import annotations

DW_TAG_array_type = 0x01
DW_TAG_class_type = 0x02
DW_TAG_enumeration_type = 0x04
DW_TAG_formal_parameter = 0x05
DW_TAG_lexical_block = 0x0B
DW_TAG_compile_unit = 0x11
DW_TAG_structure_type = 0x13
DW_TAG_subroutine_type = 0x15
DW_TAG_union_type = 0x17
DW_TAG_inlined_subroutine = 0x1D
DW_TAG_module = 0x1E
DW_TAG_base_type = 0x24
DW_TAG_catch_block = 0x25
DW_TAG_subprogram = 0x2E
DW_TAG_try_block = 0x32
DW_TAG_namespace = 0x39
DW_TAG_call_site = 0x48
DW_TAG_GNU_call_site = 0x4109

DW_UT_compile = 0x01
DW_UT_partial = 0x03
DW_UT_skeleton = 0x04
DW_UT_split_compile = 0x05
DW_UT_split_type = 0x06

DW_AT_sibling = 0x01
DW_AT_name = 0x03
DW_AT_stmt_list = 0x10
DW_AT_low_pc = 0x11
DW_AT_high_pc = 0x12
DW_AT_language = 0x13
DW_AT_comp_dir = 0x1B
DW_AT_producer = 0x25
DW_AT_abstract_origin = 0x31
DW_AT_artificial = 0x34
DW_AT_decl_file = 0x3A
DW_AT_specification = 0x47
DW_AT_ranges = 0x55
DW_AT_call_column = 0x57
DW_AT_call_file = 0x58
DW_AT_call_line = 0x59
DW_AT_linkage_name = 0x6E
DW_AT_str_offsets_base = 0x72
DW_AT_addr_base = 0x73
DW_AT_rnglists_base = 0x74
DW_AT_dwo_name = 0x76
DW_AT_MIPS_linkage_name = 0x2007
DW_AT_GNU_dwo_name = 0x2130
DW_AT_GNU_dwo_id = 0x2131
DW_AT_GNU_ranges_base = 0x2132
DW_AT_GNU_addr_base = 0x2133

DW_FORM_addr = 0x01
DW_FORM_block2 = 0x03
DW_FORM_block4 = 0x04
DW_FORM_data2 = 0x05
DW_FORM_data4 = 0x06
DW_FORM_data8 = 0x07
DW_FORM_string = 0x08
DW_FORM_block = 0x09
DW_FORM_block1 = 0x0A
DW_FORM_data1 = 0x0B
DW_FORM_flag = 0x0C
DW_FORM_sdata = 0x0D
DW_FORM_strp = 0x0E
DW_FORM_udata = 0x0F
DW_FORM_ref_addr = 0x10
DW_FORM_ref1 = 0x11
DW_FORM_ref2 = 0x12
DW_FORM_ref4 = 0x13
DW_FORM_ref8 = 0x14
DW_FORM_ref_udata = 0x15
DW_FORM_indirect = 0x16
DW_FORM_sec_offset = 0x17
DW_FORM_exprloc = 0x18
DW_FORM_flag_present = 0x19
DW_FORM_strx = 0x1A
DW_FORM_addrx = 0x1B
DW_FORM_ref_sup4 = 0x1C
DW_FORM_strp_sup = 0x1D
DW_FORM_data16 = 0x1E
DW_FORM_line_strp = 0x1F
DW_FORM_ref_sig8 = 0x20
DW_FORM_implicit_const = 0x21
DW_FORM_loclistx = 0x22
DW_FORM_rnglistx = 0x23
DW_FORM_ref_sup8 = 0x24
DW_FORM_strx1 = 0x25
DW_FORM_strx2 = 0x26
DW_FORM_strx3 = 0x27
DW_FORM_strx4 = 0x28
DW_FORM_addrx1 = 0x29
DW_FORM_addrx2 = 0x2A
DW_FORM_addrx3 = 0x2B
DW_FORM_addrx4 = 0x2C
DW_FORM_GNU_addr_index = 0x1F01
DW_FORM_GNU_str_index = 0x1F02
DW_FORM_GNU_ref_alt = 0x1F20
DW_FORM_GNU_strp_alt = 0x1F21

# Bytes that a form takes in .debug_info of 32-bit DWARF with 8-byte addresses.
FIXED_FORM_SIZES = {
    DW_FORM_addr: 8,
    DW_FORM_data1: 1,
    DW_FORM_data2: 2,
    DW_FORM_data4: 4,
    DW_FORM_data8: 8,
    DW_FORM_data16: 16,
    DW_FORM_flag: 1,
    DW_FORM_flag_present: 0,
    DW_FORM_implicit_const: 0,
    DW_FORM_strp: 4,
    DW_FORM_line_strp: 4,
    DW_FORM_strp_sup: 4,
    DW_FORM_sec_offset: 4,
    DW_FORM_ref_addr: 4,
    DW_FORM_ref1: 1,
    DW_FORM_ref2: 2,
    DW_FORM_ref4: 4,
    DW_FORM_ref8: 8,
    DW_FORM_ref_sig8: 8,
    DW_FORM_ref_sup4: 4,
    DW_FORM_ref_sup8: 8,
    DW_FORM_strx1: 1,
    DW_FORM_strx2: 2,
    DW_FORM_strx3: 3,
    DW_FORM_strx4: 4,
    DW_FORM_addrx1: 1,
    DW_FORM_addrx2: 2,
    DW_FORM_addrx3: 3,
    DW_FORM_addrx4: 4,
    DW_FORM_GNU_ref_alt: 4,
    DW_FORM_GNU_strp_alt: 4,
}
# A form with this bit takes 8 bytes where it usually takes 4: offsets in 64-bit DWARF, DW_FORM_ref_addr in version 2.
WIDE_FORM = 1 << 16
WIDE_REFERENCES = frozenset({DW_FORM_ref_addr})
OFFSET_FORMS = frozenset(
    {
        DW_FORM_strp,
        DW_FORM_line_strp,
        DW_FORM_strp_sup,
        DW_FORM_sec_offset,
        DW_FORM_ref_addr,
        DW_FORM_GNU_ref_alt,
        DW_FORM_GNU_strp_alt,
    }
)
FIXED_FORM_SIZES |= {WIDE_FORM | form: 8 for form in OFFSET_FORMS}
LEB128_FORMS = frozenset(
    {
        DW_FORM_udata,
        DW_FORM_sdata,
        DW_FORM_ref_udata,
        DW_FORM_strx,
        DW_FORM_addrx,
        DW_FORM_loclistx,
        DW_FORM_rnglistx,
        DW_FORM_GNU_addr_index,
        DW_FORM_GNU_str_index,
    }
)
# Blocks: bytes of the length field, 0 = unsigned LEB128.
BLOCK_FORMS = {DW_FORM_block1: 1, DW_FORM_block2: 2, DW_FORM_block4: 4, DW_FORM_block: 0, DW_FORM_exprloc: 0}
INDEXED_STRING_FORMS = frozenset(
    {DW_FORM_strx, DW_FORM_strx1, DW_FORM_strx2, DW_FORM_strx3, DW_FORM_strx4, DW_FORM_GNU_str_index}
)
# Texts in the file that DWZ shares between programs.
SUPPLEMENTARY_STRING_FORMS = frozenset({DW_FORM_strp_sup, DW_FORM_GNU_strp_alt})
INDEXED_ADDRESS_FORMS = frozenset(
    {DW_FORM_addrx, DW_FORM_addrx1, DW_FORM_addrx2, DW_FORM_addrx3, DW_FORM_addrx4, DW_FORM_GNU_addr_index}
)
# References into that file's .debug_info.
SUPPLEMENTARY_REFERENCE_FORMS = frozenset({DW_FORM_ref_sup4, DW_FORM_ref_sup8, DW_FORM_GNU_ref_alt})
# References that are relative to the unit's header.
UNIT_REFERENCE_FORMS = frozenset({DW_FORM_ref1, DW_FORM_ref2, DW_FORM_ref4, DW_FORM_ref8, DW_FORM_ref_udata})

# Languages whose functions are complete without a scope in front.
DW_LANG_C89 = 0x01
DW_LANG_C = 0x02
DW_LANG_C99 = 0x0C
DW_LANG_C11 = 0x1D
DW_LANG_C17 = 0x2C
DW_LANG_Mips_Assembler = 0x8001
FLAT_LANGUAGES = frozenset({DW_LANG_C89, DW_LANG_C, DW_LANG_C99, DW_LANG_C11, DW_LANG_C17, DW_LANG_Mips_Assembler})

DW_LNS_copy = 0x01
DW_LNS_advance_pc = 0x02
DW_LNS_advance_line = 0x03
DW_LNS_set_file = 0x04
DW_LNS_set_column = 0x05
DW_LNS_negate_stmt = 0x06
DW_LNS_set_basic_block = 0x07
DW_LNS_const_add_pc = 0x08
DW_LNS_fixed_advance_pc = 0x09
DW_LNS_set_prologue_end = 0x0A
DW_LNS_set_epilogue_begin = 0x0B
DW_LNS_set_isa = 0x0C

DW_LNE_end_sequence = 0x01
DW_LNE_set_address = 0x02
DW_LNE_define_file = 0x03

DW_LNCT_path = 0x1
DW_LNCT_directory_index = 0x2

DW_RLE_end_of_list = 0x00
DW_RLE_base_addressx = 0x01
DW_RLE_startx_endx = 0x02
DW_RLE_startx_length = 0x03
DW_RLE_offset_pair = 0x04
DW_RLE_base_address = 0x05
DW_RLE_start_end = 0x06
DW_RLE_start_length = 0x07
