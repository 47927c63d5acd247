//! Every size, offset and value against the tables of facts beside this file.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};

use gasworks_gni_sys::*;

const STRUCTS: &str = include_str!("facts/structs.csv");
const TABLE: &str = include_str!("facts/constants.csv");

/// The lines of a table after its head, in columns.
fn lines(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().enumerate().filter(|(i, _)| *i > 0).map(|(_, line)| line.split(',').collect())
}

fn size_behind<S, F>(_: impl Fn(*const S) -> *const F) -> usize {
    size_of::<F>()
}

/// Offset and size of every field, by structure and path; of the whole structure under its size.
fn ours() -> BTreeMap<(String, String), (usize, usize)> {
    let mut ours = BTreeMap::new();
    macro_rules! structs {
        ($($name:ident { $($($path:ident).+),* $(,)? })*) => {$(
            ours.insert((stringify!($name).to_owned(), "(sizeof)".to_owned()), (0, size_of::<$name>()));
            $(
                let field = stringify!($($path).+).replace("r#", "").replace(' ', "");
                // SAFETY: never called: it is there for its type.
                let size = size_behind(|it: *const $name| unsafe { &raw const (*it).$($path).+ });
                let place = (offset_of!($name, $($path).+), size);
                ours.insert((stringify!($name).to_owned(), field), place);
            )*
        )*};
    }
    structs! {
        gni_mem_handle_t { qword1, qword2 }
        gni_smsg_attr_t {
            msg_type, msg_buffer, buff_size, mem_hndl, mbox_offset, mbox_maxcredit, msg_maxsize,
        }
        gni_mem_segment_t { address, length }
        gni_ce_result_t { control, result1, result2 }
        gni_post_descriptor_t {
            next_descr, prev_descr, post_id, status, cq_mode_complete, r#type, cq_mode, dlvr_mode,
            local_addr, local_mem_hndl, remote_addr, remote_mem_hndl, length, rdma_mode,
            src_cq_hndl, sync_flag_value, sync_flag_addr, amo_cmd, first_operand, second_operand,
            cqwrite_value, ce_cmd, ce_mode, ce_red_id,
        }
        gni_ct_put_post_descriptor_t { next_descr, ep_hndl, length, remote_addr, remote_mem_hndl, local_addr }
        gni_ct_get_post_descriptor_t {
            next_descr, ep_hndl, length, remote_addr, remote_mem_hndl, local_addr, local_mem_hndl,
        }
        gni_ct_amo_post_descriptor_t {
            next_descr, ep_hndl, length, remote_addr, remote_mem_hndl, local_addr, local_mem_hndl,
            amo_cmd, first_operand, second_operand,
        }
        gni_ct_cqw_post_descriptor_t { next_descr, ep_hndl, remote_mem_hndl, cqwrite_value }
        gni_ct_uni_post_descriptor_t { u, u.put, u.get, u.amo, u.cqw }
        gni_ntt_entry_t { blck_addr, rplc_addr, rplc_size }
        gni_ntt_descriptor_t { group_size, granularity, u, u.table, u.table_v2, flags }
        gni_error_event_t { error_code, error_category, ptag, serial_number, timestamp, info_mmrs }
        gni_job_limits_t {
            mdd_limit, a, a.mrt_limit, a.m, a.m.ce_limit, a.m.iommu_limit, a.m.res_byte2,
            a.m.res_byte3, b, b.gart_limit, b.dla_limit, fma_limit, bte_limit, cq_limit, ntt_ctrl,
            ntt_base, ntt_size,
        }
        gni_dev_res_desc_t { available, reserved, held, total }
        gni_job_res_desc_t { used, limit }
        gni_msgq_attr_t { max_msg_sz, smsg_q_sz, rcv_pool_sz, num_msgq_eps, nloc_insts, modes, rcv_cq_sz }
        gni_msgq_rem_inst_t { id, mdh, mdh_off }
        gni_msgq_ep_attr_t { pe_addr, max_msg_sz, smsg_q_sz, num_insts, insts }
        gni_version_info_t {
            ugni_version, ugni_svn_revision, ugni_build_string, kgni_version, kgni_svn_revision,
            kgni_build_string,
        }
        gni_bi_desc_t {
            current_bw, current_aot_bw, current_norbs, flags, sys_def_bw, sys_def_aot_bw,
            cle_seqnum, hss_seqnum,
        }
    }
    ours
}

#[test]
fn every_structure_is_laid_out_as_the_table_says() {
    let ours = ours();
    let mut told = 0;
    for line in lines(STRUCTS) {
        let [structure, field, offset, size] = line.as_slice() else {
            panic!("{line:?} has no four columns")
        };
        let number = |text: &str| if text.is_empty() { 0 } else { text.parse().expect("a number") };
        let told_place: (usize, usize) = (number(offset), number(size));
        let place = ours.get(&((*structure).to_owned(), (*field).to_owned()));
        assert_eq!(place, Some(&told_place), "{structure}.{field}: offset and size");
        told += 1;
    }
    assert_eq!(told, ours.len());
}

#[test]
fn every_constant_has_the_value_that_the_table_says() {
    let ours: BTreeMap<&str, i64> = CONSTANTS.iter().copied().collect();
    assert_eq!(ours.len(), CONSTANTS.len(), "none stands there twice");
    let mut told = 0;
    for line in lines(TABLE) {
        let [name, value] = line.as_slice() else { panic!("{line:?} has no two columns") };
        assert_eq!(ours.get(name).copied(), value.parse().ok(), "{name}");
        told += 1;
    }
    assert_eq!(told, ours.len());
}
