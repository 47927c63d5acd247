//! The C interface in the thread mode par: all that it is stands in `gasworks-capi`.

gasworks_capi::face!(gasworks_sync::Par, gasworks_linked_par_2);
