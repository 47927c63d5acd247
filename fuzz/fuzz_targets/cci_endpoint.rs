#![cfg_attr(fuzzing, no_main)]
gasworks_fuzz::target!(gasworks_fuzz::cci::endpoint);
