//! The C interface in the thread mode parsync: all that it is stands in `gasworks-capi`.

gasworks_capi::face!(gasworks_sync::ParSync, gasworks_linked_parsync_2);
