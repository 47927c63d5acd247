//! The C interface in the thread mode seq: all that it is stands in `gasworks-capi`.

gasworks_capi::face!(gasworks_sync::Seq, gasworks_linked_seq_2);
