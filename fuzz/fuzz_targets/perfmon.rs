#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jevents::fuzz::perfmon(bytes));
